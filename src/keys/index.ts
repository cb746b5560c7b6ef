/**
 * koa-with-auth/keys: API keys that are shown once, stored as digests, rotated with an overlap, and revoked
 * immediately. `src/README.md` follows one through its files.
 */
export type { ApiKey } from './KeyStore.js'
export { apiKeys, NoLiveKey, type ApiKeys, type IssuedKey } from './apiKeys.js'
export type { AdoptedKey, NewKey } from './apiKeys.js'
export type { FoundKey, KeyRecord, KeyStore, Rotation } from './KeyStore.js'
export { memoryKeyStore } from './memoryKeyStore.js'
export type { ApiKeysOptions } from './apiKeys.js'
export type { Signals } from '../stores/signals.js'
