/** What is written in the wrong place, and is seen at the first request: settings after the routers, a guard after its handler. */
import { createRequire } from 'node:module'
import Router from '@koa/router'
import Koa from 'koa'
import { apiApp, authSettings, httpBasicAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { processWarnings } from '../support/servers/identityProvider.js'
import { ask, listen } from '../support/servers/server.js'

const basic = httpBasicAuth({ authenticate: (_request, user, password) => password === 'good' && { user } })
const late = () => authSettings({ realm: 'late' })
const early = () => authSettings({ realm: 'early' })
const done = () => {}
const guarded = () => new Router().get('/me', withAuth(basic), done)
const open = () => new Router().get('/open', done)
const nested = () => new Router().use('/api', guarded().routes()).get('/me', withAuth(basic), done)

const withSessions = (app: Koa) => {
  sessions(app, { loadUser: () => undefined, store: memoryStore() })
  return app
}

const message =
  'LateSettingsWarning: authSettings(...) is mounted after the routers, so their operations do not have these settings; '
const forApp = `${message}call app.use(authSettings(...)) before app.use(router.routes())`
const forRouter = `${message}call router.use(authSettings(...)) before its routes are registered`

const warningsOf = async (mount: (app: Koa) => unknown, paths = ['/me', '/me', '/none']) => {
  const warnings = processWarnings()
  const app = new Koa({ keys: ['k'.repeat(40)] })
  mount(app)
  const served = await listen(app)
  for (const path of paths) await ask(`${served.url}${path}`)
  await new Promise((resolve) => setImmediate(resolve))
  return warnings().filter((one) => one.startsWith('LateSettingsWarning'))
}

describe('settings after the routers: a warning, once, that names the fix', () => {
  it.each<[string, (app: Koa) => unknown, string, string[]?]>([
    ['after a router', (app) => app.use(guarded().routes()).use(late()), forApp],
    ['after a router in a router', (app) => app.use(nested().routes()).use(late()), forApp],
    ['after a guarded router', (app) => app.use(withAuth(basic)(open()).routes()).use(late()), forApp, ['/open']],
    ['after a public operation', (app) => app.use(withAuth(null)(open()).routes()).use(late()), forApp, ['/open']],
    ['after an apiApp', (app) => app.use(apiApp({ auth: basic }).get('/me', done).routes()).use(late()), forApp],
    ['below other settings', (app) => app.use(early()).use(guarded().routes()).use(late()), forApp],
    ['below sessions', (app) => withSessions(app).use(guarded().routes()).use(late()), forApp],
    ['in a router, after its routes', (app) => app.use(guarded().use(late()).routes()), forRouter],
    ['in a mounted router', (app) => app.use(new Router().use(guarded().use(late()).routes()).routes()), forRouter],
    ['in a guarded router', (app) => app.use(withAuth(basic)(guarded()).use(late()).routes()), forRouter],
  ])('%s', async (_name, mount, expected, paths) => {
    expect(await warningsOf(mount, paths)).toEqual([expected])
  })
})

describe('settings elsewhere: no warning', () => {
  it.each<[string, (app: Koa) => unknown]>([
    ['before the routers', (app) => app.use(early()).use(guarded().routes())],
    ['between two routers, for the second', (app) => app.use(guarded().routes()).use(late()).use(nested().routes())],
    ['after a router without a guard', (app) => app.use(open().routes()).use(late())],
    ['before its routes', (app) => app.use(new Router().use(late()).get('/me', withAuth(basic), done).routes())],
    ['between routes', (app) => app.use(guarded().use(late()).get('/more', withAuth(basic), done).routes())],
    ['in an operation', (app) => app.use(new Router().get('/me', early() as never, withAuth(basic), done).routes())],
    ['without settings', (app) => app.use(guarded().routes())],
  ])('%s', async (_name, mount) => {
    expect(await warningsOf(mount)).toEqual([])
  })
})

const required = createRequire(import.meta.url)
const classes = ['@koa/router', 'koa-router-12', 'koa-router-classic-12', 'koa-router-13', 'koa-router-14']

describe.each(classes)('R22 a guard after the handler, in a router of another class (%s, CommonJS)', (name) => {
  // another spec may have used the class in a level, after which this is found earlier
  delete required.cache[required.resolve(name)]
  // Safe: these versions have the methods that are used here. Newer ones have a default export
  const loaded = required(name) as typeof Router & { readonly default?: typeof Router }
  const OtherRouter = loaded.default ?? loaded
  const served = async (...routers: ReadonlyArray<Router>) => {
    const app = new Koa()
    const errors: unknown[] = []
    app.on('error', (error) => errors.push(error))
    for (const router of routers) app.use(router.routes())
    const server = await listen(app)
    const statusOf = async (path: string) =>
      (await ask(`${server.url}${path}`, { headers: { authorization: `Basic ${btoa('anna:good')}` } })).status
    return { statusOf, errors }
  }
  const late = () => new OtherRouter().get('/open', done, withAuth(basic) as never)
  const own = () => new OtherRouter().get('/me', withAuth(basic), (ctx) => void (ctx.status = 204))
  const expected = 'GET /open: withAuth(...) has no handler after it; write it right after the path'

  it.each<[string, () => ReadonlyArray<Router>]>([
    ['in the same router', () => [own().get('/open', done, withAuth(basic) as never)]],
    ['in a router before it', () => [late(), own()]],
    ['in a router after it', () => [own(), late()]],
    ['in a router that another one mounts', () => [new OtherRouter().use(late().routes(), own().routes())]],
    ['of an operation for everyone', () => [own().get('/open', done, withAuth(null) as never)]],
    ['beside a guard of another class of routers', () => [new Router().get('/me', withAuth(basic), done), late()]],
  ])('%s, is a 500 of each guarded operation, whose error names it', async (_where, routers) => {
    const { statusOf, errors } = await served(...routers())
    for (let at = 0; at < 3; at++) expect(await statusOf('/me')).toBe(500)
    expect(errors.map(String)).toEqual(Array.from({ length: 3 }, () => `Error: ${expected}`))
  })

  it('no other place of a guard is an error', async () => {
    const router = own()
      .get('/a/:id', withAuth(basic) as never)
      .get('/b/:id', done, withAuth(basic) as never, done)
      .get('/c', done)
      .use('/d', done)
    router.param('id', (_id, _ctx, next) => next())
    const { statusOf, errors } = await served(router)
    expect([await statusOf('/me'), errors]).toEqual([204, []])
  })
})
