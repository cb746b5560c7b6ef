/**
 * koa-with-auth/testing: requests, credentials and routers as fast-check arbitraries, laws to check one's own authenticators,
 * error mappers and applications with, and handlers without credentials. Needs fast-check; works in every test runner.
 *
 * Reading guide: `Sketch.ts` is what a client would send, `authenticatorLaws.ts` what must hold of an authenticator,
 * `expectGuarded.ts` what must hold of an application.
 */

// laws
export { checkAuthenticator, lawsOf, type Check } from './authenticatorLaws.js'
export type { LawOptions, Valid } from './Subject.js'
export { BrokenLaws, type Breach } from './BrokenLaws.js'
export { checkKeyStore, lawsOfKeyStore } from './keyStoreLaws.js'

// requests
export { sendBasic, sendBearer, sendCookie, sendHeader, sendQuery, together, type Line, type Sketch } from './Sketch.js'
export { plainRequest, type Contexts } from './plainRequest.js'
export { requests, sketches } from './requests.js'

// credentials
export { apiKeys, basicCredentials, bearerTokens, hostileTexts, notoriousTexts, secrets } from './credentials.js'

// authenticators and routers
export { authenticators, type Made } from './authenticators.js'
export { routers, type PlannedOperation, type PlannedRouter } from './routers.js'

// failures
export { challenges, failures } from './failures.js'
export { checkErrorMapper, lawsOfErrorMapper, type MapperOptions } from './errorMapperLaws.js'

// applications
export { expectGuarded } from './expectGuarded.js'
export type { CheckedOperation, GuardedOptions } from './checkOperations.js'
export type { Application } from './probe.js'
export { withPrincipal } from './withPrincipal.js'
