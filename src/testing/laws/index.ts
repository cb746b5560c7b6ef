/**
 * koa-with-auth/testing/laws: the laws of authenticators, error mappers and stores, checked
 * with fixed and random requests. It needs fast-check, and works in every test runner.
 *
 * Reading guide: `authenticator.ts` has the longest list. `Subject.ts` calls an authenticator.
 */
import { authenticatorLaws } from './authenticator.js'
import { errorMapperLaws } from './mapper.js'
import { storeLawsOf } from './store.js'

export type { Laws, LawTest } from './Law.js'
export type { LawOptions, ValidRequest } from './Subject.js'
export type { MapperOptions } from './mapper.js'
export type { MakeStore, StoreLawOptions } from './store.js'
export { LawViolations, type Violation } from '../LawViolations.js'

/**
 * The laws of an authenticator (or any function of the request), an error mapper, and a store. Stores are written to: pass a database for tests. Each throws a TypeError for a subject that it cannot check, and for
 * options that cannot work.
 *
 * @example
 * import test from 'node:test' // or vitest, jest, mocha
 * import { apiKeyHeader, constantTimeEqual, defaultErrorMapper } from 'koa-with-auth'
 * import { memoryStore } from 'koa-with-auth/stores'
 * import { withHeader } from 'koa-with-auth/testing'
 * import { laws } from 'koa-with-auth/testing/laws'
 *
 * const key = apiKeyHeader({
 *   paramName: 'X-API-Key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'k1') && { client: 'Acme' },
 * })
 * await laws.authenticator(key, { valid: [withHeader('X-API-Key', 'k1')] }).check()
 * await laws.errorMapper(defaultErrorMapper).check()
 * await laws.store(memoryStore).check()
 *
 * const suite = () => {
 *   for (const { name, check } of laws.store(memoryStore).tests) test(name, check)
 * }
 */
export const laws = {
  authenticator: authenticatorLaws,
  errorMapper: errorMapperLaws,
  store: storeLawsOf,
} as const
