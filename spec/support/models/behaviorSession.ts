/** A real koa-session in an application of a test, and signing in over HTTP. */
import type Koa from 'koa'
import session, { type CreateSessionOptions } from 'koa-session'
import type { Running } from './behavior.js'

/** Long enough to be accepted. */
export const signingKey = 'a signing key that is long enough, for tests'

/** Where koa-session keeps the data: in the cookie, or in a store. */
export const modes = ['cookie', 'store'] as const

/** A store as koa-session wants it. */
export const koaStore = (): NonNullable<CreateSessionOptions['store']> => {
  const kept = new Map<string, unknown>()
  return {
    get: async (id) => structuredClone(kept.get(id)),
    set: async (id, data: unknown) => {
      kept.set(id, structuredClone(data))
    },
    destroy: async (id) => {
      kept.delete(id)
    },
  }
}

/** Mounts sessions, and `/sign-in?session=<JSON>`, which sets the data of the session. */
export const withSessions =
  (mode: (typeof modes)[number] = 'cookie', options: CreateSessionOptions = {}) =>
  (app: Koa): void => {
    app.keys = [signingKey]
    app.use(session({ ...(mode === 'store' && { store: koaStore() }), ...options }, app))
    app.use(async (ctx, next) => {
      if (ctx.path !== '/sign-in') return next()
      Object.assign(ctx['session'] as object, JSON.parse(new URLSearchParams(ctx.querystring).get('session') ?? '{}'))
      ctx.body = 'signed in'
    })
  }

/** The Cookie field of a visitor with this session, including its signature. */
export const signIn = async ({ ask }: Running, data: object): Promise<string> => {
  const { status, headers } = await ask(`/sign-in?session=${encodeURIComponent(JSON.stringify(data))}`)
  const cookies = headers['set-cookie']
  if (status !== 200 || cookies === undefined) throw new Error(`not signed in: ${status}`)
  return cookies.map((cookie) => cookie.slice(0, cookie.indexOf(';'))).join('; ')
}

/** The Cookie field of a visitor whose session has this user. */
export const signInAs = (running: Running, user: unknown): Promise<string> => signIn(running, { user })
