/** The document describes the router that answers, wherever it is mounted, and whatever levels it has. */
import Router from '@koa/router'
import { apiApp, apiKeyHeader, httpBasicAuth, httpBearer, operation, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { docs } from '../../src/openapi/docs.js'
import { listed, sites } from '../support/sites/docsSites.js'
import { ask } from '../support/servers/server.js'

const serve = sites()
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

describe('R13 the document of an application beside siblings in one router', () => {
  const internal = () => withAuth(basic)(new Router()).get('/payroll', () => {})
  const beside = (mount: (outer: Router) => unknown): Router => {
    const outer = new Router()
    outer.use(internal().routes())
    mount(outer)
    outer.get('/late', withAuth(basic), () => {})
    outer.all(/^\/pattern/, withAuth(basic), () => {})
    return outer
  }
  // Without a prefix, so that no path shows which operations belong to it
  const open = () => pets({ prefix: '' })
  const documentOf = async (url: string, path = '/openapi.json') => {
    const text = (await ask(`${url}${path}`)).text
    expect(text).not.toMatch(/payroll|\/late|pattern/)
    return listed(`${url}${path}`)
  }

  it('lists its own operations, without a prefix', async () => {
    const { url } = await serve(beside((outer) => outer.use(open().routes())).routes())
    expect(await documentOf(url)).toEqual(of(''))
  })

  it('lists its own operations below a parameter, whose path matches any', async () => {
    const { url } = await serve(beside((outer) => outer.use('/:tenant', open().routes())).routes())
    expect(await documentOf(url, '/t1/openapi.json')).toEqual(of('/{tenant}'))
  })

  it('lists its own operations if it is nested in a router and in an application, whose document has them, too', async () => {
    const { url } = await serve(
      beside((outer) => {
        const middle = apiApp({ docs: { path: '/all', documentPath: '/all.json' } })
        middle.use(new Router().use(open().routes()).routes())
        middle.get('/middle', () => {})
        outer.use(middle.routes())
      }).routes(),
    )
    expect(await documentOf(url)).toEqual(of(''))
    expect(await documentOf(url, '/all.json')).toEqual({ ...of(''), 'GET /middle': [] })
  })

  it('lists its own operations with other levels; an operation that is added to a copy is in the document of the copy only', async () => {
    const api = open()
    const copy = withAuth(bearer)(api)
    copy.get('/of-the-copy', () => {})
    const { url } = await serve(
      beside((outer) => {
        outer.use(api.routes())
        outer.use('/copy', copy.routes())
      }).routes(),
    )
    expect(await documentOf(url)).toEqual(of(''))
    expect(await documentOf(url, '/copy/openapi.json')).toEqual({
      ...of('/copy', 'bearer'),
      'GET /copy/of-the-copy': [{ bearer: [] }],
    })
  })

  it('has the demands of a router around it that decides', async () => {
    const { url } = await serve(withAuth(key)(beside((outer) => outer.use(open().routes()))).routes())
    expect(await documentOf(url)).toEqual(of('', 'key'))
  })

  it('lists its own operations if there are two without a prefix: the document of the first is served', async () => {
    const other = apiApp({ docs: { path: '/other', documentPath: '/other.json' } })
    other.get('/else', () => {})
    const third = apiApp().get('/third', () => {})
    const { url } = await serve(
      beside((outer) => outer.use(open().routes()).use(other.routes()).use(third.routes())).routes(),
    )
    expect(await documentOf(url)).toEqual(of(''))
    expect(await documentOf(url, '/other.json')).toEqual({ 'GET /else': [] })
    expect((await ask(`${url}/docs`)).status).toBe(200)
  })
})

describe('the document of an application', () => {
  it('has the prefixes of routers that it is mounted in', async () => {
    const outer = new Router({ prefix: '/company' }).use('/v1', pets().routes())
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/company/v1/api/openapi.json`)).toEqual(of('/company/v1/api'))
    expect((await ask(`${url}/company/v1/api/docs`)).status).toBe(200)
  })

  it('is its own for each mount, if it is mounted twice with different levels', async () => {
    const api = pets()
    const outer = new Router()
    outer.use('/v1', withAuth(basic)(api).routes())
    outer.use('/v2', withAuth(bearer)(api).routes())
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(of('/v1/api', 'basic'))
    expect(await listed(`${url}/v2/api/openapi.json`)).toEqual(of('/v2/api', 'bearer'))
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(of('/v1/api', 'basic'))
  })

  it('does not list siblings, even if their paths begin with the same characters', async () => {
    const outer = new Router()
    outer.use('/v1', pets().routes())
    outer.get('/admin', withAuth(basic), () => {})
    outer.get('/v1/api2', () => {})
    outer.get('/v1/apis/x', () => {})
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(of('/v1/api'))
  })

  it('has the parameters of its prefix', async () => {
    const api = apiApp({ prefix: '/tenants/:tenant', auth: bearer })
    api.get('/x{/:y}', () => {})
    const { url } = await serve(new Router().use('/v1', api.routes()).routes())
    expect(Object.keys(await listed(`${url}/v1/tenants/7/openapi.json`)).sort()).toEqual([
      'GET /v1/tenants/{tenant}/x',
      'GET /v1/tenants/{tenant}/x/{y}',
    ])
    expect((await ask(`${url}/v1/tenants/7/docs`)).status).toBe(200)
  })

  it('lists operations without a path that OpenAPI can express, where it is mounted', async () => {
    const api = apiApp({ prefix: '/api' })
    api.get(/^\/files\/.+/, withAuth(bearer), () => {})
    const { url } = await serve(
      new Router()
        .use('/v1', api.routes())
        .get(/^\/elsewhere/, () => {})
        .routes(),
    )
    const { text } = await ask(`${url}/v1/api/openapi.json`)
    const { 'x-undescribed': reported } = JSON.parse(text) as { readonly 'x-undescribed': ReadonlyArray<object> }
    expect(reported).toHaveLength(1)
    expect(reported[0]).toMatchObject({ methods: ['GET'], security: [{ bearer: [] }] })
  })

  it('gives way to an operation of the application at /docs or /openapi.json, whenever that is registered', async () => {
    const api = apiApp({ prefix: '/api', auth: bearer })
    api.get('/docs', (ctx) => {
      ctx.body = `own docs of ${ctx.request.auth.user}`
    })
    const { url } = await serve(new Router().use('/v1', api.routes()).routes())
    expect((await ask(`${url}/v1/api/docs`)).status).toBe(401)
    const headers = { Authorization: 'Bearer supersecret' }
    expect((await ask(`${url}/v1/api/docs`, { headers })).text).toBe('own docs of anna')
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual({ 'GET /v1/api/docs': [{ bearer: [] }] })
  })
})

describe('the document of docs(router)', () => {
  const plain = (prefix = '/api') => {
    const router = new Router({ prefix })
    router.get('/pets', withAuth(bearer), () => {})
    router.get('/secret', operation({ undocumented: true }), withAuth(bearer), () => {})
    return router
  }
  const expected = (prefix: string) => ({ [`GET ${prefix}/pets`]: [{ bearer: [] }] })

  it('describes a router beside it', async () => {
    const router = plain()
    const { url } = await serve(docs(router, about), router.routes())
    expect(await listed(`${url}/openapi.json`)).toEqual(expected('/api'))
  })

  it('describes the router that it is mounted on, at the root and below a path', async () => {
    const router = plain()
    router.use(docs(router, about)).use('/internal', docs(router, about))
    const { url } = await serve(
      new Router()
        .use('/v1', router.routes())
        .get('/other', () => {})
        .routes(),
    )
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(expected('/v1/api'))
    expect(await listed(`${url}/v1/api/internal/openapi.json`)).toEqual(expected('/v1/api'))
  })

  it('describes the given router, if it is mounted on another one', async () => {
    const router = plain()
    const tools = new Router({ prefix: '/tools' }).get('/other', () => {}).use(docs(router, about))
    const { url } = await serve(tools.routes(), router.routes())
    expect(await listed(`${url}/tools/openapi.json`)).toEqual(expected('/api'))
  })

  it('has a prefix that the router gets later', async () => {
    const router = plain()
    router.use(docs(router, about)).prefix('/v2')
    const { url } = await serve(router.routes())
    expect(await listed(`${url}/v2/openapi.json`)).toEqual(expected('/v2'))
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
