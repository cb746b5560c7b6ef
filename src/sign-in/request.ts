/**
 * A request of a ceremony: in which application it runs, from which browser it comes, whether its user visits a page, and
 * its body.
 */
import type { IncomingMessage } from 'node:http'
import { finished as hasEnded } from 'node:stream'
import * as O from 'fp-ts/lib/Option.js'
import type { Context, Request } from 'koa'
import { isForgedChange, isSafe } from '../core/CrossOrigin.js'
import { ownField, ownOrGetter } from '../core/data.js'
import { settingsOf } from '../core/Exchange.js'
import { fromNow, memory, type Memory } from '../core/memory.js'
import { isGiven } from '../core/options.js'
import { fromCookie } from '../core/RequestFields.js'
import { mac, randomId } from '../crypto/secrets.js'
import { clientAddress } from '../guesses/addresses.js'
import { requestSessionOf, type RequestSession } from '../sessions/RequestSession.js'
import { bearerFix } from '../sessions/SignIn.js'
import { originFor } from '../sessions/Origin.js'
import { idsIn, isUsedIn } from '../stores/oneTimeIds.js'
import type { SessionHost } from '../sessions/SignInList.js'
import { ceremonies } from './ceremony.js'
import { localPath, type AnyKind, type Incoming } from './Kind.js'

// --- the application

/** A request, and the application that it is for. */
export interface Visit {
  readonly ctx: Context
  /** A token carries the sign-in; left out: the cookie. */
  readonly as: 'bearer' | undefined
  readonly ceremonies: ReturnType<typeof ceremonies>
  readonly session: RequestSession
  readonly host: SessionHost
}

const ceremoniesOf = new WeakMap<SessionHost, Memory<Visit['ceremonies']>>()

// Of one application
const ORIGINS = 1000

