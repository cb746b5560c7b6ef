/**
 * The functions that sign users in and out, as types, and the context that they take.
 */
import type { Request } from 'koa'

/** Any context of Koa's or of a router's. */
export interface WithRequest {
  readonly request: Request
}

/** The context of a request. Throws a TypeError for anything else. */
export const contextOf = (place: string, given: WithRequest | undefined): Request['ctx'] => {
  const ctx = given?.request?.ctx
  if (ctx === undefined) throw new TypeError(`${place}: ctx must be the context of a request`)
  return ctx
}

/** What a sign-in takes along. */
export interface LogInOptions {
  /** Keys of the old session that the new one keeps, such as a basket. Default none. */
  readonly keep?: ReadonlyArray<string> | undefined
}

/** How an application signs its users in and out. */
export interface Signing<U> {
  /**
   * Signs a user in. It refuses a request that another site made the browser send, gives the session a new id, drops
   * its data except `keep`, and resolves when the store has saved it. Rejects with `SignInRefused`, which is answered
   * with 403 or 503.
   *
   * A request by GET, HEAD or OPTIONS from another site is refused unless it is a navigation (a link, a redirect).
   */
  readonly logIn: (ctx: WithRequest, user: U, options?: LogInOptions) => Promise<void>
  /** Ends the session, also for copies of its cookie and for requests that are under way. Rejects as `logIn` does. */
  readonly logOut: (ctx: WithRequest) => Promise<void>
  /** Ends all sessions of a user, who is named by the identifier. Rejects with `SignInRefused` in an outage. */
  readonly logOutEverywhere: (id: string) => Promise<void>
}
