/** The options of `sessions(app, options)`, their checks and their defaults. Wrong options are a TypeError. */
import type Koa from 'koa'
import type { Request } from 'koa'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { ownOrGetter } from '../core/data.js'
import * as is from '../core/checks.js'
import { checkOptions, token, type Check, type Checks } from '../core/options.js'
import { keysFix, strengthOf } from '../crypto/appKeys.js'
import { warnOfShortKey } from '../kinds/plainSession.js'
import { rightsChecks, rightsFrom, rightsInWords, type RightsOptions } from '../kinds/sessionUser.js'
import { signalsLike, type Signals } from '../signals/signals.js'
import { memoryStore } from '../stores/memoryStore.js'
import { storeLike, type Store } from '../stores/Store.js'
import { bearerLike, bearerOf, type BearerOptions } from './Bearer.js'
import { textsByLanguage, type Pages, type PageTexts } from './Page.js'
import { checkSameSite, domainName, sessionCookieOf, warnOfHttp } from './SessionCookie.js'
import { originLike, type Origin } from './Origin.js'
import { programName } from './programName.js'

/** How an application keeps its sessions. All times are in milliseconds. */
export interface SessionsOptions<R> extends RightsOptions<PrincipalFromAnswer<R>> {
  /**
   * Loads a user by the identifier in the session, at each request that needs to know who is signed in. It returns a value, a promise, an
   * Option, an Either or a TaskEither. The result is the principal; `undefined` refuses. A user that can never sign in (no `username` and
   * no `identify`, or an `isActive` that is not a boolean and no option `isActive`) does not compile, and is a 500 that names the field.
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
  /**
   * Where sessions, revocation stamps and lists are kept; several applications may share it. Default: in memory. If NODE_ENV is
   * `production`, there is no default.
   */
  readonly store?: Store | undefined
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
  /** The cookie's name. Default `session`; with `https: true` `__Host-session`, and `__Secure-session` if there is a `domain`. */
  readonly cookieName?: string | undefined
  /**
   * The host name, such as `shop.example`, whose subdomains get the cookie, too. Leave it out if one host serves all. Its price: each
   * subdomain can read the cookie, and so act as the user. Each can write one, and so sign a visitor in as another user, or lock visitors
   * out (cookie tossing). So no subdomain may be run by others. If you change it, change `cookieName`, because browsers keep both.
   */
  readonly domain?: string | undefined
  /**
   * Whether the cookie is sent when a link on another site is followed (`lax`, the default) or not (`strict`). `none`: also in frames
   * and for front ends of other sites. It needs `https: true`, and `authSettings({ trustedOrigins })` mounted before.
   */
  readonly sameSite?: 'lax' | 'strict' | 'none' | undefined
  /** Whether browsers keep it apart for each site that frames the application (CHIPS), with `sameSite: 'none'`. Default `false`. */
  readonly partitioned?: boolean | undefined
  /** The longest session, in characters of its JSON. Default 16384. */
  readonly maxLength?: number | undefined
  /**
   * The public origin of the application, such as `https://shop.example`, for links in mails and redirects of
   * `koa-with-auth/sign-in`. It is never read from the Host field. Without it, signing in by `begin` is a 500, except on
   * loopback in development. A site of several hosts has an array: the origin whose host is that of the request; or a function of the
   * request, which chooses out of a list of its own, and never puts the host of the request together to an origin. It returns
   * `undefined` for a host that it does not know. Then signing in is a 421.
   */
  readonly origin?: Origin | undefined
  /**
   * Whether the cookie outlives the browser, as long as the session lasts. `false`: browsers forget it when they are closed, unless
   * `logIn`, `finish` or `passwordSignIn` says `persistent: true`, for "remember me". Default `true`.
   */
  readonly persistent?: boolean | undefined
  /**
   * Whether the sessions of a user can be listed and ended one by one (`listSessions`, `endSession`). `label` names a session in the list, by at
   * most 256 characters; by default it has no label, because user agent and address are personal data. Default `false`.
   */
  readonly list?: boolean | { readonly label: (request: Request) => string | undefined } | undefined
  /**
   * Whether a sign-in may be carried by a token, for mobile apps, command lines and front ends of another origin: `logIn(ctx, user, {
   * as: 'bearer' })`. Then the session kinds take the cookie or the field `Authorization`; with the field, the cookie does not count.
   * Default `false`: the field is not looked at.
   */
  readonly bearer?: boolean | BearerOptions | undefined
  /** Sends sign-outs to other processes, so that sockets and streams of a session end there, too (`authSignal`). Default: only here. */
  readonly signals?: Signals | undefined
  /**
   * Makes the pages of `koa-with-auth/sign-in`, for browsers that ask for one. It is called with a page as data, and returns the HTML,
   * a promise of it, or `undefined` after `ctx.render`. Default: plain pages of the library, which work without scripts; failures
   * are then those of your `errorMapper`, if there is one.
   */
  readonly pages?: Pages | undefined
  /** The texts of the library's own pages, by language: `{ de: { begin: 'Anmelden' } }`. The request chooses. Default: English. */
  readonly texts?: Readonly<Record<string, PageTexts>> | undefined
}

// --- the options that cannot be left out, depending on the users of the application

type Flag = boolean | null | undefined

// The type of a field in each member of a union of users
type FieldOf<U, K extends PropertyKey> = U extends unknown ? (K extends keyof U ? U[K] : undefined) : never

