/** `seal(app)`: a whole application, with all its routers and what `app.use` mounts beside them. */
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import { apiApp, apiKeyCookie, authSettings, guardApp, httpBearer, optional, withAuth } from 'koa-with-auth'
import { audit, seal, type AnyApplication } from 'koa-with-auth/audit'
import { sessions } from 'koa-with-auth/sessions'
import { assert, describe, expect, it } from 'vitest'
import { linesOf, policyText } from '../../src/audit/policy.js'
import { policyFile } from '../support/papers/policyFile.js'
import { messageOf, untyped } from '../support/projects/mistakes.js'
import { ask, listen } from '../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const cookie = apiKeyCookie({ authenticate: (_request, key) => key === 'good' && { user: 'anna' } })
const cors: Middleware = (_ctx, next) => next()
const files: Middleware = (ctx, next) => (ctx.path === '/file' ? void (ctx.body = 'a file') : next())

const pets = () => {
  const router = new Router({ prefix: '/pets' })
  router.get('/', withAuth(bearer), (ctx) => void (ctx.body = ctx.request.auth.user))
  router.post('/', withAuth(cookie), (ctx) => void (ctx.body = ctx.request.auth.user))
  return router
}
const health = () => new Router().get('/health', withAuth(null), (ctx) => void (ctx.body = 'ok'))
const application = () => new Koa().use(cors).use(health().routes()).use(pets().routes())
const allowed = { public: ['GET /health'], middleware: [cors] }

const { keep } = policyFile()
const policyOf = (app: AnyApplication): string => keep(audit(app))

describe('seal(app, { public, middleware })', () => {
  it('returns the application, which works', async () => {
    const app = application()
    expect(seal(app, allowed)).toBe(app)
    const served = await listen(app)
    expect(await ask(`${served.url}/health`)).toMatchObject({ status: 200, text: 'ok' })
    expect(await ask(`${served.url}/pets`)).toMatchObject({ status: 401 })
    const headers = { Authorization: 'Bearer good' }
    expect(await ask(`${served.url}/pets`, { headers })).toMatchObject({ text: 'anna' })
  })

  it('lists every finding of all routers, and functions of app.use that nothing guards', () => {
    expect(messageOf(() => seal(application().use(files)))).toBe(
      [
        'seal(app): 3 findings',
        "GET /health is public: guard it, or list 'GET /health' in public",
        'use /*: no guard covers cors: list the function itself in middleware, or remove it',
        'use /*: no guard covers files: list the function itself in middleware, or remove it',
      ].join('\n- '),
    )
  })

  it('finds what one router answers for another', () => {
    const any = new Router()
    any.get('/:any', withAuth(null), () => {})
    const app = new Koa().use(any.routes()).use(pets().routes())
    const why = 'GET /pets is guarded, but GET /:any, which is public, answers it first'
    expect(messageOf(() => seal(app, { public: ['GET /:any'] }))).toContain(why)
  })

  it('an entry may be of any router; one that is nowhere, or guarded, is a finding', () => {
    const says = (name: string) => messageOf(() => seal(application(), { ...allowed, public: ['GET /health', name] }))
    expect(says('GET /pets')).toContain("'GET /pets' is listed in public, but it is guarded (bearer)")
    expect(says('GET /no')).toContain("'GET /no' is listed in public, but there is no such operation")
  })

  it('authSettings and sessions need not be listed', () => {
    const app = new Koa({ keys: ['k'.repeat(40)] })
    sessions(app, { loadUser: () => undefined as { username: string } | undefined, name: 'sealed' })
    app.use(authSettings({ realm: 'pets' })).use(pets().routes())
    expect(seal(app)).toBe(app)
  })

  it('allowedMethods() of a router need not be listed; a function of its name must', () => {
    const router = pets()
    const methods = router.allowedMethods()
    const app = new Koa().use(router.routes()).use(methods)
    expect(audit(app).middleware.map(({ functions }) => functions)).toEqual([['allowedMethods']])
    expect(policyText(linesOf(audit(app)))).toContain('USE /*; who=unguarded; runs=allowedMethods\n')
    expect(seal(app)).toBe(app)
    const allowedMethods = (ctx: { body: unknown }) => void (ctx.body = 'data')
    const other = new Koa().use(router.routes()).use(allowedMethods)
    expect(messageOf(() => seal(other))).toContain('no guard covers allowedMethods')
    expect(seal(other, { middleware: [allowedMethods] })).toBe(other)
  })

  it('a guard of the application that lets in anonymous callers covers no function, and two are both needed', () => {
    const open = guardApp(optional(bearer))(new Koa()).use(files)
    expect(messageOf(() => seal(open.use(pets().routes())))).toContain('no guard covers files')
    const closed = guardApp(bearer)(new Koa()).use(files)
    expect(seal(closed.use(pets().routes()))).toBe(closed)
    const once = guardApp(bearer)(new Koa())
    const twice = guardApp(cookie, { middleware: [...once.middleware] })(once).use(health().routes())
    expect(audit(twice).operations).toMatchObject([{ protection: 'all of (bearer, and API key in cookie key)' }])
  })

  it('seals an apiApp in it', () => {
    const api = apiApp({ prefix: '/api', auth: bearer, docs: false })
    api.get('/me', () => {})
    expect(seal(new Koa().use(api.routes()))).toBeInstanceOf(Koa)
    expect(() => api.get('/more', () => {})).toThrow(TypeError)
  })
})

