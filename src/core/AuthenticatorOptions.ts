/**
 * One kind of credential, as its author writes it down: where it stands, what it must look like, and who decides about it.
 *
 * `authenticator` (Authenticator.ts) makes an authenticator of it.
 */
import type * as O from 'fp-ts/lib/Option.js'
import type * as t from 'io-ts'
import type { Request } from 'koa'
import type { AuthError } from './AuthError.js'
import type { Challenge } from './Challenge.js'
import type { SecurityScheme } from './SecurityScheme.js'

/** What makes a kind of authenticator; the built-in ones are made of the same. */
export interface AuthenticatorOptions<X, C, R> {
  /** How OpenAPI lists it. */
  readonly scheme?: SecurityScheme
  /** The scheme, where the application decides; called without a request for what is documented without one. */
  readonly schemeFor?: (request?: Request) => SecurityScheme
  /** What OpenAPI calls the scheme: letters, digits, `.`, `-` and `_`. Without it a name is derived. */
  readonly schemeName?: string
  /** What must be true of who it is, beside being known, for the audit: `a superuser`. */
  readonly demands?: string
  /** What a 401 offers: one challenge, or one for every failure. */
  readonly challenge: Challenge | ((error: AuthError) => Challenge)
  /** Whether browsers send the credential by themselves (cookies, Basic): then other sites' writes are refused. */
  readonly ambient: boolean
  /** Finds what the client sent. `none`: absent, the hook is not called. */
  readonly extract: (request: Request) => O.Option<X>
  /** The codec of the credentials; what it refuses is malformed. Without one: `''` and arrays (sent twice) are. */
  readonly credentials?: t.Decoder<unknown, C>
  /** The longest credential, in characters; a longer one is malformed. Default 8192. */
  readonly maxLength?: number | undefined
  /** Decides: a value, a promise, an Option, an Either or a TaskEither. */
  readonly authenticate: (request: Request, credentials: C) => R
}
