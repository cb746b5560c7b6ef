/**
 * koa-with-auth/testing/laws: the laws of authenticators, error mappers, one-time ids, and stores of API keys and of passkeys, checked
 * with fixed and random requests. It needs fast-check, and works in every test runner.
 *
 * Reading guide: `laws.ts` is the API, `authenticator.ts` has the longest list. `Subject.ts` calls an authenticator.
 */

export { laws } from './laws.js'
export type { Laws, LawTest } from './Law.js'
export type { LawOptions, ValidRequest } from './Subject.js'
export type { MapperOptions } from './mapper.js'
export type { SpentLawOptions } from './spent.js'
export { LawViolations, type Violation } from '../LawViolations.js'
