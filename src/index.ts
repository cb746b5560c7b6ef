/**
 * koa-with-auth: authentication for Koa. An authenticator is written once, as a value; `withAuth` mounts it on the
 * application, a router or one operation.
 *
 * Reading guide: `core/Authenticator.ts` is the main idea. `core/AuthError.ts` says how it fails. `authenticators/` has
 * the kinds, one in each file. `koa/levels.ts` and `koa/guard.ts` bring them to a router.
 */
import type { Authenticator as Decides } from './core/Authenticator.js'
import * as AuthErrors from './core/AuthError.js'
import * as Challenges from './core/Challenge.js'
import * as Authenticators from './core/instances.js'

/** The instances of fp-ts: `Functor`, `Alt`, `getSemigroup`. */
export const Authenticator = Authenticators
/** A function that decides who a request acts for, with a description of what it demands. */
export type Authenticator<P> = Decides<P>

// The same types again, because a compiler cannot write an alias into a user's declarations
/** `Authenticator`, for inferred types in declarations. */
export type { Authenticator as TypedAuthenticator } from './core/Authenticator.js'
/** `AuthError`, for inferred types in declarations. */
export type { AuthError as AnyAuthError } from './core/AuthError.js'
/** `Challenge`, for inferred types in declarations. */
export type { Challenge as AuthChallenge } from './core/Challenge.js'

// the algebra
export {
  authenticator,
  fromFunction,
  isAuthenticator,
  type AuthenticatorLike,
  type PrincipalOf,
} from './core/Authenticator.js'
export { anyOf, type Tagged } from './core/anyOf.js'
export { alt, altW } from './core/alt.js'
export { allOf, type Together } from './core/allOf.js'
export { authorize, requireScopes, type Granted, type RequireScopesOptions } from './core/authorize.js'
export { firstPresent } from './core/firstPresent.js'
export { flatMap, map, type Principal } from './core/map.js'
export { lenient, optional } from './core/optional.js'
export { recoverUnavailable, timeout } from './core/outage.js'
export { UnavailableError } from './core/UnavailableError.js'
export { remembered, type Remembered, type RememberedOptions } from './core/remembered.js'
export { throttled, type ThrottledOptions } from './core/throttled.js'
export type { Guess } from './core/Guess.js'
export type { Limiter, Limiters } from './core/Limiter.js'
export { also, type Also, type Requirement } from './core/Requirement.js'
export { describedAs } from './core/describedAs.js'
export type { AuthenticatorOptions } from './core/AuthenticatorOptions.js'
export type { Evaluation } from './core/Evaluation.js'
export type { AnonymousOf, PrincipalFromAnswer } from './core/PrincipalFromAnswer.js'
export type { AllOf, AnyOf, Description, Leaf, Optional, Scoped } from './core/Description.js'
export type {
  ApiKeyScheme,
  HttpScheme,
  MutualTlsScheme,
  OAuth2Scheme,
  OpenIdConnectScheme,
  SecurityScheme,
} from './core/SecurityScheme.js'

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
export { constantTimeEqual } from './core/constantTimeEqual.js'

// the kinds
export { apiKeyCookie, apiKeyHeader, apiKeyQuery, type ApiKeyOptions } from './authenticators/apiKey.js'
export { httpBasicAuth, type HttpBasicAuthOptions } from './authenticators/httpBasicAuth.js'
export { httpBearer, type HttpBearerOptions } from './authenticators/httpBearer.js'
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
} from './authenticators/session.js'
export type { SessionKindOptions } from './core/session/sessionKind.js'

// Koa
export { withAuth } from './koa/withAuth.js'
export type { BehindGuard, GuardOptions } from './koa/behindGuard.js'
export { authSettings, type AuthSettings } from './koa/authSettings.js'
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
export { apiApp, type ApiApp, type ApiAppOptions, type ApiDocsOptions } from './ApiApp.js'
export {
  onError,
  type Answer as ExceptionAnswer,
  type ExceptionClass,
  type ExceptionHandler,
} from './core/ExceptionHandler.js'
export {
  defaultErrorMapper,
  perFailure,
  type AuthResponse,
  type ErrorMapper,
  type FailureMappers,
} from './core/ErrorMapper.js'
