/**
 * koa-with-auth: authentication for Koa. An authenticator is written once, as a value; `withAuth` mounts it on the
 * application, a router or one operation.
 *
 * Reading guide: `core/Authenticator.ts` is the main idea. `core/AuthError.ts` says how it fails. `kinds/` has
 * the kinds. `koa/levels.ts` and `koa/guard.ts` bring them to a router.
 */
// it listens to guards and levels, and prints warnings
import './koa/development.js'
import type { Authenticator as Decides } from './core/Authenticator.js'
import * as AuthErrors from './core/AuthError.js'
import * as Challenges from './core/Challenge.js'
import * as Authenticators from './core/instances.js'

/** The instances of fp-ts: `Functor`, `Alt`, `getSemigroup`. */
export const Authenticator = Authenticators
/** A function that decides who a request acts for, with a description of what it demands. */
export type Authenticator<P> = Decides<P>

// The same types again, because a compiler cannot write an alias into a user's declarations
/** Do not import this. TypeScript writes it into your declarations, for `Authenticator`. */
export type { Authenticator as TypedAuthenticator } from './core/Authenticator.js'
/** Do not import this. TypeScript writes it into your declarations, for `AuthError`. */
export type { AuthError as AnyAuthError } from './core/AuthError.js'
/** Do not import this. TypeScript writes it into your declarations, for `Challenge`. */
export type { Challenge as AuthChallenge } from './core/Challenge.js'

// the algebra
export {
  authenticator,
  fromFunction,
  isAuthenticator,
  type AuthenticatorLike,
  type PrincipalOf,
} from './core/Authenticator.js'
export { anyOf, type Tagged } from './core/lists.js'
export { alt, altW } from './core/lists.js'
export { allOf, type Together } from './core/lists.js'
export {
  authorize,
  requireScopes,
  type AuthorizeOptions,
  type Granted,
  type RequireScopesOptions,
} from './core/authorize.js'
export { firstPresent } from './core/lists.js'
export { flatMap, map, type Principal } from './core/map.js'
export { lenient, optional } from './core/optional.js'
export { recoverUnavailable, timeout } from './core/outage.js'
export { UnavailableError } from './core/Result.js'
export { remembered, type Remembered, type RememberedOptions } from './guesses/remembered.js'
export { throttled, type ThrottledOptions } from './guesses/throttled.js'
export type { Guess } from './guesses/Guess.js'
export type { Limiter, Limiters } from './guesses/Limiter.js'
export { also, type Also, type Requirement } from './core/Requirement.js'
export { describedAs } from './core/map.js'
export type { AuthenticatorOptions } from './core/Authenticator.js'
export type { Evaluation } from './core/Result.js'
export type { AnonymousOf, PrincipalFromAnswer } from './core/Result.js'
export type { AllOf, AnyOf, Description, Leaf, Optional, Scoped } from './core/Description.js'
export type {
  ApiKeyScheme,
  HttpScheme,
  MutualTlsScheme,
  OAuth2Scheme,
  OpenIdConnectScheme,
  SecurityScheme,
} from './core/Description.js'

/** The failures: their constructors, order and semigroup. */
export const AuthError = AuthErrors
/** Why a request was not authenticated. */
export type AuthError = AuthErrors.AuthError
export type {
  Absent,
  Expired,
  Forged,
  Insufficient,
  Invalid,
  Malformed,
  Raised,
  Throttled,
  Unavailable,
} from './core/AuthError.js'

/** What a 401 offers: constructor and rendering. */
export const Challenge = Challenges
/** A scheme and its parameters. */
export type Challenge = Challenges.Challenge

// what clients send
export { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from './core/Credentials.js'
export { fromAuthorization, fromCookie, fromHeader, fromQuery, type Sent } from './core/RequestFields.js'
export { constantTimeEqual } from './core/data.js'

// the kinds
export { apiKeyCookie, apiKeyHeader, apiKeyQuery, type ApiKeyOptions } from './kinds/apiKey.js'
export { formAuth, type FormAuthOptions, type FormFields } from './kinds/form.js'
export { httpBasicAuth, type HttpBasicAuthOptions } from './kinds/http.js'
export { httpBearer, type HttpBearerOptions } from './kinds/http.js'
export {
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  sessionLoginAuthSuperuser,
  SessionUser,
  type RefuseOptions,
  type SessionAuthOptions,
  type SessionData,
  type UserOf,
} from './kinds/session.js'
export type { SessionKindOptions } from './kinds/session.js'

// Koa
export { withAuth } from './koa/withAuth.js'
export { guardApp, type GuardAppOptions } from './koa/guardApp.js'
export type { BehindGuard, GuardOptions } from './koa/steps.js'
export { authSettings, type AuthSettings } from './koa/settings.js'
export type {
  AlsoGuard,
  AnyGuard,
  Auth,
  AuthContext,
  AuthRouter,
  Both,
  Guard,
  Handler,
  SeenBehind,
  Verb,
} from './koa/AuthRouter.js'

// the description of an operation; the document is in koa-with-auth/openapi
export { operation, type Described, type OperationOptions } from './openapi/operation.js'

// the application
export { apiApp, type ApiApp, type ApiAppOptions, type ApiDocsOptions } from './apiApp.js'
export { onError, type Answer as ExceptionAnswer, type ExceptionClass, type ExceptionHandler } from './core/Settings.js'
export {
  defaultErrorMapper,
  perFailure,
  type AuthResponse,
  type ErrorMapper,
  type FailureMappers,
} from './core/Settings.js'
