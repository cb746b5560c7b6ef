/**
 * koa-with-auth/testing: tests handlers without credentials, checks an application over HTTP, and makes requests for
 * tests. It needs no test runner, and works in each of them. The laws, which need fast-check, are in
 * koa-with-auth/testing/laws.
 *
 * Reading guide: `withPrincipal.ts` is for handlers. `expectGuarded.ts` sends the requests of
 * `attacks.ts` to an application with tripwires (`probing.ts`). `requests.ts` is a request as data.
 */

export { withPrincipal, type PrincipalOptions } from './withPrincipal.js'

export { expectGuarded } from './expectGuarded.js'
export type { CheckedOperation, GuardedOptions } from './expectGuarded.js'
export { expectIsolated } from './expectIsolated.js'
export type { IdsOfUsers, IsolatedOperation, IsolatedOptions } from './expectIsolated.js'
export type { Application } from './probing.js'
export { LawViolations, type Violation } from './LawViolations.js'

export {
  mergeRequests,
  mockRequest,
  withBasic,
  withBearer,
  withCookie,
  withHeader,
  withQuery,
  type HeaderLine,
  type RequestSpec,
} from './requests.js'
export { signedRequest, type SigningOptions } from './signedRequest.js'

export { testIssuer, type TestIssuer } from './testIssuer.js'

export {
  softwareAuthenticator,
  type SoftwareAuthenticator,
  type SoftwareAuthenticatorOptions,
  type SoftwarePasskey,
} from './softwareAuthenticator.js'

// Types that TypeScript writes into your declarations. Do not import them: any version may change them
export type { ContextFactory, ExactSpec } from './requests.js'
export type {
  AssertionJson,
  CreationOptions,
  PasskeyAlgorithm,
  RegistrationJson,
  RequestOptions,
  WrongAnswer,
  WrongAssertion,
  WrongRegistration,
} from './softwareAuthenticator.js'
