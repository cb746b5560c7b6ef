/** The document is that of the router that answers, wherever the described one is mounted, and however it is re-levelled. */
import Router from '@koa/router'
import { apiApp, apiKeyHeader, httpBasicAuth, httpBearer, operation, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { docs } from '../../src/openapi/docs.js'
import { listed, sites } from '../support/docsSites.js'
import { ask } from '../support/server.js'

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

describe('R13 an application beside siblings in one router', () => {
  const internal = () => withAuth(basic)(new Router()).get('/payroll', () => {})
  const beside = (mount: (outer: Router) => unknown): Router => {
    const outer = new Router()
    outer.use(internal().routes())
    mount(outer)
    outer.get('/late', withAuth(basic), () => {})
    outer.all(/^\/pattern/, withAuth(basic), () => {})
    return outer
  }
  // without a prefix, so that no path tells which operations are its own
  const open = () => pets({ prefix: '' })
  const documentOf = async (url: string, path = '/openapi.json') => {
    const text = (await ask(`${url}${path}`)).text
    expect(text).not.toMatch(/payroll|late|pattern/)
    return listed(`${url}${path}`)
  }

  it('tells of itself, without a prefix', async () => {
    const { url } = await serve(beside((outer) => outer.use(open().routes())).routes())
    expect(await documentOf(url)).toEqual(of(''))
  })

  it('at a parameter, whose path begins like any', async () => {
    const { url } = await serve(beside((outer) => outer.use('/:tenant', open().routes())).routes())
    expect(await documentOf(url, '/t1/openapi.json')).toEqual(of('/{tenant}'))
  })

  it('nested, in a router and in an application, whose document has it, too', async () => {
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

  it('with levels anew; what a copy gets later is in its document alone', async () => {
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

  it('a router around it that decides anew is in its document', async () => {
    const { url } = await serve(withAuth(key)(beside((outer) => outer.use(open().routes()))).routes())
    expect(await documentOf(url)).toEqual(of('', 'key'))
  })

  it('two of them without a prefix: the first answers, and tells of itself', async () => {
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

describe('an application', () => {
  it('as it is', async () => {
    const { url } = await serve(pets().routes())
    expect(await listed(`${url}/api/openapi.json`)).toEqual(of('/api'))
  })

  it('mounted into another router under a prefix', async () => {
    const outer = new Router({ prefix: '/company' }).use('/v1', pets().routes())
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/company/v1/api/openapi.json`)).toEqual(of('/company/v1/api'))
    expect((await ask(`${url}/company/v1/api/docs`)).status).toBe(200)
  })

  it('re-levelled by withAuth(b)(api)', async () => {
    const { url } = await serve(withAuth(basic)(pets()).routes())
    expect(await listed(`${url}/api/openapi.json`)).toEqual(of('/api', 'basic'))
  })

  it('mounted twice in one router, each with its own level: each page tells of its own', async () => {
    const api = pets()
    const outer = new Router()
    outer.use('/v1', withAuth(basic)(api).routes())
    outer.use('/v2', withAuth(bearer)(api).routes())
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(of('/v1/api', 'basic'))
    expect(await listed(`${url}/v2/api/openapi.json`)).toEqual(of('/v2/api', 'bearer'))
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(of('/v1/api', 'basic'))
  })

  it('guarded by the router that it is mounted on', async () => {
    const outer = withAuth(basic)(new Router())
    outer.use('/in', pets().routes())
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/in/api/openapi.json`)).toEqual(of('/in/api', 'basic'))
  })

  it('does not tell of its neighbours, whose paths may begin alike', async () => {
    const outer = new Router()
    outer.use('/v1', pets().routes())
    outer.get('/admin', withAuth(basic), () => {})
    outer.get('/v1/api2', () => {})
    outer.get('/v1/apis/x', () => {})
    const { url } = await serve(outer.routes())
    expect(await listed(`${url}/v1/api/openapi.json`)).toEqual(of('/v1/api'))
  })

  it('with a prefix that has parameters', async () => {
    const api = apiApp({ prefix: '/tenants/:tenant', auth: bearer })
    api.get('/x{/:y}', () => {})
    const { url } = await serve(new Router().use('/v1', api.routes()).routes())
    expect(Object.keys(await listed(`${url}/v1/tenants/7/openapi.json`)).sort()).toEqual([
      'GET /v1/tenants/{tenant}/x',
      'GET /v1/tenants/{tenant}/x/{y}',
    ])
    expect((await ask(`${url}/v1/tenants/7/docs`)).status).toBe(200)
  })

  it('what has no path that OpenAPI could say is reported, too, where it is mounted', async () => {
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

  it('routes that a derived application gets later are in its document', async () => {
    const derived = withAuth(basic)(pets())
    const { url } = await serve(derived.routes())
    await listed(`${url}/api/openapi.json`)
    derived.get('/late', () => {})
    expect(await listed(`${url}/api/openapi.json`)).toEqual({
      ...of('/api', 'basic'),
      'GET /api/late': [{ basic: [] }],
    })
  })

  it('an operation of its own at /docs or /openapi.json counts, whenever it was registered', async () => {
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

describe('docs(router)', () => {
  const plain = (prefix = '/api') => {
    const router = new Router({ prefix })
    router.get('/pets', withAuth(bearer), () => {})
    router.get('/secret', operation({ undocumented: true }), withAuth(bearer), () => {})
    return router
  }
  const expected = (prefix: string) => ({ [`GET ${prefix}/pets`]: [{ bearer: [] }] })

  it('beside its router, on the application', async () => {
    const router = plain()
    const { url } = await serve(docs(router, about), router.routes())
    expect(await listed(`${url}/openapi.json`)).toEqual(expected('/api'))
  })

  it('on its router, and on that below a path', async () => {
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

  it('on a router of other things: the one that was given is described', async () => {
    const router = plain()
    const tools = new Router({ prefix: '/tools' }).get('/other', () => {}).use(docs(router, about))
    const { url } = await serve(tools.routes(), router.routes())
    expect(await listed(`${url}/tools/openapi.json`)).toEqual(expected('/api'))
  })

  it('a router whose prefix is set afterwards', async () => {
    const router = plain()
    router.use(docs(router, about)).prefix('/v2')
    const { url } = await serve(router.routes())
    expect(await listed(`${url}/v2/openapi.json`)).toEqual(expected('/v2'))
  })
})

it('what no document can be made of is a 500 that tells the client nothing, and the application why', async () => {
  const api = apiApp()
  api.get('/a', operation({ operationId: 'same' }), () => {})
  api.get('/b', operation({ operationId: 'same' }), () => {})
  const served = await serve(api.routes())
  const { status, text } = await ask(`${served.url}/openapi.json`)
  expect([status, text]).toEqual([500, 'Internal Server Error'])
  expect(String(served.errors[0])).toMatch(/^TypeError: .*operationId/)
  expect((await ask(`${served.url}/docs`)).status).toBe(200)
})
