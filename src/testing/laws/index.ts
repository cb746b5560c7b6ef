/**
 * koa-with-auth/testing/laws: the laws of authenticators, error mappers and stores, checked
 * with fixed and random requests. It needs fast-check, and works in every test runner.
 *
 * Reading guide: `authenticator.ts` has the longest list. `Subject.ts` calls an authenticator.
 */
import { authenticatorLaws } from './authenticator.js'
import { keyStoreLaws } from './keyStore.js'
import { errorMapperLaws } from './mapper.js'
import { passkeyStoreLaws } from './passkeyStore.js'
import { storeLawsOf } from './store.js'

export type { Laws, LawTest } from './Law.js'
export type { LawOptions, ValidRequest } from './Subject.js'
export type { MapperOptions } from './mapper.js'
export type { MakeStore, StoreLawOptions } from './store.js'
export { LawViolations, type Violation } from '../LawViolations.js'

/**
 * The laws of an authenticator (or any function of the request), an error mapper, and stores of API keys
 * and of passkeys. Stores are written to: pass a database for tests. Each throws a TypeError for what it cannot check, and for
 * options that cannot work.
 *
 * @example
 * import test from 'node:test' // or vitest, jest, mocha
 * import { apiKeyHeader, constantTimeEqual, defaultErrorMapper } from 'koa-with-auth'
 * import { memoryKeyStore } from 'koa-with-auth/keys'
 * import { withHeader } from 'koa-with-auth/testing'
 * import { laws } from 'koa-with-auth/testing/laws'
 *
 * const key = apiKeyHeader({
 *   paramName: 'X-API-Key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'k1') && { client: 'Acme' },
 * })
 * await laws.authenticator(key, { valid: [withHeader('X-API-Key', 'k1')] }).check()
 * await laws.errorMapper(defaultErrorMapper).check()
 * await laws.keyStore(memoryKeyStore()).check()
 *
 * const suite = () => {
 *   for (const { name, check } of laws.keyStore(memoryKeyStore()).tests) test(name, check)
 * }
 */
export const laws = {
  authenticator: authenticatorLaws,
  errorMapper: errorMapperLaws,
  keyStore: keyStoreLaws,
  passkeyStore: passkeyStoreLaws,
  store: storeLawsOf,
} as const
