/**
 * A site whose users sign in with providers, until the test has finished. An identity that has no account gets one, as
 * `<name of the kind>-<subject>`.
 */
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { authSettings, defaultErrorMapper, sessionAuth, withAuth } from 'koa-with-auth'
import { sessions, type Signing } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { begin, finish, type Done, type FinishHook, type FinishHooks, type Proof } from 'koa-with-auth/sign-in'
import { oidc, providerAnswer, type OAuth2Kind, type OidcKind, type OidcOptions } from 'koa-with-auth/sign-in/oidc'
import { SECRET } from '../servers/openIdProvider.js'
import { reserved } from '../servers/server.js'
import { strongKey } from './sessionsApp.js'
import { userAgent, type UserAgent } from '../servers/userAgent.js'

type AnyKind = OidcKind | OAuth2Kind

export interface SiteOptions {
  /** The kinds by name; `GET /sign-in/<name>` begins, and `/sign-in/<name>/callback` finishes. */
  readonly kinds: (callback: (name: string) => string) => Readonly<Record<string, AnyKind>>
  readonly store?: Store
  readonly keys?: string[]
  readonly origin?: (port: number) => string
  readonly https?: boolean
  readonly list?: boolean
  /** A token carries the sign-ins. */
  readonly as?: 'bearer' | undefined
  /** Runs after `finish`, in its operation. */
  readonly after?: (() => void) | undefined
  /** Who an identity is, instead of the accounts. */
  readonly hook?: (done: Done) => unknown
  /** A hook for each intent, instead of one for all. */
  readonly hooks?: (site: { readonly accounts: Map<string, string> }) => FinishHooks<Proof> | FinishHook<Proof>
  /** More routes. */
  readonly routes?: (router: Router, kinds: Readonly<Record<string, AnyKind>>, parts: Parts) => void
  readonly middleware?: Middleware
}

type Parts = Omit<Signing<never>, 'logIn'> & {
  readonly logIn: (ctx: Koa.Context, user: { readonly username: string }) => Promise<void>
}

export type ProviderSite = Awaited<ReturnType<typeof providerSite>>

/** What the site is registered as at providers. */
export const SECRET_CLIENT = { id: 'shop', secret: SECRET }

/** A time limit that means that it hangs, for what is not about the limit. */
const PATIENT = 120_000

/** The time limit of requests to a provider that fails in this way: short for one that never answers. */
export const limitFor = (way: string): number => (way === 'hanging' || way === 'slow' ? 2000 : PATIENT)

/** Options of `oidc` for the client `shop`. */
export const shopAt = (issuer: string, callback: string, over: Partial<OidcOptions> = {}): OidcOptions => ({
  issuer,
  client: SECRET_CLIENT,
  callback,
  keys: { timeout: PATIENT },
  ...over,
})

