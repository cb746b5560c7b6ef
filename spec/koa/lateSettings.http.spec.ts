/** A warning: settings are mounted after the routers, so they have no effect on them. */
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { apiApp, authSettings, httpBasicAuth, withAuth } from 'koa-with-auth'
import { memoryStore, sessions } from 'koa-with-auth/sessions'
import { describe, expect, it, onTestFinished } from 'vitest'
import { processWarnings } from '../support/servers/identityProvider.js'
import { ask, listen } from '../support/servers/server.js'

const basic = httpBasicAuth({ authenticate: (_request, user, password) => password === 'good' && { user } })
const late = () => authSettings({ realm: 'late' })
const early = () => authSettings({ realm: 'early' })
const fallback: Middleware = (ctx) => {
  ctx.status = 404
}
const done = () => {}
const guarded = () => new Router().get('/me', withAuth(basic), done)
const open = () => new Router().get('/open', done)
const nested = () => new Router().use('/api', guarded().routes()).get('/me', withAuth(basic), done)

const message =
  'LateSettingsWarning: authSettings(...) is mounted after the routers, so their operations do not have these settings; '
const forApp = `${message}call app.use(authSettings(...)) before app.use(router.routes())`
const forRouter = `${message}call router.use(authSettings(...)) before its routes are registered`

const warningsOf = async (
  mount: (app: Koa) => unknown,
  paths = ['/me', '/me', '/none'],
): Promise<ReadonlyArray<string>> => {
  const warnings = processWarnings()
  const app = new Koa({ keys: ['k'.repeat(40)] })
  mount(app)
  const served = await listen(app)
  onTestFinished(served.close)
  for (const path of paths) await ask(`${served.url}${path}`)
  await new Promise((resolve) => setImmediate(resolve))
  return warnings().filter((one) => one.startsWith('LateSettingsWarning'))
}

describe('a warning, once, that names the fix', () => {
  it.each<[string, (app: Koa) => unknown, string, string[]?]>([
    ['after a router', (app) => app.use(guarded().routes()).use(late()), forApp],
    ['after two routers', (app) => app.use(open().routes()).use(guarded().routes()).use(late()), forApp],
    ['after a router in a router', (app) => app.use(nested().routes()).use(late()), forApp],
    ['after a guarded router', (app) => app.use(withAuth(basic)(open()).routes()).use(late()), forApp, ['/open']],
    ['after a public operation', (app) => app.use(withAuth(null)(open()).routes()).use(late()), forApp, ['/open']],
    [
      'after an apiApp',
      (app) => app.use(apiApp({ auth: basic, docs: false }).get('/me', done).routes()).use(late()),
      forApp,
    ],
    ['twice after it', (app) => app.use(guarded().routes()).use(late()).use(late()), forApp],
    ['before a function that is no router', (app) => app.use(guarded().routes()).use(late()).use(fallback), forApp],
    ['below other settings', (app) => app.use(early()).use(guarded().routes()).use(late()), forApp],
    [
      'below sessions',
      (app) => {
        sessions(app, { loadUser: () => undefined, store: memoryStore() })
        app.use(guarded().routes()).use(late())
      },
      forApp,
    ],
    ['in a router, after its routes', (app) => app.use(guarded().use(late()).routes()), forRouter],
    ['in a router below settings', (app) => app.use(early()).use(guarded().use(late()).routes()), forRouter],
    [
      'in a router that is mounted',
      (app) => app.use(new Router().use(guarded().use(late()).routes()).routes()),
      forRouter,
    ],
    ['in a guarded router', (app) => app.use(withAuth(basic)(guarded()).use(late()).routes()), forRouter],
  ])('%s', async (_name, mount, expected, paths) => {
    expect(await warningsOf(mount, paths)).toEqual([expected])
  })
})

describe('no warning', () => {
  it.each<[string, (app: Koa) => unknown]>([
    ['before the routers', (app) => app.use(early()).use(guarded().routes())],
    ['between two routers, for the second', (app) => app.use(guarded().routes()).use(late()).use(nested().routes())],
    ['after a router without a guard', (app) => app.use(open().routes()).use(late())],
    [
      'before the routes of a router',
      (app) => app.use(new Router().use(late()).get('/me', withAuth(basic), done).routes()),
    ],
    ['between routes', (app) => app.use(guarded().use(late()).get('/more', withAuth(basic), done).routes())],
    ['without settings', (app) => app.use(guarded().routes())],
  ])('%s', async (_name, mount) => {
    expect(await warningsOf(mount)).toEqual([])
  })
})
