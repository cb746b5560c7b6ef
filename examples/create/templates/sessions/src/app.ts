/**
 * People sign in by e-mail address and password. Sessions are in the SQLite file DATABASE_URL. KEYS, secrets of 32
 * characters or more separated by commas, sign the cookie. Behind a proxy that ends TLS, set PROXY=1: it says whose address a
 * request has. Without it, all visitors have the address of the proxy, and the wrong passwords of one lock all others out.
 */
import { randomBytes } from 'node:crypto'
import { bodyParser } from '@koa/bodyparser'
import Koa from 'koa'
import { apiApp, formAuth, operation, throttled, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { hash, verify } from 'koa-with-auth/passwords'
import { sessions } from 'koa-with-auth/sessions'
import { sqliteStore } from 'koa-with-auth/stores'
import { RateLimiterMemory } from 'rate-limiter-flexible'

const { DATABASE_URL = 'file:app.db', HOST = '127.0.0.1', KEYS, NODE_ENV = 'development', PROXY } = process.env
// Only on this machine there are users whose passwords everybody knows, and keys that a restart forgets
const isTrial = ['development', 'test'].includes(NODE_ENV) && ['127.0.0.1', '::1', 'localhost'].includes(HOST)
type User = { readonly email: string; readonly password: string; readonly role: 'admin' | 'reader' }

// Replace this with your database. It has users only where you try it
const users = new Map<string, User>()
const demonstration = { anna: 'admin', sam: 'reader' } as const
for (const [name, role] of Object.entries(isTrial ? demonstration : {})) {
  const email = `${name}@example.com`
  users.set(email, { email, password: await hash(`${name}-secret`), role })
}

export const service = async (databaseUrl = DATABASE_URL) => {
  if (KEYS === undefined && !isTrial) throw new TypeError('set KEYS to a secret of 32 characters')
  const app = new Koa({ proxy: PROXY === '1' })
  app.keys = KEYS?.split(',') ?? [randomBytes(32).toString('hex')]
  const { sessionAuth, sessionAuthSuperUser, logIn, logOut } = sessions(app, {
    loadUser: async (email): Promise<User | undefined> => users.get(email),
    identify: ({ email }) => email,
    isActive: () => true,
    isStaff: () => false,
    isSuperuser: ({ role }) => role === 'admin',
    https: isTrial ? undefined : true, // cookies over TLS only
    store: sqliteStore({ url: databaseUrl }),
  })
  const signIn = formAuth({
    fields: ['email', 'password'],
    authenticate: async (_request, { email, password }): Promise<User | false> => {
      const user = users.get(email)
      return (await verify(user?.password, password)) && (user ?? false)
    },
  })
  // five wrong passwords of one account from one address in 15 minutes
  const guesses = throttled({ limiter: new RateLimiterMemory({ points: 5, duration: 15 * 60 }) })

  const api = apiApp({ title: 'Accounts', version: '1.0.0', prefix: '/api', auth: sessionAuth() })
  api.get('/health', operation({ summary: 'Whether it serves' }), withAuth(null), (ctx) => {
    ctx.body = 'ok'
  })
  const readBody: Koa.Middleware = bodyParser()
  api.post('/sign-in', operation({ summary: 'Signs in' }), readBody, withAuth(guesses(signIn)), async (ctx) => {
    await logIn(ctx, ctx.request.auth)
    ctx.status = 204
  })
  api.post('/sign-out', operation({ summary: 'Signs out' }), async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  api.get('/me', operation({ summary: 'Who I am' }), (ctx) => {
    ctx.body = { email: ctx.request.auth.email }
  })
  const admin = sessionAuthSuperUser({ refuse: 'insufficient' })
  api.get('/users', operation({ summary: 'All users; for admins' }), withAuth(admin), (ctx) => {
    ctx.body = [...users.keys()]
  })
  const sealed = seal(api, { public: ['GET /api/health', 'docs'], middleware: [readBody], objects: true })
  app.use(sealed.routes()).use(sealed.allowedMethods())
  const form = `-c jar -d 'email=anna@example.com&password=anna-secret'`
  return { app, toTry: (url: string) => [`curl -i ${form} ${url}/sign-in`, `curl -i -b jar ${url}/me`] }
}

/** The application, for `koa-with-auth audit`. */
export default () => service('file::memory:').then(({ app }) => app)
