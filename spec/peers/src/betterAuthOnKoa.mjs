import Router from '@koa/router'
import { betterAuth } from 'better-auth'
import { memoryAdapter } from 'better-auth/adapters/memory'
import { fromNodeHeaders, toNodeHandler } from 'better-auth/node'
import Koa from 'koa'
import { authenticator, Challenge, fromCookie, withAuth } from '../../../dist/index.js'

export const make = async (baseURL) => {
  const auth = betterAuth({
    baseURL,
    secret: process.env.BETTER_AUTH_SECRET,
    emailAndPassword: { enabled: true },
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }), // your database
  })

  // the session of better-auth, as an authenticator
  const { name } = (await auth.$context).authCookies.sessionToken
  const user = authenticator({
    scheme: { type: 'apiKey', in: 'cookie', name },
    challenge: Challenge.make('Session'),
    ambient: true, // browsers send it by themselves, so writes from other sites are refused
    extract: fromCookie(name),
    authenticate: async ({ headers }) => {
      const session = await auth.api.getSession({ headers: fromNodeHeaders(headers) })
      return session?.user
    },
  })

  const router = withAuth(user)(new Router())
  router.get('/me', (ctx) => {
    ctx.body = `Hello ${ctx.request.auth.name}`
  })
  router.post('/notes', (ctx) => {
    ctx.status = 201
  })
  router.get('/health', withAuth(null), (ctx) => {
    ctx.body = 'ok'
  })

  // its own routes, before any body parser
  const handle = toNodeHandler(auth)
  const app = new Koa()
  app.use((ctx, next) => {
    if (!ctx.path.startsWith('/api/auth/')) return next()
    ctx.respond = false
    return handle(ctx.req, ctx.res)
  })
  return app.use(router.routes())
}
