/**
 * koa-with-auth/fp: what composes authenticators with fp-ts and io-ts, and what few applications need. An authenticator is a
 * `ReaderTaskEither<Request, AuthError, Principal>`, so fp-ts's own functions take it, too.
 *
 * Reading guide: `core/Authenticator.ts` is the main idea, `core/instances.ts` has the instances.
 */
import type { Authenticator as Decides } from '../core/Authenticator.js'
import * as Authenticators from '../core/instances.js'

/** The instances of fp-ts: `Functor`, `Alt`, `getSemigroup`. */
export const Authenticator = Authenticators
/** A function that decides who a request acts for, with a description of what it demands. */
export type Authenticator<P> = Decides<P>

export { fromFunction, isAuthenticator } from '../core/Authenticator.js'
export { alt, altW, firstPresent } from '../core/lists.js'
export { describedAs, flatMap, map } from '../core/map.js'
export { lenient } from '../core/optional.js'
export { recoverUnavailable, timeout } from '../core/outage.js'

export { BasicCredentials, BearerToken, CookieKey, HeaderKey, QueryKey } from '../core/Credentials.js'
