/** `apiApp` is used like a router (spec 1.4). `auth` guards its operations unless an inner level decides (spec 5.6.1 to 5.6.5). */
import Router from '@koa/router'
import Koa from 'koa'
import { apiApp, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { ask, listen } from '../../support/servers/server.js'

const token = (secret: string) => httpBearer({ authenticate: (_request, sent) => sent === secret && { via: secret } })
const authorized = (secret: string) => ({ headers: { Authorization: `Bearer ${secret}` } })

const serve = async <S, C>(app: Koa<S, C>) => (await listen(app)).url

describe('apiApp({ auth })', () => {
  it('5.6.1 guards every method, `all` and a mounted router, below its prefix', async () => {
    let runs = 0
    const api = apiApp({ prefix: '/api', auth: token('app') })
    const verbs = ['get', 'post', 'put', 'patch', 'delete'] as const
    for (const verb of verbs) {
      api[verb]('/x', (ctx) => {
        runs++
        ctx.body = ctx.request.auth.via
      })
    }
    api.all('/all', (ctx) => void (ctx.body = ctx.request.auth.via))
    api.use('/child', new Router().get('/y', (ctx) => void (ctx.body = 'y')).routes())
    const url = await serve(new Koa().use(api.routes()).use(api.allowedMethods()))
    for (const verb of verbs) {
      const method = verb.toUpperCase()
      const denied = await ask(`${url}/api/x`, { method })
      expect([denied.status, denied.challenge]).toEqual([401, 'Bearer realm="api"'])
      const accepted = await ask(`${url}/api/x`, { method, ...authorized('app') })
      expect([accepted.status, accepted.text]).toEqual([200, 'app'])
    }
    expect(runs).toBe(verbs.length)
    for (const path of ['/api/all', '/api/child/y', '/API/child/y']) {
      expect((await ask(`${url}${path}`)).status).toBe(401)
      expect((await ask(`${url}${path}`, authorized('app'))).status).toBe(200)
    }
    expect((await ask(`${url}/x`)).status).toBe(404)
    expect((await ask(`${url}/api/x`, { method: 'OPTIONS' })).headers.get('allow')).toContain('PATCH')
  })

  it('5.6.2 to 5.6.5 an inner level decides: registration call, router, operation, null', async () => {
    const api = apiApp({ auth: token('app') })
    const child = new Router().get('/', (ctx) => void (ctx.body = 'child'))
    api.use('/router', withAuth(token('router'))(child).routes())
    api.use('/registered', withAuth(token('call'))(withAuth(token('router'))(child)).routes())
    api.use('/public', withAuth(null)(child).routes())
    api.get('/operation', withAuth(token('operation')), (ctx) => void (ctx.body = ctx.request.auth.via))
    api.get('/open', withAuth(null), (ctx) => void (ctx.body = String(ctx.request.auth)))
    const url = await serve(new Koa().use(api.routes()))
    for (const [path, secret] of Object.entries({ router: 'router', registered: 'call', operation: 'operation' })) {
      expect((await ask(`${url}/${path}`, authorized(secret))).status).toBe(200)
      expect((await ask(`${url}/${path}`, authorized('app'))).status).toBe(401)
    }
    expect((await ask(`${url}/public`)).text).toBe('child')
    expect((await ask(`${url}/open`)).text).toBe('undefined')
  })

  it('an empty or undefined prefix is the same as none', async () => {
    for (const prefix of ['', undefined]) {
      const api = apiApp({ prefix, auth: token('app'), docs: false })
      api.get('/x', (ctx) => void (ctx.body = 'x'))
      const url = await serve(new Koa().use(new Router().use('/v1', api.routes()).use(api.routes()).routes()))
      expect((await ask(`${url}/x`)).status).toBe(401)
      expect((await ask(`${url}/x`, authorized('app'))).status).toBe(200)
      expect((await ask(`${url}/v1/x`, authorized('app'))).status).toBe(200)
    }
  })
})

it('onError of a derived application returns the derived application', async () => {
  const api = apiApp()
  // The types say a router; at run time it has the methods of the application
  const derived = withAuth(token('derived'))(api) as unknown as typeof api
  derived.onError(RangeError, () => ({ status: 400 })).get('/secret', (ctx) => void (ctx.body = 'secret'))
  const url = await serve(new Koa().use(derived.routes()).use(api.routes()))
  expect((await ask(`${url}/secret`)).status).toBe(401)
  expect((await ask(`${url}/secret`, authorized('derived'))).text).toBe('secret')
})

describe('a wrong option of apiApp is a TypeError that names the place', () => {
  for (const [description, options, message] of [
    ['an unknown option', { realms: 'x' }, /apiApp: no option "realms"/],
    ['auth: undefined', { auth: undefined }, /undefined/],
    ['an empty list of authenticators', { auth: [] }, /empty list/],
    ['a factory that was not called', { auth: httpBearer }, /httpBearer itself/],
    ['a prefix without a slash', { prefix: 'api' }, /prefix/],
    ['a prefix with a slash at its end', { prefix: '/api/' }, /prefix/],
    ['a prefix that is not a string', { prefix: null }, /prefix/],
    ['a prefix that is a pattern', { prefix: '/a{/b}' }, /prefix/],
    ['an origin with a path', { trustedOrigins: ['https://app.example/x'] }, /trustedOrigins/],
  ] as const) {
    it(description, () => {
      expect(() => apiApp(options as never)).toThrow(TypeError)
      expect(() => apiApp(options as never)).toThrow(message)
    })
  }
})