describe('a sealed application', () => {
  const sealed = () => {
    const router = pets()
    const app = seal(new Koa().use(router.routes()))
    return { app, router }
  }

  it('takes no more middleware', () => {
    const { app } = sealed()
    expect(() => app.use(cors)).toThrow(/app\.use\(\.\.\.\) comes after seal\(app\)/)
    expect(() => app.middleware.push(cors)).toThrow(TypeError)
    expect(() => (app.middleware = [])).toThrow(TypeError)
    expect(() => (app.middleware[0] = cors)).toThrow(TypeError)
    expect(app.middleware).toHaveLength(1)
  })

  it('can be sealed again, as can its routers before', () => {
    const { app } = sealed()
    expect(seal(app)).toBe(app)
    const router = pets()
    seal(router)
    expect(seal(new Koa().use(router.routes()))).toBeInstanceOf(Koa)
  })
})

describe('seal(app) with guardApp', () => {
  const guarded = (use: (app: Koa) => unknown) => {
    const app = guardApp(bearer)(new Koa())
    use(app as unknown as Koa)
    return app
  }

  it('nothing below the guard needs to be listed', () => {
    const app = guarded((inner) => inner.use(files).use(health().routes()))
    expect(seal(app)).toBe(app)
    const listed = guarded((inner) => inner.use(health().routes()))
    expect(messageOf(() => seal(listed, { public: ['GET /health'] }))).toContain('it is guarded (bearer)')
  })

  it('what is above the guard must be listed', () => {
    const make = () => guardApp(bearer, { middleware: [cors] })(new Koa().use(cors)).use(files)
    expect(messageOf(() => seal(make()))).toContain('no guard covers cors')
    expect(seal(make(), { middleware: [cors] })).toBeInstanceOf(Koa)
  })

  it('an application without a router can be audited and sealed, if it is guarded', async () => {
    const app = guarded((inner) => inner.use(files))
    const middleware = [{ path: '/*', functions: ['files'], guarded: 'yes' }]
    expect(audit(app)).toMatchObject({ operations: [], middleware })
    const served = await listen(seal(app))
    expect((await ask(`${served.url}/file`)).status).toBe(401)
    expect(() => seal(new Koa().use(files), { middleware: [files] })).toThrow('the application mounts no router')
  })
})

describe('seal(app, { lock })', () => {
  it('accepts the file that the command wrote', () => {
    const app = application()
    expect(seal(app, { lock: policyOf(app) })).toBe(app)
  })

  const off = () => authSettings({ csrf: false })
  const more = () => new Router().get('/new', withAuth(null), () => {}).routes() // prettier-ignore
  it.each<[string, () => AnyApplication, string]>([
    ['a new public operation', () => application().use(more()), 'GET /new'],
    ['new middleware', () => application().use(files), 'files'],
    ['another order', () => new Koa().use(cors).use(pets().routes()), 'GET /health'],
    ['no check', () => new Koa().use(cors).use(off()).use(health().routes()).use(pets().routes()), 'POST /pets'], // prettier-ignore
  ])('refuses %s', (_what, changed, message) => {
    const file = policyOf(application())
    expect(messageOf(() => seal(changed(), { lock: file }))).toContain(message)
  })
})

describe('mistakes', () => {
  it('names the application, and unknown options', () => {
    const wrong = () => seal(application(), untyped({ publik: [] }))
    expect(messageOf(wrong)).toContain('seal(app, options): no option "publik"')
    assert.throws(() => seal(untyped({}), {}), TypeError)
  })
})
