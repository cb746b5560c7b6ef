/**
 * koa-with-auth/testing/laws: what must hold of an authenticator, an error mapper and a store of API keys, checked with
 * fixed and random requests. Needs fast-check; works in every test runner.
 *
 * Reading guide: `authenticatorLaws.ts` is the list of laws, `Subject.ts` what is asked, `verdicts.ts` how a law is checked.
 */

export { checkAuthenticator, lawsOf, type LawTest } from './authenticatorLaws.js'
export type { LawOptions, ValidRequest } from './Subject.js'
export { checkErrorMapper, lawsOfErrorMapper, type MapperOptions } from './errorMapperLaws.js'
export { checkKeyStore, lawsOfKeyStore } from './keyStoreLaws.js'
export { LawViolations, type Violation } from '../LawViolations.js'