const isLoopbackHost = (host: string): boolean =>
  /^(?:(?:[a-z0-9-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/.test(host)

const applicationOrigin = ({ origin, isProduction }: SessionHost, { request }: Context, isNeeded: boolean): string => {
  if (origin !== undefined) return originFor(origin, request) ?? misdirected(request)
  if (!isProduction && isLoopbackHost(request.host)) return `${request.protocol}://${request.host}`
  if (!isNeeded) return ''
  throw new Error(
    'koa-with-auth/sign-in: write sessions(app, { origin: "https://shop.example" }), the public origin of the application; it is never read from the Host field',
  )
}

// RFC 9110 §15.5.20
const misdirected = ({ ctx }: Request): never => ctx.throw(421)

/** Throws for an application without sessions, without tokens that `as` needs, or without an origin, unless nothing that goes out has it. */
export const visitOf = (caller: string, ctx: Context, as: Visit['as'], needsOrigin = true): Visit => {
  const session = requestSessionOf(ctx)
  const { host } = session
  if (host === undefined) {
    throw new Error(
      `${caller}: call sessions(app, { origin, ... }) of koa-with-auth/sessions before the routers are mounted`,
    )
  }
  if (as === 'bearer' && !host.hasTokens) throw new TypeError(`${caller}, { as: 'bearer' }: ${bearerFix}`)
  const origin = applicationOrigin(host, ctx, needsOrigin)
  const known = ceremoniesOf.get(host) ?? memory({ size: ORIGINS, maxAge: Infinity, dropsFirst: 'oldest' })
  ceremoniesOf.set(host, known)
  const made = known.get(origin) ?? ceremonies({ ...host, origin, ids: idsIn(host.store, host.name) })
  known.set(origin, fromNow(made))
  return { ctx, as, ceremonies: made, session, host }
}

/** The user of a beginning or an answer, by the session of the request that the route is for. */
export const presentUser = ({ ctx, as, session }: Visit): string | undefined =>
  as === 'bearer' && !session.token ? undefined : session.present(ctx)?.id

/** Whether a user is known, and not active. A flag that cannot be read is for the guards, whose 500 names it. */
export const isInactive = ({ session: { rights } }: Visit, user: unknown): boolean =>
  typeof user === 'object' && user !== null && rights.mistakeOf(user) === undefined && !rights.isActive(user)

// A kind without the properties that all objects of a process inherit, after a merge has polluted their prototype
const withoutInherited = <K extends object>(kind: K): K => {
  const inherited = Object.keys(Object.prototype).filter((name) => !isGiven(kind, name))
  if (inherited.length === 0) return kind
  // Safe: the same kind; the properties that are left out were none of its members
  return Object.assign(Object.create(kind) as K, Object.fromEntries(inherited.map((name) => [name, undefined])))
}

const kindsOf = new WeakMap<SessionHost, Map<string, object>>()

/**
 * A kind as an application uses it. Throws a TypeError for the second of two kinds with one name: the beginning of the first
 * would be finished by the other, which may be weaker.
 */
export const usedIn = <K extends { readonly name: string }>({ host }: Visit, kind: K): K => {
  const kinds = kindsOf.get(host) ?? new Map<string, object>()
  kindsOf.set(host, kinds)
  if ((kinds.get(kind.name) ?? kind) !== kind) {
    throw new TypeError(
      `begin, finish, askSecondFactor: two different kinds are called "${kind.name}", so each would finish sign-ins of the other; use one value for all routes, or give one kind another { name }, callback or rp`,
    )
  }
  kinds.set(kind.name, kind)
  return withoutInherited(kind)
}

// --- the browser

const COOKIE_DAY = 86_400_000
const HOUR = 3_600_000

const cookieOf = ({ https }: SessionHost): string => (https === true ? '__Host-browser' : 'browser')

/**
 * The secret that a browser sent: a handle opens only in the browser that began. Of two cookies with this name, one may be
 * a forgery, so there is none.
 */
export const browserOf = ({ ctx, host }: Visit): string | undefined => {
  const sent = fromCookie(cookieOf(host))(ctx.request)
  return O.isSome(sent) && typeof sent.value === 'string' && /^[A-Za-z0-9_-]{43}$/.test(sent.value)
    ? sent.value
    : undefined
}

// The secrets that responses set, by their contexts
const made = new WeakMap<Context, string>()

/**
 * The secret of a browser, which is renewed or made. There is one cookie for a browser, however many ceremonies, because
 * another cookie would end the ceremonies that are pending in other tabs.
 */
export const browserFor = (visit: Visit, lifetime: number): string => {
  const { ctx, host } = visit
  const browser = browserOf(visit) ?? made.get(ctx) ?? randomId()
  made.set(ctx, browser)
  ctx.cookies.set(cookieOf(host), browser, {
    httpOnly: true,
    sameSite: 'lax',
    secure: host.https ?? ctx.secure,
    path: '/',
    signed: false,
    overwrite: true,
    maxAge: Math.max(COOKIE_DAY, lifetime + HOUR),
  })
  return browser
}

// Browsers of different ages announce a prefetch or a preview in different fields
const prefetches = ['Sec-Purpose', 'Purpose', 'X-Purpose', 'X-Moz']

// Whether a page, or a script of it, sent a request: no prefetch, image or frame
const isOfPage = ({ request }: Context): boolean =>
  ['', 'document', 'empty'].includes(request.get('Sec-Fetch-Dest')) &&
  prefetches.every((name) => request.get(name) === '')

// HEAD, a prefetch, an image and a frame must neither begin nor finish anything, on the same site, too
const isNoVisit = (ctx: Context): boolean => isSafe(ctx.method) && (ctx.method !== 'GET' || !isOfPage(ctx))

/**
 * Whether another site caused a request, or no user visits a page by it. A beginning must be of a page with any method:
 * the user does not see where a form in a frame leads.
 */
export const isRefused = ({ ctx, as }: Visit, role?: 'begin'): boolean =>
  (role === 'begin' && !isOfPage(ctx)) ||
  isNoVisit(ctx) ||
  // a token is of no use to a page that cannot read the response
  (as === undefined && isForgedChange(ctx.request, settingsOf(ctx.request)))

const MAX_FINISHED = 30

// How long another answer of the same browser may take that was sent at the same time
const ANSWER_AT_ONCE = 5000

/**
 * The ceremonies that this browser has finished, by their ids: an answer that comes again leads where it led. Those that sign in are
 * remembered by the session, and the links that any browser may press by the store, under a MAC of the browser's own secret.
 */
export const finishedHere = (visit: Visit, { bound, lifetime }: Pick<AnyKind, 'bound' | 'lifetime'>) => {
  const { ctx, session, host } = visit
  const { finished } = host
  const ids = idsIn(host.store, host.name)
  const linkOf = (browser: string, id: string): string => mac(browser, `finished ${id}`)
  return {
    has: async (id: string): Promise<boolean> => {
      if ((finished.get(id)?.until ?? 0) > Date.now()) return true
      if (bound !== false) return session.details(ctx).finished?.includes(id) === true
      const browser = browserOf(visit)
      return browser !== undefined && isUsedIn(host.store, host.name, linkOf(browser, id))
    },
    add: async (id: string, user: string | undefined): Promise<void> => {
      const now = Date.now()
      for (const [one, { until }] of finished) if (until <= now) finished.delete(one)
      finished.set(id, { until: now + ANSWER_AT_ONCE, user })
      const details = session.details(ctx)
      if (bound !== false) {
        session.bindAnew(ctx, { ...details, finished: [...(details.finished ?? []), id].slice(-MAX_FINISHED) })
      } else if (!ctx.headerSent) await ids.use(linkOf(browserFor(visit, lifetime), id), lifetime)
    },
  }
}

// --- bodies

const MAX_BODY_LENGTH = 65_536

type BodyMembers = Incoming['body']

const noMembers: BodyMembers = Object.freeze(Object.create(null) as Record<string, unknown>)

/**
 * The members of a JSON object, or the fields of a form; without a prototype. A field that was sent twice is an array,
 * which no kind takes. Another body, or none, has no members. Throws an HTTP error 413 above 64 kB, and 400 for a
 * body that is no JSON and for more than 100 members or fields.
 */
export const membersSent = async (ctx: Context): Promise<BodyMembers> => {
  const body = await readBody(ctx)
  return typeof body === 'number' ? ctx.throw(body) : body
}

/**
 * A request as kinds see it. Throws the errors of `membersSent` where a ceremony begins. An answer whose body cannot be read has no
 * members: it is refused like any other that is wrong.
 */
export const incomingOf = async (ctx: Context, role: 'begin' | 'finish'): Promise<Incoming> => {
  const read = role === 'begin' ? await membersSent(ctx) : await readBody(ctx)
  return {
    method: ctx.method,
    path: ctx.path,
    mount: mountPrefix(ctx),
    query: new URLSearchParams(ctx.querystring),
    body: typeof read === 'number' ? noMembers : read,
    principal: ownField(ctx.request, 'auth'),
    address: clientAddress(ctx.request),
  }
}

/** The path that a request says, in its body or its query. One that comes twice is none, but for the same in both. */
export const returnToIn = (body: BodyMembers, query: URLSearchParams, name = 'returnTo'): unknown => {
  const [path, ...more] = query.getAll(name)
  const own = body[name] ?? path
  return more.length > 0 || own !== (path ?? own) ? undefined : own
}

// The status if it cannot be read
const readBody = async (ctx: Context): Promise<BodyMembers | 400 | 413> => {
  if (ctx.method === 'GET' || ctx.method === 'HEAD') return noMembers
  // express.json(), or a host of functions, may have read the body before Koa
  const parsed = ownOrGetter(ctx.request, 'body') ?? ownOrGetter(ctx.req, 'body')
  if (parsed !== undefined) return bodyMembers(parsed)
  const isJson = ctx.is('json', '+json')
  if (isJson === false && ctx.is('urlencoded') === false) return noMembers
  const text = Number(ctx.get('Content-Length')) > MAX_BODY_LENGTH ? undefined : await bodyText(ctx.req)
  if (text === undefined) return 413
  if (isJson === false) return formFields(text)
  if (text === '') return noMembers
  try {
    return bodyMembers(JSON.parse(text))
  } catch {
    return 400
  }
}

// A sign-in has a few of them, and V8 copies thousands of names that are numbers slowly
const MAX_MEMBERS = 100

const bodyMembers = (u: unknown): BodyMembers | 400 => {
  if (typeof u !== 'object' || u === null || Array.isArray(u)) return noMembers
  if (Object.keys(u).length > MAX_MEMBERS) return 400
  // Safe: an object without a prototype gets the members
  return Object.assign(Object.create(null) as Record<string, unknown>, u)
}

// One walk: `getAll` for each name takes quadratic time
const formFields = (text: string): BodyMembers | 400 => {
  // counted before they are parsed: for fields without "=", Node 26 takes quadratic time
  if (text.split('&').filter((field) => field !== '').length > MAX_MEMBERS) return 400
  const form = new URLSearchParams(text)
  // Safe: an object without a prototype has no members yet
  const fields = Object.create(null) as Record<string, unknown>
  for (const [name, value] of form) {
    const before = fields[name]
    fields[name] = before === undefined ? value : [before, value].flat()
  }
  return fields
}

// `undefined` for a body that is too long. Its rest is received and thrown away, because a response on a connection that was cut
// off does not arrive
const bodyText = (request: IncomingMessage): Promise<string | undefined> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer | string) => {
      const bytes = Buffer.from(chunk)
      length += bytes.length
      if (length <= MAX_BODY_LENGTH) chunks.push(bytes)
      else resolve(undefined)
    })
    // also for a body that other code has read to its end
    hasEnded(request, { writable: false }, (error) =>
      error ? reject(error) : resolve(Buffer.concat(chunks).toString()),
    )
  })

