/**
 * koa-with-auth: authentication for Koa. An authenticator is written once, as a value; `withAuth` mounts it on the
 * application, a router or one operation.
 *
 * Reading guide: `core/Authenticator.ts` is the main idea. `core/AuthError.ts` says how it fails. `kinds/` has
 * the kinds. `koa/levels.ts` and `koa/guard.ts` bring them to a router.
 */
// it listens to guards and levels, and prints warnings
import './koa/development.js'
import * as AuthErrors from './core/AuthError.js'
import * as Challenges from './core/Challenge.js'

// the algebra
export { authenticator, type Authenticator, type AuthenticatorLike, type PrincipalOf } from './core/Authenticator.js'
export type { AuthenticatorOptions } from './core/Authenticator.js'
export { allOf } from './core/allOf.js'
export { anyOf } from './core/lists.js'
export { named } from './core/functionName.js'
export { authorize, requireScopes, type AuthorizeOptions, type RequireScopesOptions } from './core/authorize.js'
export { owned, unchecked, type OwnedOptions } from './core/owned.js'
export type { Principal } from './core/map.js'
export { optional } from './core/optional.js'
export { AuthEndedError } from './core/ends.js'
export { authSignal, untilEnd } from './koa/authSignal.js'
export { UnavailableError } from './core/Result.js'
export { cached, type CachedOptions } from './guesses/cached.js'
export { rateLimit, type RateLimitOptions } from './guesses/rateLimit.js'
export { throttled, type ThrottledOptions } from './guesses/throttled.js'
export type { Guess } from './guesses/Guess.js'
export type { Limiter, Limiters } from './guesses/Limiter.js'
export { also, type Also, type Requirement } from './core/Requirement.js'
export type {
  AllOf,
  AnyOf,
  Description,
  Leaf,
  ObjectRule,
  Optional,
  Scoped,
  UncheckedParameter,
} from './core/Description.js'
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
/** A challenge, which a 401 offers: constructor and rendering. */
export const Challenge = Challenges
/** A scheme and its parameters. */
export type Challenge = Challenges.Challenge
export type {
  Absent,
  Expired,
  FailureReason,
  Forged,
  Insufficient,
  InsufficientReason,
  Invalid,
  Malformed,
  NotFound,
  PlainExpired,
  PlainInvalid,
  Raised,
  Throttled,
  Unavailable,
  Why,
} from './core/AuthError.js'

// what clients send
export type { Schema, StandardSchema } from './core/Schema.js'
export { fromAuthorization, fromCookie, fromHeader, fromQuery, type Sent } from './core/RequestFields.js'
export type { ErrorCode } from './core/data.js'
export { constantTimeEqual } from './crypto/secrets.js'

// the kinds
export { apiKeyCookie, apiKeyHeader, apiKeyQuery, type ApiKeyOptions } from './kinds/apiKey.js'
export { formAuth, type FormAuthOptions } from './kinds/form.js'
export {
  clientCertificate,
  type CertificateHeader,
  type CertificateOwner,
  type CertificateSource,
  type ClientCertificateOptions,
} from './kinds/clientCertificate.js'
export { httpBasicAuth, httpBearer, type HttpBasicAuthOptions, type HttpBearerOptions } from './kinds/http.js'
export { signedLinks, type SignedLink, type SignedLinks, type SignedLinksOptions } from './kinds/signedLinks.js'
export {
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  sessionLoginAuthSuperuser,
  type RefuseOptions,
  type SessionAuthOptions,
  type SessionData,
} from './kinds/session.js'
export type { SessionKindOptions } from './kinds/session.js'

// Koa
export { withAuth } from './koa/withAuth.js'
export { guardApp, type GuardAppOptions } from './koa/guardApp.js'
export type { AfterGuard, GuardOptions } from './koa/withAuth.js'
export { authSettings, type AuthSettings } from './koa/settings.js'
export type { Auth, AuthContext, AuthRouter, Guard, Handler } from './koa/AuthRouter.js'

// the description of an operation; the document is in koa-with-auth/openapi
export { operation, type Described, type OperationOptions } from './openapi/operation.js'

// the application
export { apiApp, type ApiApp, type ApiAppOptions, type ApiDocsOptions } from './apiApp.js'
export { onError, type ExceptionResponder, type ExceptionClass, type ExceptionHandler } from './core/Settings.js'
export {
  defaultErrorMapper,
  perFailure,
  type AuthResponse,
  type ErrorMapper,
  type FailureMappers,
} from './core/Settings.js'

// --- Types that TypeScript writes into your declarations. Do not import them: any version may change them

// The same types again, because a compiler cannot write an alias into a user's declarations
/** TypeScript writes it for `AuthError`. */
export type { AuthError as AnyAuthError } from './core/AuthError.js'
/** TypeScript writes it for `Challenge`. */
export type { Challenge as AuthChallenge } from './core/Challenge.js'
export type { Granted } from './core/granted.js'
export type { Found, ObjectsRequest } from './core/owned.js'
export type { Objects } from './core/Evidence.js'
export type { Finding, Finds, ObjectsOf } from './core/Exchange.js'
export type { Together } from './core/allOf.js'
export type { Tagged } from './core/lists.js'
export type { AnonymousOf, Evaluation, PrincipalFromAnswer } from './core/Result.js'
export type { Cached } from './guesses/cached.js'
export type { FormFields } from './kinds/form.js'
export type { UserOf } from './kinds/session.js'
export type { AlsoGuard, AnyGuard, AlsoPrincipal, PrincipalAfter, RouteMethod } from './koa/AuthRouter.js'
