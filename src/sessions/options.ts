/**
 * The options of `sessions`, and their defaults. Weak options are refused here.
 */
import type Koa from 'koa'
import type { PrincipalFromAnswer } from '../core/PrincipalFromAnswer.js'
import { token } from '../core/fieldSyntax.js'
import {
  checkOptions,
  flag,
  hook,
  maybe,
  nameLike,
  nonEmpty,
  oneOf,
  positive,
  withMethods,
  type Check,
  type Checks,
} from '../core/options.js'
import { warnOfShortKey } from '../core/session/requestSession.js'
import { rightsChecks, rightsFrom, type Rights, type RightsOptions } from '../core/session/Rights.js'
import { keysFix, strengthOf } from '../core/session/signingKeys.js'
import { applicationName } from './applicationName.js'
import { memoryStore } from './memoryStore.js'
import type { SessionStore } from './SessionStore.js'

type Flag = boolean | null | undefined

// The type of a field in each member of a union of users
type FieldOf<U, K extends PropertyKey> = U extends unknown ? (K extends keyof U ? U[K] : undefined) : never

type Unless<Holds, Option> = Holds extends true ? unknown : Option

type Is<A, B> = [A] extends [B] ? true : false

/**
 * What the options must also have, depending on what `loadUser` loads: `identify` for users without a `username`, and a
 * function for each flag that is not a boolean.
 */
export type NeedsOf<R> = NeedsAsInferred<[R][R extends unknown ? 0 : never]>

type NeedsAsInferred<R> = unknown extends PrincipalFromAnswer<R> ? unknown : Needs<PrincipalFromAnswer<R>>

type Needs<U> = Unless<Is<U, object>, { readonly loadUser: (...args: never[]) => 'loadUser loads an object' }> &
  Unless<Is<FieldOf<U, 'username'>, string>, { readonly identify: (user: U) => string }> &
  Unless<Is<FieldOf<U, 'isActive'>, Flag>, { readonly isActive: (user: U) => boolean }> &
  Unless<Is<FieldOf<U, 'isStaff'>, Flag>, { readonly isStaff: (user: U) => boolean }> &
  Unless<Is<FieldOf<U, 'isSuperuser'>, Flag>, { readonly isSuperuser: (user: U) => boolean }>

/** How an application keeps its sessions. All times are in milliseconds. */
export interface SessionsOptions<R> extends RightsOptions<PrincipalFromAnswer<R>> {
  /**
   * Loads a user by the identifier in the session, at each request that needs to know who is signed in. It returns a value, a
   * promise, an Option, an Either or a TaskEither. The result is the principal; `undefined` refuses. A user that can never sign in
   * (no `username` and no `identify`, or an `isActive` that is not a boolean and no option `isActive`) does not compile, and is a
   * 500 that names the field.
   */
  readonly loadUser: (id: string) => R
  /** Returns the identifier of a user, which the session holds and `loadUser` gets. Default: the user's `username`. */
  readonly identify?: ((user: PrincipalFromAnswer<R>) => string) | undefined
  /**
   * The name of the application. Its sessions do not work in an application with another name, even with the same signing keys and
   * the same store. If you change it, every user is signed out. Default: the name in the package.json of the program that runs. So
   * if one package has applications with different users, give each a name.
   */
  readonly name?: string | undefined
  /** Where sessions are kept. Default: in memory. If NODE_ENV is `production`, there is no default. */
  readonly store?: SessionStore | undefined
  /** How long an unused session lasts. Default 24 hours. */
  readonly idle?: number | undefined
  /** How long a session lasts after signing in, used or not. Default 7 days. */
  readonly absolute?: number | undefined
  /** The time limit of the store. Beyond it, the store counts as unavailable. Default 2 seconds. */
  readonly timeout?: number | undefined
  /**
   * Whether browsers use only https. `true`: the cookie is always `Secure`, its name begins with `__Host-`, and a session over http
   * is a 500. `false`: the cookie is never `Secure`, and there is a warning. Default: `true` if NODE_ENV is `production`; otherwise
   * the cookie is `Secure` if the request is.
   */
  readonly https?: boolean | undefined
  /** The cookie's name. Default `session`, with `https: true` `__Host-session`. */
  readonly cookieName?: string | undefined
  /** Whether the cookie is sent when a link on another site is followed (`lax`, the default) or not (`strict`). */
  readonly sameSite?: 'lax' | 'strict' | undefined
  /** The longest session, in characters of its JSON. Default 16384. */
  readonly maxLength?: number | undefined
}