/** Starts a site on a reserved port, which its provider may have to know before. */
export const providerSite = async (options: SiteOptions, place?: Awaited<ReturnType<typeof reserved>>) => {
  const { port, serve } = place ?? (await reserved())
  const origin = options.origin?.(port) ?? `http://localhost:${port}`
  /** The signing keys. */
  const keys = options.keys ?? [strongKey]
  const app = new Koa({ keys })
  /** What Koa's `error` event reported. */
  const errors: unknown[] = []
  app.on('error', (error: unknown) => errors.push(error))
  /** Identities by `issuer subject`, and whose they are. */
  const accounts = new Map<string, string>()
  /** What the hook got, in order, and the answers of providers that came with it. */
  const done: Done[] = []
  const answers: unknown[] = []
  if (options.middleware !== undefined) app.use(options.middleware)
  // failures are JSON for browsers, too, so that their reasons can be compared
  app.use(authSettings({ errorMapper: defaultErrorMapper }))
  const parts = sessions(app, {
    loadUser: (username) => ({ username, isActive: true }),
    store: options.store ?? memoryStore(),
    origin,
    ...(options.https !== undefined && { https: options.https }),
    ...(options.list !== undefined && { list: options.list }),
    bearer: options.as !== undefined,
  })
  const { as, after } = options
  const later: Middleware = async (_ctx, next) => {
    await next()
    after?.()
  }
  const callback = (name: string) => `/sign-in/${name}/callback`
  const kinds = options.kinds(callback)
  const router = new Router()
  for (const [name, kind] of Object.entries(kinds)) {
    const userOf = (_ctx: Koa.Context, given: Done) => {
      done.push(given)
      answers.push(providerAnswer(given.proof))
      if (options.hook !== undefined) return options.hook(given)
      const { issuer, subject } = given.proof
      const identity = `${issuer} ${subject}`
      const owner = accounts.get(identity)
      if (given.intent === 'link') {
        if (owner !== undefined && owner !== given.subject) return undefined
        accounts.set(identity, String(given.subject))
        return true
      }
      const username = owner ?? `${name}-${subject}`
      accounts.set(identity, username)
      return { username, isActive: true }
    }
    router.get(`/sign-in/${name}`, withAuth(null), begin(kind as OidcKind, { as }))
    const hook = options.hooks?.({ accounts }) ?? userOf
    router.all(callback(name), withAuth(null), later, finish(kind as OidcKind, hook, { as }))
    router.post(`/accounts/${name}`, withAuth(sessionAuth()), begin(kind as OidcKind, { intent: 'link' }))
  }
  router.get('/me', withAuth(sessionAuth()), (ctx) => {
    ctx.body = { user: ctx.request.auth.username, proofs: parts.proofsOf(ctx) }
  })
  router.post('/basket/:item', withAuth(null), (ctx) => {
    Object.assign(ctx['session'] as object, { basket: ctx.params['item'] })
    ctx.status = 204
  })
  router.get('/basket', withAuth(null), (ctx) => {
    ctx.body = { basket: (ctx['session'] as { basket?: string }).basket ?? null }
  })
  router.post('/sign-in/as/:user', withAuth(null), async (ctx) => {
    await parts.logIn(ctx, { username: String(ctx.params['user']), isActive: true })
    ctx.status = 204
  })
  router.post('/sign-out', withAuth(null), async (ctx) => {
    await parts.logOut(ctx)
    ctx.status = 204
  })
  options.routes?.(router, kinds, {
    ...parts,
    logIn: (ctx, user) => parts.logIn(ctx, { ...user, isActive: true }),
  })
  app.use(router.routes())
  app.use((ctx) => {
    ctx.body = `page ${ctx.url}`
  })
  const respond = app.callback()
  serve((req, res) => void respond(req, res))
  const first = Object.keys(kinds)[0] ?? ''
  /** Begins in a browser, and follows to the callback, which is not requested. */
  const toCallback = async (browser: UserAgent, name = first, query = '') => {
    const start = `${origin}/sign-in/${name}${query}`
    const page = await browser.open(start, (url) => url.startsWith(`${origin}${callback(name)}`))
    if (page.stopped.startsWith(`${origin}${callback(name)}`)) return page.stopped
    throw new Error(`${page.status} ${page.way.join(' ')} ${page.body}`)
  }
  return {
    origin,
    port,
    app,
    keys,
    accounts,
    done,
    answers,
    errors,
    toCallback,
    /** The whole way. */
    signIn: async (browser: UserAgent, name?: string) => browser.open(await toCallback(browser, name)),
    /** Who is signed in, or `undefined`. */
    me: async (browser: UserAgent) => {
      const { status, body } = await browser.send(`${origin}/me`)
      return status === 200 ? (JSON.parse(body) as { user: string }).user : undefined
    },
  }
}

/** A browser that has never been anywhere. */
export const newBrowser = (): UserAgent => userAgent()

/** One provider found by discovery, on a site. */
export const siteOf = (issuer: string, over: Partial<OidcOptions> = {}, options: Partial<SiteOptions> = {}) =>
  providerSite({ kinds: (callback) => ({ provider: oidc(shopAt(issuer, callback('provider'), over)) }), ...options })
