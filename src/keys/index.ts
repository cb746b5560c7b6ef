/**
 * koa-with-auth/keys: API keys that are shown once, kept as digests, rotated with an overlap and revoked at once.
 *
 * Reading guide: `apiKeys.ts` puts it together; `keyForm.ts` is what a key looks like; `KeyStore.ts` says what a database has
 * to fit.
 */
export type { ApiKey } from './ApiKey.js'
export { apiKeys, NoLiveKey, type ApiKeys, type IssuedKey } from './apiKeys.js'
export type { AdoptedKey, NewKey } from './checks.js'
export type { FoundKey, KeyRecord, KeyStore, Rotation } from './KeyStore.js'
export { memoryKeyStore } from './memoryKeyStore.js'
export type { ApiKeysOptions } from './options.js'
