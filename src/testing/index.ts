/**
 * koa-with-auth/testing: handlers are tested without credentials, an application is checked over HTTP, and requests are made
 * for tests. Works in every test runner, and needs none; the laws, which need fast-check, are in koa-with-auth/testing/laws.
 *
 * Reading guide: `withPrincipal.ts`; `guarded/expectGuarded.ts`, which lays `guarded/tripwires.ts` and sends the requests of
 * `attacks/`; `request/RequestSpec.ts`, what a client would send.
 */

// handlers
export { withPrincipal, type PrincipalOptions } from './withPrincipal.js'

// applications
export { expectGuarded } from './guarded/expectGuarded.js'
export type { CheckedOperation, GuardedOptions } from './guarded/checkOperations.js'
export type { Application } from './guarded/serve.js'
export { LawViolations, type Violation } from './LawViolations.js'

// requests
export {
  mergeRequests,
  withBasic,
  withBearer,
  withCookie,
  withHeader,
  withQuery,
  type ExactSpec,
  type HeaderLine,
  type RequestSpec,
} from './request/RequestSpec.js'
export { mockRequest, type ContextFactory } from './request/mockRequest.js'