/** The options with their defaults. */
export interface Decided {
  readonly loadUser: (id: string) => unknown
  readonly identify: (user: never) => unknown
  /** Whether users are identified by their `username`. */
  readonly needsUsername: boolean
  readonly rights: Rights
  readonly name: string
  readonly store: SessionStore
  readonly idle: number
  readonly absolute: number
  readonly timeout: number
  readonly https: boolean | undefined
  readonly cookieName: string
  readonly sameSite: 'lax' | 'strict'
  readonly maxLength: number
}

const HOUR = 3_600_000
const MAX_DAYS = 400

const duration: Check = (place, value) => {
  // RFC 6265bis: browsers keep no cookie longer
  if (typeof value === 'number' && value >= 1 && value <= MAX_DAYS * 24 * HOUR) return
  throw new TypeError(`${place} must be a number of milliseconds, at most ${MAX_DAYS} days`)
}

const sessionStore = withMethods(['read', 'insert', 'update', 'end', 'markOf', 'mark'], 'see SessionStore')

const checks: Checks<SessionsOptions<unknown>> = {
  loadUser: hook(1),
  identify: maybe(hook(1)),
  ...rightsChecks,
  name: maybe(nonEmpty),
  store: maybe(sessionStore),
  idle: maybe(duration),
  absolute: maybe(duration),
  timeout: maybe(positive),
  https: maybe(flag),
  cookieName: maybe(nameLike(token)),
  sameSite: maybe(oneOf('lax', 'strict')),
  maxLength: maybe(positive),
}

const usernameOf = (user: unknown): unknown =>
  typeof user === 'object' && user !== null && 'username' in user ? user.username : undefined

/** Checks the application and the options. Throws a TypeError for what is weak, or cannot work. */
export const decided = <R>(app: Koa, options: SessionsOptions<R>): Decided => {
  if (typeof app !== 'object' || app === null || typeof app.callback !== 'function') {
    throw new TypeError('sessions(app, options): app must be a Koa application, not a router or an apiApp')
  }
  const given = checkOptions('sessions(app, options)', options, checks)
  const isProduction = app.env === 'production'
  const { loadUser, identify = usernameOf, name, https = isProduction || undefined } = given
  const { cookieName = https === true ? '__Host-session' : 'session', sameSite = 'lax' } = given
  const { idle = 24 * HOUR, absolute = 7 * 24 * HOUR, timeout = 2000, maxLength = 16_384 } = given
  if (idle > absolute) throw new TypeError('sessions(app, { idle, absolute }): idle must not be longer than absolute')
  if (/^__(?:Host|Secure)-/i.test(cookieName) && https !== true) {
    throw new TypeError(`sessions(app, { cookieName }): browsers take ${cookieName} only over https; set https: true`)
  }
  const strength = strengthOf(app.keys)
  if (strength === 'weak') throw new TypeError(`sessions(app): ${keysFix}`)
  if (strength === 'older short') warnOfShortKey(app)
  const store = given.store ?? defaultStore(isProduction)
  if (https === false) process.emitWarning(insecure, 'SessionWarning')
  return {
    loadUser,
    identify,
    needsUsername: given.identify === undefined,
    rights: rightsFrom('sessions(app, { ... })', given),
    name: name ?? applicationName(),
    store,
    idle,
    absolute,
    timeout,
    https,
    cookieName,
    sameSite,
    maxLength,
  }
}

const insecure =
  'sessions(app, { https: false }): the cookie is never Secure, so it can travel unencrypted; leave https out where browsers use https'

const defaultStore = (isProduction: boolean): SessionStore => {
  if (!isProduction) return memoryStore()
  throw new TypeError(
    'sessions(app, { store }) is required in production: use sqliteStore of koa-with-auth/sessions/sqlite, or redisStore of koa-with-auth/sessions/redis',
  )
}
