/** A site with accounts. settings.ts has the variables that it reads, parts.ts what it is made of. */
import Router from '@koa/router'
import { authSettings, authorize, defaultErrorMapper, optional, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { accountRoutes } from './account.js'
import type { Account } from './accounts.js'
import { script, style } from './assets.js'
import { deviceRoutes } from './devices.js' // devices
import { errorPage, homePage, listPage } from './pages.js'
import { partsOf, type Send } from './parts.js'
import { settingsIn, type Settings } from './settings.js'
import { signInRoutes } from './signIn.js'
import { isUp, openDatabase, type Database } from './store.js'

export const site = async (settings: Settings, database: Database, send: Send) => {
  const parts = await partsOf(settings, database, send)
  const { accounts, app, auth, open } = parts
  app.use(async function notFound(ctx, next) {
    await next()
    if (ctx.status === 404 && !ctx.body) Object.assign(ctx, { body: errorPage(ctx, 'notFound'), status: 404 })
  })
  // 401 leads to the sign-in page and back; other failures are pages
  app.use(
    authSettings({
      errorMapper: (error, request) => {
        const response = defaultErrorMapper(error, request)
        if (request.accepts('json', 'html') !== 'html') return response
        const isToSignIn = error._tag === 'absent' || (error._tag === 'insufficient' && error.proof !== undefined)
        const Location = `/sign-in?returnTo=${encodeURIComponent(request.method === 'GET' ? request.originalUrl : '/account')}`
        if (isToSignIn) return { status: 303, headers: { Location } }
        return { status: response.status, headers: response.headers, body: errorPage(request.ctx, error._tag) }
      },
    }),
  )

  const router = new Router()
  router.get('/', withAuth(optional(auth.sessionAuth())), (ctx) => (ctx.body = homePage(ctx, ctx.request.auth)))
  router.get('/style.css', open, (ctx) => Object.assign(ctx, { type: 'css', body: style }))
  router.get('/script.js', open, (ctx) => Object.assign(ctx, { type: 'js', body: script }))
  // for the machine that starts and stops processes
  router.get('/health', open, async (ctx) => {
    ctx.status = (await isUp(database.run('select 1'), database.store.get(['health']))) ? 204 : 503
  })
  signInRoutes(router, parts)
  accountRoutes(router, parts)
  deviceRoutes(router, parts) // devices
  const admin = withAuth(authorize((one: Account) => one.role === 'admin')(auth.sessionAuth()))
  router.get('/admin', admin, async (ctx) => (ctx.body = listPage(ctx, 'admin', await accounts.all())))

  const pages = ['/', '/style.css', '/script.js', '/health', '/sign-in', '/sign-up', '/password', '/address']
  const forms = ['/sign-in', '/sign-up', '/password', '/address', '/sign-out', '/passkey/options', '/passkey']
  forms.push('/device/sign-in', '/device/code', '/device/token') // devices
  seal(router, {
    public: [...pages.map((path) => `GET ${path}`), ...forms.map((path) => `POST ${path}`)],
    objects: true,
  })
  app.use(router.routes()).use(router.allowedMethods())
  return app
}

/** The application, for `koa-with-auth audit`. */
export default async () => site(settingsIn({}), await openDatabase('file::memory:'), async () => {})
