/**
 * One application with sessions for one test. Its users and its store are watched, and its visitors keep their cookies.
 */
import Router from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware, Next } from 'koa'
import { authSettings, sessionAuth, sessionAuthIsStaff, sessionAuthSuperUser, withAuth } from 'koa-with-auth'
import { sessions, type SessionsOptions, type Signing } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { aroundStore, type StoreMethod } from '../stores/aroundStore.js'
import { cookieJar } from '../servers/cookieJar.js'
import {
  askPort,
  challenge,
  expectDenied,
  expectPassed,
  running,
  type Answer,
  type Running,
  type Sending,
} from '../models/behavior.js'

/** The id in the cookie of a session. */
export const idIn = (cookie: string | undefined): string => cookie?.split('~')[0] ?? ''

/** The user who signs in, if a test says nothing else. */
export const anna = { username: 'anna', isActive: true }

/** Long enough to be accepted. */
export const strongKey = 'a signing key that is long enough, for tests'

export interface User {
  readonly username: string
  readonly isSuperuser?: boolean
  readonly isStaff?: boolean
  readonly isActive?: boolean
}

/** A store that records its calls as `get`, `insert`, ..., and can be made to fail. */
const watchedStore = (store: () => Store) => {
  const asked: string[] = []
  /** The keys of sessions that it got. */
  const ids = new Set<string>()
  /** What a method does instead of asking the store; `undefined` means that it works. */
  const instead: { [M in StoreMethod]?: Store[M] | undefined } = {}
  const watched = aroundStore(store, (method, args, ask) => {
    asked.push(method)
    for (const key of [args[0]].flat().map(String)) if (key.startsWith('koa-with-auth/session/')) ids.add(key)
    const own = instead[method]
    return own === undefined ? ask() : Reflect.apply(own, undefined, args)
  })
  return { ...watched, asked, ids, instead }
}

export type SessionsApp = Awaited<ReturnType<typeof sessionsApp>>

export interface SessionsAppOptions extends Omit<SessionsOptions<User | undefined>, 'loadUser' | 'store'> {
  readonly keys?: Koa['keys']
  /** What is mounted above and below the sessions. */
  readonly above?: (app: Koa) => void
  readonly below?: (app: Koa, signing: Signing<User>) => void
  /** Public operations below the sessions, by their paths. */
  readonly acts?: Readonly<Record<string, (ctx: Context, signing: Signing<User>, next: Next) => unknown>>
  readonly trustedOrigins?: ReadonlyArray<string>
}

/** Serves an application with sessions until the test has finished. */
export const sessionsApp = async (
  given?: () => Store,
  { keys = [strongKey], above, below, acts = {}, trustedOrigins = [], ...options }: SessionsAppOptions = {},
) => {
  const kept = memoryStore()
  const users = new Map<string, User>([
    ['anna', anna],
    ['sam', { username: 'sam', isStaff: true }],
    ['root', { username: 'root', isSuperuser: true }],
  ])
  const store = watchedStore(given ?? (() => kept))
  let loaded = 0
  let made: { readonly app: Koa; readonly signing: Signing<User> } | undefined
  const gate = gates()
  const api = await running((app, answering) => {
    app.keys = keys
    above?.(app)
    const loadUser = async (id: string): Promise<User | undefined> => {
      loaded++
      return users.get(id)
    }
    const signing = sessions(app, { ...options, loadUser, store })
    made = { app, signing }
    app.use(authSettings({ trustedOrigins }))
    below?.(app, signing)
    for (const [path, act] of Object.entries(acts)) app.use(at(path, (ctx, next) => act(ctx, signing, next)))
    const open = withAuth(null)
    const router = new Router()
    router.post('/login', open, async (ctx) => {
      const { user = 'anna', keep } = ctx.query
      await signing.logIn(ctx, users.get(String(user))!, keep === undefined ? {} : { keep: [keep].flat() })
      answering(ctx)
    })
    router.post('/login/throw', open, async (ctx) => {
      await signing.logIn(ctx, users.get('anna')!)
      throw new Error('after a sign-in')
    })
    router.post('/logout', open, async (ctx) => {
      await signing.logOut(ctx)
      answering(ctx)
    })
    router.post('/everywhere', withAuth(sessionAuth()), async (ctx) => {
      await signing.logOutEverywhere(ctx.request.auth.username)
      answering(ctx)
    })
    router.all('/me', withAuth(sessionAuth()), answering)
    router.get('/staff', withAuth(sessionAuthIsStaff()), answering)
    router.get('/super', withAuth(sessionAuthSuperUser()), answering)
    router.get('/open', open, answering)
    // Changes the session of any caller: `/set?basket=pear`
    router.post('/set', open, (ctx) => {
      Object.assign(ctx['session'] as object, ctx.query)
      answering(ctx)
    })
    router.get('/read', open, (ctx) => {
      answering(ctx)
      ctx.body = ctx['session'] as object
    })
    router.post('/throw', open, (ctx) => {
      Object.assign(ctx['session'] as object, ctx.query)
      answering(ctx)
      throw new Error('after a change')
    })
    const more: Readonly<Record<string, (ctx: Context) => unknown>> = {
      '/step': (ctx) => signing.addProof(ctx, { method: 'totp' }),
      '/renew': (ctx) => (ctx['session'] as unknown as { regenerate: () => Promise<void> }).regenerate(),
      '/drop': (ctx) => (ctx['session'] = null),
      '/empty': (ctx) => (ctx['session'] = {}),
      // those of the visitor, or of a user: `/list?of=anna`
      '/list': async (ctx) => (ctx.body = await signing.listSessions(ctx, ctx.query['of'] as string | undefined)),
      '/end': async (ctx) =>
        (ctx.status = (await signing.endSession(String(ctx.query['of']), String(ctx.query['id']))) ? 204 : 404),
    }
    for (const [path, act] of Object.entries(more)) app.use(at(path, act))
    router.all('/slow', open, async (ctx) => {
      await gate.wait()
      Object.assign(ctx['session'] as object, ctx.query)
      answering(ctx)
    })
    app.use(router.routes())
  })
  return {
    ...api,
    ...made!,
    users,
    store,
    /** How often a user was loaded. */
    loaded: () => loaded,
    /** Continues the requests that wait at `/slow`. */
    release: gate.release,
    /** Resolves when a request waits at `/slow`. */
    waiting: gate.waiting,
    visitor: (cookies?: ReadonlyMap<string, string>) => visitor(api, cookies),
  }
}

