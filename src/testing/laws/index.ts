/**
 * koa-with-auth/testing/laws: the laws of authenticators, error mappers, one-time ids, and stores of API keys and of passkeys, checked
 * with fixed and random requests. It needs fast-check, and works in every test runner.
 *
 * Reading guide: `authenticator.ts` is the list of laws. `Subject.ts` calls the authenticator. `verdicts.ts` checks
 * a law.
 */

export { checkAuthenticator, lawsOf, type LawTest } from './authenticator.js'
export type { LawOptions, ValidRequest } from './Subject.js'
export { checkErrorMapper, lawsOfErrorMapper, type MapperOptions } from './mapper.js'
export { checkKeyStore, lawsOfKeyStore } from './keyStore.js'
export { checkPasskeyStore, lawsOfPasskeyStore } from './passkeyStore.js'
export { checkSpent, lawsOfSpent, type SpentLawOptions } from './spent.js'
export { LawViolations, type Violation } from '../LawViolations.js'