// The longest concealed field
const MAX_CONCEALED = 2000

// Stands for the browser, because a POST of another site comes without its cookies
const POSTED = 'posted'

// The longest query that a posted answer becomes: servers and proxies refuse a longer request line
const MAX_POSTED = 8192

/** The path as the browser sent it: `ctx.path` has lost the prefix of a mounted application. */
export const sentPath = ({ originalUrl }: Context): string => {
  const base = 'https://local.invalid'
  return URL.canParse(originalUrl, base) ? localPath(new URL(originalUrl, base).pathname) : '/'
}

const mountPrefix = (ctx: Context): string => {
  const sent = sentPath(ctx)
  return sent.endsWith(ctx.path) ? sent.slice(0, -ctx.path.length) : ''
}

type Posted = Pick<AnyKind, 'posted' | 'concealed'>

/**
 * The address of the GET that follows a POST of another site: the same path, with the fields of the kind as its query. `undefined`
 * if they cannot be a handle.
 */
export const postedAddress = async (
  { ctx, ceremonies }: Visit,
  { posted = [], concealed = [] }: Posted,
): Promise<string | undefined> => {
  const body = await membersSent(ctx)
  const query = new URLSearchParams()
  for (const name of posted) {
    const value = body[name]
    if (value === undefined) continue
    if (typeof value !== 'string') return undefined
    query.set(name, value)
  }
  for (const name of concealed) {
    const value = body[name]
    if (typeof value === 'string' && value.length <= MAX_CONCEALED) query.set(name, ceremonies.conceal(POSTED, value))
  }
  const sent = query.toString()
  return sent.length > MAX_POSTED ? undefined : `${sentPath(ctx)}?${sent}`
}

/** Decrypts the concealed fields of a query. A field that was not encrypted here is removed. */
export const revealPosted = ({ ceremonies }: Visit, { query }: Incoming, { concealed = [] }: Posted): void => {
  for (const name of concealed) {
    const value = ceremonies.reveal(POSTED, query.get(name) ?? '')
    query.delete(name)
    if (value !== undefined) query.set(name, value)
  }
}