type Unless<Holds, Option> = Holds extends true ? unknown : Option

type Is<A, B> = [A] extends [B] ? true : false

/**
 * The options that are also required, depending on the result of `loadUser`: `identify` for users without a `username`, and a
 * function for each flag that is not a boolean.
 */
export type NeedsOf<R> = NeedsAsInferred<[R][R extends unknown ? 0 : never]>

type NeedsAsInferred<R> = unknown extends PrincipalFromAnswer<R> ? unknown : Needs<PrincipalFromAnswer<R>>

type Needs<U> = Unless<Is<U, object>, { readonly loadUser: (...args: never[]) => 'loadUser loads an object' }> &
  Unless<Is<FieldOf<U, 'username'>, string>, { readonly identify: (user: U) => string }> &
  Unless<Is<FieldOf<U, 'isActive'>, Flag>, { readonly isActive: (user: U) => boolean }> &
  Unless<Is<FieldOf<U, 'isStaff'>, Flag>, { readonly isStaff: (user: U) => boolean }> &
  Unless<Is<FieldOf<U, 'isSuperuser'>, Flag>, { readonly isSuperuser: (user: U) => boolean }>

// --- their checks

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const listOption: Check = (where, value) => {
  if (typeof value === 'boolean') return
  // Safe: anything but an object is refused
  checkOptions(where, value as object, { label: is.hook(1) })
}

const checks: Checks<SessionsOptions<unknown>> = {
  loadUser: is.hook(1),
  identify: is.maybe(is.hook(1)),
  ...rightsChecks,
  name: is.maybe(is.nonEmpty),
  store: is.maybe(storeLike),
  idle: is.maybe(is.duration),
  absolute: is.maybe(is.duration),
  timeout: is.maybe(is.positive),
  https: is.maybe(is.flag),
  cookieName: is.maybe(is.nameLike(token)),
  domain: is.maybe(domainName),
  sameSite: is.maybe(is.oneOf('lax', 'strict', 'none')),
  partitioned: is.maybe(is.flag),
  maxLength: is.maybe(is.positive),
  origin: is.maybe(originLike),
  persistent: is.maybe(is.flag),
  list: is.maybe(listOption),
  bearer: is.maybe(bearerLike),
  signals: is.maybe(signalsLike),
  pages: is.maybe(is.hook(2)),
  texts: is.maybe(textsByLanguage),
}

const usernameOf = (user: unknown): unknown =>
  typeof user === 'object' && user !== null ? ownOrGetter(user, 'username') : undefined

const warnedOfIdle = new Set<string>()

/** Warns once of an `idle` that was written in seconds: tests have such, production has not. */
export const warnOfIdle = (where: string, idle: number): void => {
  if (idle >= MINUTE || warnedOfIdle.has(where)) return
  warnedOfIdle.add(where)
  const warning = `${where}: a session ends after ${idle / 1000} s without use; idle is in milliseconds`
  process.emitWarning(warning, 'SessionWarning')
}

const defaultStore = (isProduction: boolean): Store => {
  if (!isProduction) return memoryStore()
  throw new TypeError(
    'sessions(app, { store }) is required in production: use sqliteStore, redisStore, postgresStore or mysqlStore of koa-with-auth/stores',
  )
}

/** Checks the application and the options. Throws a TypeError for options that are weak, or cannot work. */
export const checkSessionsOptions = <R>(app: Koa, options: SessionsOptions<R>) => {
  if (typeof app !== 'object' || app === null || typeof app.callback !== 'function') {
    throw new TypeError('sessions(app, options): app must be a Koa application, not a router or an apiApp')
  }
  const given = checkOptions('sessions(app, options)', options, checks)
  const isProduction = app.env === 'production'
  const { identify = usernameOf, name, https = isProduction || undefined } = given
  const cookie = sessionCookieOf(given.cookieName, given.domain, https)
  const { idle = 24 * HOUR, absolute = 7 * 24 * HOUR, timeout = 2000, maxLength = 16_384 } = given
  if (idle > absolute) throw new TypeError('sessions(app, { idle, absolute }): idle must not be longer than absolute')
  const { sameSite = 'lax', partitioned = false } = given
  checkSameSite(app, sameSite, { ...given, https })
  const strength = strengthOf(app.keys)
  if (strength === 'weak') throw new TypeError(`sessions(app): ${keysFix}`)
  if (strength === 'older short') warnOfShortKey(app)
  if (https === false) warnOfHttp()
  if (isProduction) warnOfIdle('sessions(app, { idle })', idle)
  const named = name ?? programName(isProduction)
  return {
    ...given,
    identify,
    // users without `identify` are known by their `username`
    needsUsername: given.identify === undefined,
    rights: rightsFrom('sessions(app, { ... })', given),
    /** The functions behind the rights, for the audit. */
    rightsLabels: rightsInWords(given),
    name: named,
    store: given.store ?? defaultStore(isProduction),
    ...{ idle, absolute, timeout, https, cookie, sameSite, partitioned, maxLength, isProduction },
    persistent: given.persistent ?? true,
    list: given.list !== undefined && given.list !== false,
    bearer: bearerOf(named, given.bearer),
    label: typeof given.list === 'object' ? given.list.label : undefined,
    texts: { ...given.texts },
  }
}
