/** The document describes the router that answers, wherever it is mounted, and whatever levels it has. */
import Router, { type RouterInstance } from '@koa/router'
import { apiApp, apiKeyHeader, httpBasicAuth, httpBearer, operation, withAuth, sessionAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import Koa from 'koa'
import session from 'koa-session'
import { cachedOpenApi, type ApiDocument } from 'koa-with-auth/openapi'
import { sessions } from 'koa-with-auth/sessions'
import { docs } from '../../src/openapi/docs.js'
import { listed, serve } from '../support/sites/docsSites.js'
import { ask, listen } from '../support/servers/server.js'

const about = { title: 'Pets', version: '1.0.0' }

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
const basic = httpBasicAuth({ authenticate: (_request, user) => user === 'admin' && { user } })
const key = apiKeyHeader({ schemeName: 'key', authenticate: (_request, sent) => sent === 'k1' && { client: 'Acme' } })

const pets = (options: Parameters<typeof apiApp>[0] = {}) => {
  const api = apiApp({ prefix: '/api', ...options })
  api.get('/pets', () => {})
  api.get('/mine', withAuth(key), () => {})
  api.get('/open', withAuth(null), () => {})
  return api
}

const of = (prefix: string, scheme?: string) => ({
  [`GET ${prefix}/pets`]: scheme === undefined ? [] : [{ [scheme]: [] }],
  [`GET ${prefix}/mine`]: [{ key: [] }],
  [`GET ${prefix}/open`]: [],
})

// Without a prefix, so that no path shows which operations belong to it
const open = () => pets({ prefix: '' })
const beside = (mount: (outer: Router) => unknown): Router => {
  const outer = new Router()
  outer.use(withAuth(basic)(new Router()).get('/payroll', () => {}).routes()) // prettier-ignore
  mount(outer)
  outer.get('/late', withAuth(basic), () => {})
  outer.all(/^\/pattern/, withAuth(basic), () => {})
  return outer
}
const mounted = (outer: Router) => outer.use(open().routes())
const below = (outer: Router) => outer.use('/:tenant', open().routes())
const nested = (outer: Router) => {
  const middle = apiApp({ docs: { path: '/all', documentPath: '/all.json' } })
  middle.use(new Router().use(open().routes()).routes()).get('/middle', () => {})
  outer.use(middle.routes())
}
const copied = (outer: Router) => {
  const api = open()
  const copy = withAuth(bearer)(api).get('/of-the-copy', () => {})
  outer.use(api.routes()).use('/copy', copy.routes())
}
const twice = () => {
  const api = pets()
  return new Router().use('/v1', withAuth(basic)(api).routes()).use('/v2', withAuth(bearer)(api).routes())
}
const third = (outer: Router) => {
  const other = apiApp({ docs: { path: '/other', documentPath: '/other.json' } }).get('/else', () => {})
  outer.use(open().routes()).use(other.routes()).use(apiApp().get('/third', () => {}).routes()) // prettier-ignore
}
const alike = () => {
  const api = pets().post('/docs', () => {})
  const outer = new Router().use('/v1', api.routes()).get('/admin', withAuth(basic), () => {})
  return outer.get('/v1/api2', () => {}).get('/v1/apis/x', () => {})
}

const plain = (prefix = '/api') => {
  const router = new Router({ prefix })
  router.get('/pets', withAuth(bearer), () => {})
  router.get('/secret', operation({ undocumented: true }), withAuth(bearer), () => {})
  return router
}
const one = (prefix: string) => ({ [`GET ${prefix}/pets`]: [{ bearer: [] }] })
const inside = () => {
  const router = plain()
  router.use(docs(router, about)).use('/internal', docs(router, about))
  const outer = new Router().use('/v1', router.routes())
  return outer.get('/other', () => {}).get('/v1/api2', () => {})
}
const later = () => {
  const router = plain()
  router.use(docs(router, about)).prefix('/v2')
  return router
}

describe('the document of an application, or of docs(router), lists its own operations', () => {
  it.each<[what: string, router: () => RouterInstance, documents: Readonly<Record<string, object>>]>([
    ['R13 beside siblings', () => beside(mounted), { '/openapi.json': of('') }],
    ['R13 below a parameter, whose path matches any', () => beside(below), { '/t1/openapi.json': of('/{tenant}') }],
    [
      'R13 nested in a router and in an application, whose document has them, too',
      () => beside(nested),
      { '/openapi.json': of(''), '/all.json': { ...of(''), 'GET /middle': [] } },
    ],
    [
      'R13 with other levels; what is added to a copy is in the document of the copy only',
      () => beside(copied),
      {
        '/openapi.json': of(''),
        '/copy/openapi.json': { ...of('/copy', 'bearer'), 'GET /copy/of-the-copy': [{ bearer: [] }] },
      },
    ],
    ['R13 with the demands of its router', () => withAuth(key)(beside(mounted)), { '/openapi.json': of('', 'key') }],
    [
      'R13 of two without a prefix: the document of the first is served',
      () => beside(third),
      { '/openapi.json': of(''), '/other.json': { 'GET /else': [] } },
    ],
    [
      'with the prefixes of routers that it is mounted in',
      () => new Router({ prefix: '/company' }).use('/v1', pets().routes()),
      { '/company/v1/api/openapi.json': of('/company/v1/api') },
    ],
    [
      'for each mount, if it is mounted twice with different levels',
      twice,
      { '/v1/api/openapi.json': of('/v1/api', 'basic'), '/v2/api/openapi.json': of('/v2/api', 'bearer') },
    ],
    [
      'and no sibling that begins with the same characters; another method does not take the place of the page',
      alike,
      { '/v1/api/openapi.json': { ...of('/v1/api'), 'POST /v1/api/docs': [] } },
    ],
    [
      'of a router that docs is mounted on, at the root and below a path',
      inside,
      { '/v1/api/openapi.json': one('/v1/api'), '/v1/api/internal/openapi.json': one('/v1/api') },
    ],
    ['with a prefix that the router gets later', later, { '/v2/openapi.json': one('/v2') }],
  ])('%s', async (_what, make, documents) => {
    const { url } = await serve(make().routes())
    for (const [path, expected] of [...Object.entries(documents), ...Object.entries(documents)]) {
      expect(await listed(url + path)).toEqual(expected)
      expect((await ask(url + path)).text).not.toMatch(/payroll|\/late|pattern/)
      if (path.endsWith('/openapi.json'))
        expect((await ask(url + path.replace('openapi.json', 'docs'))).status).toBe(200)
    }
  })

  it('of the given router beside it, and if docs is mounted on another one', async () => {
    const router = plain()
    const tools = new Router({ prefix: '/tools' }).get('/other', () => {}).use(docs(router, about))
    const { url } = await serve(docs(router, about), tools.routes(), router.routes())
    for (const path of ['/openapi.json', '/tools/openapi.json']) expect(await listed(url + path)).toEqual(one('/api'))
  })

  it('is made once, and is served if one router mounts it twice there', async () => {
    let made = 0
    const page = docs(plain(), { ...about, 'x-made': { toJSON: () => ++made } })
    const { url } = await serve(new Router().use(page).use(page).use('/again', page).routes())
    for (const path of ['/openapi.json', '/openapi.json', '/again/openapi.json', '/again/openapi.json'])
      expect((await ask(url + path)).status).toBe(200)
    expect([made, (await ask(`${url}/docs`)).status]).toEqual([1, 200])
  })

  it('has the parameters of its prefix', async () => {
    const api = apiApp({ prefix: '/tenants/:tenant', auth: bearer })
    api.get('/x{/:y}', () => {}).get('{/:z}', () => {})
    const { url } = await serve(new Router().use('/v1', api.routes()).routes())
    const paths = ['', '/x', '/x/{y}', '/{z}'].map((path) => `GET /v1/tenants/{tenant}${path}`)
    expect(Object.keys(await listed(`${url}/v1/tenants/7/openapi.json`)).sort()).toEqual(paths)
    expect((await ask(`${url}/v1/tenants/7/docs`)).status).toBe(200)
  })

  it('lists operations without a path that OpenAPI can express, where it is mounted', async () => {
    const api = apiApp({ prefix: '/api' })
    api.get(/^\/files\/.+/, withAuth(bearer), () => {})
    const outer = new Router().use('/v1', api.routes()).get(/^\/elsewhere/, () => {})
    const { url } = await serve(outer.routes())
    const { text } = await ask(`${url}/v1/api/openapi.json`)
    const { 'x-undescribed': reported } = JSON.parse(text) as { readonly 'x-undescribed': ReadonlyArray<object> }
    expect(reported).toHaveLength(1)
    expect(reported[0]).toMatchObject({ methods: ['GET'], security: [{ bearer: [] }] })
  })

  it('gives way to an operation of the application at /docs or /openapi.json, whenever that is registered', async () => {
    const api = apiApp({ prefix: '/api', auth: bearer })
    api.get('/docs', (ctx) => void (ctx.body = `own docs of ${ctx.request.auth.user}`))
    const { url } = await serve(new Router().use('/v1', api.routes()).routes())
    expect((await ask(`${url}/v1/api/docs`)).status).toBe(401)
    const headers = { Authorization: 'Bearer supersecret' }
    expect((await ask(`${url}/v1/api/docs`, { headers })).text).toBe('own docs of anna')
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual({ 'GET /v1/api/docs': [{ bearer: [] }] })
  })
})

it('a document is a 500 without a reason for the client if it cannot be built, and the application gets the error', async () => {
  const api = apiApp()
  api.get('/a', operation({ operationId: 'same' }), () => {})
  api.get('/b', operation({ operationId: 'same' }), () => {})
  const served = await serve(api.routes())
  const { status, text } = await ask(`${served.url}/openapi.json`)
  expect([status, text]).toEqual([500, 'Internal Server Error'])
  expect(String(served.errors[0])).toMatch(/^TypeError: .*operationId/)
  expect((await ask(`${served.url}/docs`)).status).toBe(200)
})

const keys = ['a signing key for tests, 32 characters']
const hidden = operation({ undocumented: true })

const application = (options: Parameters<typeof session>[0]) => {
  const router = new Router()
  const described = cachedOpenApi(router, { title: 'Sessions', version: '1' })
  let calls = 0
  router.get('/openapi.json', hidden, (ctx) => void (ctx.body = described(ctx.request).document))
  router.post('/login', hidden, (ctx) => {
    ctx['session'] = { user: { username: 'anna' } }
    ctx.status = 204
  })
  router.get('/me', withAuth(sessionAuth()), (ctx) => void (ctx.body = `${ctx.request.auth.username} ${++calls}`))
  const app = new Koa({ keys })
  // koa-session sends Secure cookies only over HTTPS
  app.proxy = true
  app.use(session(options, app)).use(router.routes())
  return { app, calls: () => calls }
}

const https = { 'X-Forwarded-Proto': 'https' }
const documentAt = async (url: string): Promise<ApiDocument> =>
  JSON.parse((await ask(`${url}/openapi.json`, { headers: https })).text) as ApiDocument

describe('a document that is served', () => {
  it.each([
    { description: 'the default name of koa-session', options: {}, name: 'koa.sess' },
    { description: 'another name', options: { key: 'sid' }, name: 'sid' },
    { description: 'a __Host- name', options: { key: '__Host-sid', secure: true }, name: '__Host-sid' },
  ])('names the cookie that the guard accepts: $description', async ({ options, name }) => {
    const { app, calls } = application(options)
    const { url } = await listen(app)
    const { paths, components } = await documentAt(url)
    expect(paths['/me']?.get?.security).toEqual([{ [`cookie_${name}`]: [] }])
    const scheme = { type: 'apiKey', in: 'cookie', name }
    expect(components?.securitySchemes?.[`cookie_${name}`]).toMatchObject(scheme)

    const { headers } = await ask(`${url}/login`, { method: 'POST', headers: https })
    const cookies = headers.getSetCookie().map((line) => line.split(';')[0]!)
    expect(cookies.map((cookie) => cookie.split('=')[0])).toEqual([name, `${name}.sig`])
    const me = await ask(`${url}/me`, { headers: { ...https, Cookie: cookies.join('; ') } })
    expect([me.status, me.text]).toEqual([200, 'anna 1'])
    const bare = await ask(`${url}/me`, { headers: https })
    expect([bare.status, bare.challenge, calls()]).toEqual([401, 'Session realm="api"', 1])
  })

  it('is another one for each application that mounts the router, with the tokens of its sessions', async () => {
    const router = new Router()
    const described = cachedOpenApi(router, { title: 'Sessions', version: '1' })
    router.get('/openapi.json', hidden, (ctx) => (ctx.body = described(ctx.request).document))
    router.get('/me', withAuth(sessionAuth()), () => {})
    const schemes = async (bearer: boolean) => {
      const app = new Koa({ keys })
      sessions(app, { loadUser: () => undefined, bearer })
      const { url } = await listen(app.use(router.routes()))
      const { paths } = await documentAt(url)
      return paths['/me']?.get?.security?.map((one) => Object.keys(one).join()) ?? []
    }
    const [cookie] = await schemes(false)
    expect(await schemes(true)).toEqual([cookie, 'bearer_session'])
    expect(await schemes(false)).toEqual([cookie])
  })
})
