/** A site whose users sign in by the cookie or by a token, at routes that say so. */
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { authSignal, optional, withAuth } from 'koa-with-auth'
import { hash } from 'koa-with-auth/passwords'
import { sessions, type Sessions, type SessionsOptions } from 'koa-with-auth/sessions'
import { askSecondFactor, begin, emailSignIn, finish, passwordSignIn, secondFactor } from 'koa-with-auth/sign-in'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { cookiesIn, listen } from '../servers/server.js'
import { strongKey } from './sessionsApp.js'

export interface Device {
  readonly username: string
}

const users = new Map(['anna', 'bert'].map((username) => [username, { username }]))
export const password = { username: 'anna', password: 'a secret of some length' }
const secret = await hash(password.password)

/** What tests read in a body. */
interface DeviceBody {
  readonly access_token: string
  readonly token_type?: string
  readonly handle?: string
  readonly reason?: string
  readonly proofs?: ReadonlyArray<string>
  readonly visits?: number
}

type Options = Partial<SessionsOptions<Device | undefined>>

/** Serves it until the test has finished. `kept` are the calls of the store. */
export const deviceSite = async (
  options: Options = {},
  inner: Store = memoryStore(),
  keys = [strongKey],
  more: (router: Router, made: Sessions<Device>) => void = () => {},
) => {
  const kept: string[][] = []
  const store: Store = { ...inner, get: (all) => (kept.push([...all]), inner.get(all)) }
  const app = new Koa({ keys })
  app.silent = true
  const made = sessions(app, {
    loadUser: (id: string) => users.get(id),
    store,
    name: 'shop',
    list: true,
    origin: 'http://shop.example',
    bearer: true,
    ...options,
  })
  const { sessionAuth, logIn, logOut, addProof, listSessions, endSession, logOutEverywhere, proofsOf } = made
  const mails: string[] = []
  const mail = emailSignIn({ path: '/mail/link', send: ({ code }) => void mails.push(code) })
  const code = secondFactor({ factors: [{ method: 'totp', verify: async (_user, typed) => typed === '123456' }] })
  const accountOf = (name: string) => {
    const user = users.get(name)
    return user && { user, hash: secret }
  }
  const router = new Router()
  const open = withAuth(null)
  const me = (ctx: Context) => {
    ctx.body = { auth: ctx.request['auth' as never], proofs: proofsOf(ctx).map(({ method }) => method) }
  }
  router.post('/sign-in', open, passwordSignIn({ accountOf }))
  router.all('/device/sign-in', open, passwordSignIn({ accountOf, as: 'bearer' }))
  router.all('/device/two', open, passwordSignIn({ accountOf, factors: code, as: 'bearer' }))
  router.post('/two', open, passwordSignIn({ accountOf, factors: code }))
  router.post('/begin', open, begin(mail))
  router.post('/device/begin', open, begin(mail, { as: 'bearer' }))
  const hook = () => users.get('anna')
  router.post('/code', open, finish(mail, hook))
  router.post('/device/code', open, finish(mail, hook, { as: 'bearer' }))
  router.post('/device/second', open, async (ctx) => {
    ctx.body = await askSecondFactor(ctx, code, {
      user: users.get('anna')!,
      proof: { method: 'password' },
      as: 'bearer',
    })
  })
  router.post('/device/second/code', open, finish(code, hook, { as: 'bearer' }))
  router.post('/second/code', open, finish(code, hook))
  router.post('/token', open, async (ctx) => {
    ctx.body = await logIn(ctx, users.get('anna')!, { as: 'bearer' })
    if (ctx.query['throws'] !== undefined) throw new Error('after a sign-in')
  })
  router.post('/cookie', open, async (ctx) => {
    await logIn(ctx, users.get('anna')!)
    ctx.status = 204
  })
  router.all('/me', withAuth(sessionAuth()), me)
  router.post('/public', open, (ctx) => {
    const session = ctx['session'] as { visits?: number }
    session.visits = (session.visits ?? 0) + 1
    ctx.body = { visits: session.visits }
  })
  router.get('/optional', withAuth(optional(sessionAuth())), me)
  router.get('/proved', withAuth(sessionAuth({ proof: { methods: ['totp'] } })), me)
  router.post('/prove', withAuth(sessionAuth()), async (ctx) => {
    await addProof(ctx, { method: 'totp' })
    ctx.status = 204
  })
  router.post('/out', open, async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.get('/list', withAuth(sessionAuth()), async (ctx) => {
    ctx.body = await listSessions(ctx)
  })
  const signals: AbortSignal[] = []
  router.get('/signal', withAuth(sessionAuth()), (ctx) => {
    signals.push(authSignal(ctx))
    ctx.status = 204
  })
  more(router, made)
  app.use(router.routes())
  const { port, errors } = await listen(app)
  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}, body?: object | string) => {
    const isForm = typeof body === 'string'
    const type = isForm ? 'application/x-www-form-urlencoded' : 'application/json'
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      redirect: 'manual',
      headers: { ...headers, ...(body !== undefined && { 'Content-Type': type }) },
      ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isJson = response.headers.get('Content-Type')?.includes('json') === true
    // Safe: the tests compare it
    const read = (isJson ? JSON.parse(text) : { access_token: '' }) as DeviceBody
    return { status: response.status, body: read, headers: response.headers }
  }
  const cookieIn = ({ headers }: { readonly headers: Headers }) => cookiesIn(headers)
  const signIn = async (path = '/device/sign-in', headers = {}): Promise<string> =>
    (await ask(path, headers, password)).body.access_token
  return { app, ask, cookieIn, signIn, kept, mails, port, errors, router, signals, endSession, logOutEverywhere, made }
}
