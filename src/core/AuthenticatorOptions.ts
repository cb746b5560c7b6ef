/**
 * The options of `authenticator` (Authenticator.ts), which makes an authenticator for one kind of credential: where it
 * is sent, what it must look like, and who decides about it.
 */
import type * as O from 'fp-ts/lib/Option.js'
import type * as t from 'io-ts'
import type { Request } from 'koa'
import { absent, type AuthError } from './AuthError.js'
import { make, type Challenge } from './Challenge.js'
import { credentialHook } from './credentialHook.js'
import {
  checkOptions,
  credential,
  hook,
  maybe,
  schemeName,
  string,
  unchecked,
  type Check,
  type Checks,
} from './options.js'
import type { SecurityScheme } from './SecurityScheme.js'

/** The options of a kind of authenticator. The built-in kinds are made with the same options. */
export interface AuthenticatorOptions<X, C, R> {
  /** How OpenAPI lists it. */
  readonly scheme?: SecurityScheme | undefined
  /** Returns the scheme, if it depends on the application. Called without a request if the document is made without one. */
  readonly schemeFor?: ((request?: Request) => SecurityScheme) | undefined
  /** What OpenAPI calls the scheme: letters, digits, `.`, `-` and `_`. Without it a name is derived. */
  readonly schemeName?: string | undefined
  /** What the audit says that the principal must be, such as `a superuser`. */
  readonly demands?: string | undefined
  /** What a 401 offers: one challenge, or one for every failure. */
  readonly challenge: Challenge | ((error: AuthError) => Challenge)
  /** Whether browsers send the credential by themselves (cookies, Basic). If so, writes from other sites are refused. */
  readonly ambient: boolean
  /** Reads the credential from the request. `none` means absent: the hook is not called. */
  readonly extract: (request: Request) => O.Option<X>
  /** The codec of the credentials. A value that it refuses is malformed. Without a codec, `''` and arrays (sent twice) are malformed. */
  readonly credentials?: t.Decoder<unknown, C> | undefined
  /** The longest credential, in characters; a longer one is malformed. Default 8192. */
  readonly maxLength?: number | undefined
  /** Decides who the request acts for. Returns a value, a promise, an Option, an Either or a TaskEither. */
  readonly authenticate: (request: Request, credentials: C) => R
}

const saysWhoSendsIt: Check = (place, value) => {
  if (typeof value === 'boolean') return
  throw new TypeError(`${place} must say whether browsers send the credential by themselves: true or false`)
}

const challengeOf: Check = (place, value) => {
  // Safe: what it returns is checked
  const bare: unknown = typeof value === 'function' ? (value as (error: AuthError) => unknown)(absent) : value
  if (typeof bare !== 'object' || bare === null) {
    throw new TypeError(`${place} must be a challenge: Challenge.make('Scheme')`)
  }
  // Safe: `make` refuses values that are not strings
  const { scheme, parameters } = bare as Challenge
  make(scheme, parameters)
}

const decoder: Check = (place, value) => {
  if (typeof value === 'object' && value !== null && 'validate' in value) return
  throw new TypeError(`${place} must be an io-ts codec, such as HeaderKey`)
}

const checks: Checks<AuthenticatorOptions<unknown, unknown, unknown>> = {
  scheme: unchecked,
  schemeFor: maybe(hook(1)),
  schemeName: maybe(schemeName),
  demands: maybe(string),
  ambient: saysWhoSendsIt,
  extract: hook(1),
  authenticate: credentialHook(2),
  challenge: challengeOf,
  credentials: maybe(decoder),
  maxLength: credential.maxLength,
}

/** Checks the options, and returns them without those that are `undefined`. */
export const checkKind = <X, C, R>(options: AuthenticatorOptions<X, C, R>): AuthenticatorOptions<X, C, R> =>
  checkOptions('authenticator', options, checks)
