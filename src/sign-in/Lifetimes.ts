/**
 * How long the session of a sign-in lasts, where that is not as `sessions(app, { idle, absolute })` says: for "stay signed in".
 * The lifetimes of the first of two factors travel to the second factor.
 */
import * as is from '../core/checks.js'
import { unawaited } from '../core/data.js'
import { checkHook, type Check, type Checks } from '../core/options.js'

/** How long one session lasts, in milliseconds; left out: as long as others. */
export interface Lifetimes {
  readonly idle?: number
  readonly absolute?: number
  /** Whether the cookie outlives the browser. */
  readonly persistent?: boolean
}

/** A number of milliseconds, or a function of the input. A function that returns `undefined` or `false` changes nothing. */
export type Lifetime<D> = number | ((done: D) => number | false | undefined)

/** How long the session of a sign-in lasts. The limits of `logIn` hold. */
export interface LifetimeOptions<D> {
  /** How long it lasts unused, in milliseconds. Default: as `sessions(app, { idle })` says. */
  readonly idle?: Lifetime<D> | undefined
  /** How long it lasts after signing in, used or not. Default: as `sessions(app, { absolute })` says. */
  readonly absolute?: Lifetime<D> | undefined
  /**
   * Whether the cookie outlives the browser, as a value or as a function of the input: for "remember me". Default: as
   * `sessions(app, { persistent })` says.
   */
  readonly persistent?: boolean | ((done: D) => boolean | undefined) | undefined
}

/** What a sign-in makes: a session with a cookie, or a token. */
export interface SignInOptions<D> extends LifetimeOptions<D> {
  /** Keys of the old session that the new session keeps, such as a basket. Default none. */
  readonly keep?: ReadonlyArray<string> | undefined
  /**
   * A token carries the sign-in: the answer is `{ access_token, token_type, expires_in }` (200), and sets no cookie. Needs
   * `sessions(app, { bearer })`, and `as: 'bearer'` where a ceremony begins. `passwordSignIn` has no page then: a GET is a 405. Default:
   * the cookie.
   */
  readonly as?: 'bearer' | undefined
}

const orHook = (check: Check): Check =>
  is.maybe((where, value) => (typeof value === 'function' ? checkHook(where, value, 1) : check(where, value)))

export const carried = is.maybe(is.oneOf('bearer'))

export const signInChecks: Checks<SignInOptions<never>> = {
  idle: orHook(is.duration),
  absolute: orHook(is.duration),
  persistent: orHook(is.flag),
  keep: is.maybe(is.list),
  as: carried,
}

/** The lifetimes of a sign-in, by the options. Throws a TypeError for a result that is no time. */
export const lifetimesFor = <D>(where: string, options: LifetimeOptions<D>, done: D): Lifetimes => {
  const said = (name: 'idle' | 'absolute'): Lifetimes => {
    const given = options[name]
    const value = typeof given === 'function' ? unawaited(given(done)) : given
    if (value === undefined || value === false) return {}
    is.duration(`the result of ${where}({ ${name} })`, value)
    return { [name]: value }
  }
  const { persistent } = options
  const chosen = typeof persistent === 'function' ? unawaited(persistent(done)) : persistent
  if (chosen !== undefined) is.flag(`the result of ${where}({ persistent })`, chosen)
  return { ...said('idle'), ...said('absolute'), ...(chosen !== undefined && { persistent: chosen }) }
}