/** The same, with a visitor who is signed in. */
export const signedInApp = async (...given: Parameters<typeof sessionsApp>) => {
  const site = await sessionsApp(...given)
  const one = site.visitor()
  await one.post('/login')
  return { ...site, one }
}

const signal = () => {
  let give = () => {}
  const given = new Promise<void>((resolve) => (give = resolve))
  return { give: () => give(), given }
}

const gates = () => {
  let arrived = signal()
  let gone = signal()
  return {
    wait: async () => {
      arrived.give()
      await gone.given
    },
    waiting: () => arrived.given,
    release: () => {
      gone.give()
      arrived = signal()
      gone = signal()
    },
  }
}

// --- visitors

/** A public operation at one path, as middleware. */
export const at = (path: string, run: (ctx: Context, next: Next) => unknown): Middleware => {
  const router = new Router().all(path, withAuth(null), async (ctx, next) => {
    ctx.body = 'ok'
    await run(ctx, next)
  })
  // Safe: the routes of a router are middleware
  return router.routes() as Middleware
}

/** The browser of a visitor, reduced to its cookies. */
export interface Visitor {
  readonly cookies: Map<string, string>
  readonly ask: (target: string, sending?: Sending) => Promise<Answer>
  readonly post: (path: string, headers?: Readonly<Record<string, string>>) => Promise<Answer>
  /** Another one with the same cookies, as someone who copied them. */
  readonly copy: () => Visitor
  readonly header: () => string
}

/** A browser for a port of the loopback address. */
export const visitorOf = (port: number): Visitor =>
  visitor({ ask: async (path = '/', sending = {}) => ({ ...(await askPort(port, path, sending)), seen: [] }) })

const visitor = (api: Pick<Running, 'ask'>, own: ReadonlyMap<string, string> = new Map()): Visitor => {
  const { cookies, header, take } = cookieJar(own)
  const ask = async (path: string, { headers, ...sending }: Sending = {}): Promise<Answer> => {
    const answer = await api.ask(path, {
      ...sending,
      headers: { ...(cookies.size > 0 && { Cookie: header() }), ...headers },
    })
    take(setCookies(answer))
    return answer
  }
  return {
    cookies,
    ask,
    post: (path, headers = {}) => ask(path, { method: 'POST', headers }),
    copy: () => visitor(api, cookies),
    header,
  }
}

/** The lines of `Set-Cookie`. */
export const setCookies = ({ headers }: Answer): ReadonlyArray<string> => headers['set-cookie'] ?? []

/** How long the browser keeps the cookie of a session, in milliseconds; NaN: until it is closed. */
export const keptFor = (answer: Answer): number => {
  const line = setCookies(answer).find((one) => one.startsWith('session=')) ?? ''
  return Date.parse(/expires=([^;]+)/i.exec(line)?.[1] ?? '') - Date.now()
}

/** The same in days. */
export const daysOf = (answer: Answer): number => Math.round(keptFor(answer) / 86_400_000)

/** Expects that the operation at `/me` got this user. */
export const expectSignedIn = async (visitor: Visitor, user: User): Promise<void> =>
  expectPassed(await visitor.ask('/me'), user)

/** Expects that the operation at `/me` did not run: 401, with a challenge. */
export const expectAnonymous = async (visitor: Visitor): Promise<void> =>
  expectDenied(await visitor.ask('/me'), 401, [challenge.session])
