/**
 * koa-with-auth/keys: API keys that are shown once, stored as digests, rotated with an overlap, and revoked
 * immediately. `src/README.md` follows one through its files.
 */
export type { ApiKey } from './KeyRecord.js'
export { apiKeys, NoLiveKey, type ApiKeys, type IssuedKey } from './apiKeys.js'
export type { AdoptedKey, NewKey } from './NewKey.js'
export type { ApiKeysOptions } from './apiKeys.js'
export type { Signals } from '../signals/signals.js'
