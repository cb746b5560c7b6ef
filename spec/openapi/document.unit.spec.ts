/** The document, and the options with which it is built. */
import Router, { type RouterInstance } from '@koa/router'
import { apiKeyHeader, httpBasicAuth, httpBearer, operation, optional, withAuth } from 'koa-with-auth'
import { openApi, type OpenApiOptions } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { decideOf, make } from '../../src/core/Authenticator.js'
import { leaves } from '../../src/core/Description.js'
import { addUnchecked, guardOf } from '../support/models/levels.js'

const authenticate = () => ({ user: 'anna' })
const bearer = httpBearer({ authenticate })
const about = { title: 'Pets', version: '1.0.0' }

// The document of a router.
describe('documents', () => {
  const basic = httpBasicAuth({ authenticate })
  const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate })
  const callable = withAuth(() => true)
  const none = () => {}

  const routed = (fill: (router: Router) => unknown, options?: ConstructorParameters<typeof Router>[0]) => {
    const router = new Router(options)
    fill(router)
    return router
  }
  const documented = (router: RouterInstance) => openApi(router, about)
  /** The operations, by method and path. */
  const operations = (router: RouterInstance) =>
    Object.fromEntries(
      Object.entries(documented(router).paths).flatMap(([path, item]) =>
        Object.entries(item ?? {}).map(([method, one]) => [`${method} ${path}`, one as { security?: object[] }]),
      ),
    )
  const guards = (router: RouterInstance) =>
    Object.fromEntries(Object.entries(operations(router)).map(([place, { security }]) => [place, security]))
  const text = { in: 'path', required: true, schema: { type: 'string' } }
  const parameter = (name: string, more: object = {}) => ({ name, ...text, ...more })
  const schemesOf = (router: RouterInstance) => Object.keys(documented(router).components?.securitySchemes ?? {})

  describe('the security of an operation in the document', () => {
    it('is what its levels decided; public and undecided are []; a plain function leaves it out', () => {
      const router = withAuth(bearer)(new Router()).get('/inherits', none).post('/public', withAuth(null), none)
      router.get('/own', withAuth([key, basic]), none).get('/callable', callable, none)
      const parent = routed((r) => r.get('/undecided', none).use('/api', router.routes()))
      expect(guards(parent)).toEqual({
        'get /undecided': [],
        'get /api/inherits': [{ bearer: [] }],
        'post /api/public': [],
        'get /api/own': [{ 'apiKeyHeader_X-API-Key': [] }, { basic: [] }],
        'get /api/callable': undefined,
      })
      const document = documented(parent)
      expect(document).not.toHaveProperty('security')
      expect(document.paths['/api/callable']?.get?.responses).toHaveProperty('401')
      expect(schemesOf(parent)).toEqual(['bearer', 'apiKeyHeader_X-API-Key', 'basic'])
    })

    it('is [] if the guard comes after the handler, which answers without it', () => {
      // Safe: the types refuse this, but JavaScript can write it
      const guard = withAuth(bearer) as unknown as () => void
      const router = routed((r) => addUnchecked(r, '/late', none, guard).get('/second', guard, none))
      expect(guards(router)).toEqual({ 'get /late': [], 'get /second': [{ bearer: [] }] })
      expect(operations(router)['get /late']).not.toHaveProperty('responses.401')
    })

    it('is that of the first of two layers for one method and path', () => {
      const router = routed((r) => {
        r.get('/x/:id', operation({ summary: 'first' }), withAuth(bearer), none)
        r.get('/x/:name', operation({ summary: 'second' }), withAuth(key), none).post('/x/:name', none)
      })
      expect(operations(router)).toMatchObject({ 'get /x/{id}': { summary: 'first', security: [{ bearer: [] }] } })
      expect(Object.keys(operations(router))).toEqual(['get /x/{id}', 'post /x/{id}'])
      expect(schemesOf(router)).toEqual(['bearer'])
    })

    it('is that of the last layer if the router is exclusive', () => {
      const both = (r: Router) => r.get('/x', withAuth(bearer), none).get('/x', withAuth(key), none)
      const last = guards(routed(both, { exclusive: true }))
      expect(last).toEqual({ 'get /x': [{ 'apiKeyHeader_X-API-Key': [] }] })
      expect(guards(routed(both, { exclusive: 'specificity' }))).toEqual({ 'get /x': [{ bearer: [] }] })
    })
  })

  describe('the paths of the document', () => {
    it('declare parameters; an optional group makes two paths', () => {
      const { paths } = documented(routed((r) => r.get('/pets{/:id}', none).get('/files/*rest', none)))
      expect(paths['/pets/{id}']?.get?.parameters).toEqual([parameter('id')])
      expect(paths['/pets']?.get).not.toHaveProperty('parameters')
      expect(paths['/files/{rest}']?.get?.parameters).toEqual([
        parameter('rest', { description: 'One or more segments of the path, with the slashes between them' }),
      ])
    })

    it('are one for equal templates, with the first names of the parameters', () => {
      const id = { name: 'other', in: 'path', description: 'of put', schema: { type: 'integer' as const } }
      const reference = { $ref: '#/components/parameters/M' }
      const router = routed((r) =>
        r.get('/x/:id/y/:n', none).put('/x/:other/y/:m', operation({ parameters: [id, reference] }), none),
      )
      const components = { parameters: { M: { name: 'm', in: 'path', content: { 'text/plain': {} } } } }
      const { paths } = openApi(router, { ...about, components })
      expect(Object.keys(paths)).toEqual(['/x/{id}/y/{n}'])
      expect(paths['/x/{id}/y/{n}']?.put?.parameters).toEqual([
        parameter('id', { description: 'of put', schema: { type: 'integer' } }),
        { name: 'n', in: 'path', required: true, content: { 'text/plain': {} } },
      ])
    })

    it('leave out what no path can express, which is listed elsewhere with its guard', () => {
      const router = routed((r) => {
        const numbered = operation({ summary: 'By number', parameters: [{ name: 'n', in: 'path' }] })
        r.get(/^\/r\d$/, numbered, withAuth(bearer), none).stack[0]!.methods.push('PROPFIND')
        r.register('/dav', ['PROPFIND', 'GET'], none)
        r.get('/a/:x', none).get('/a/*y', callable, none)
      })
      const { paths, components, 'x-undescribed': undescribed } = documented(router)
      expect(Object.keys(paths)).toEqual(['/dav', '/a/{x}'])
      expect(Object.keys(components?.securitySchemes ?? {})).toEqual(['bearer'])
      expect(undescribed).toEqual([
        {
          path: '/^\\/r\\d$/',
          methods: ['GET', 'PROPFIND'],
          reason: 'a regular expression is not a path template',
          summary: 'By number',
          security: [{ bearer: [] }],
        },
        { path: '/dav', methods: ['PROPFIND'], reason: 'OpenAPI 3.1 has no field for these methods', security: [] },
        { path: '/a/{y}', methods: ['GET'], reason: 'GET /a/:x has the same path template' },
      ])
    })
  })

  describe('a guard that reads more than its scheme', () => {
    const [leaf] = leaves(bearer.description)
    const signed = make({ ...leaf!, headers: ['Signature', 'Digest'], sender: 'acme' }, decideOf(bearer))

    it('adds header fields that the operation does not declare, in any letter case', () => {
      const parameters = [{ name: 'signature', in: 'header', description: 'as it says' }]
      const router = routed((r) => r.post('/x', operation({ parameters }), withAuth(signed), none))
      expect(Reflect.get(operations(router)['post /x']!, 'parameters')).toEqual([
        ...parameters,
        { name: 'Digest', in: 'header', required: true, schema: { type: 'string' } },
      ])
    })

    it('lists its operation as a webhook of the sender, by a JSON Pointer (RFC 6901)', () => {
      const { webhooks } = documented(routed((r) => r.post('/a~b/:c', withAuth(signed), none)))
      expect(webhooks).toEqual({ 'acme /a~b/{c}': { $ref: '#/paths/~1a~0b~1%7Bc%7D' } })
    })
  })

  describe('operation({ ... }) in the document', () => {
    it('is in the operation; what it says of a path parameter is added, or is a reference to a component', () => {
      const others = [
        { name: 'fields', in: 'query', content: { 'application/json': {} } },
        { $ref: 'https://example.com/shared.json#/limit' },
      ]
      const parameters = [
        { name: 'id', in: 'path', description: 'Number of the pet', schema: { type: 'integer' as const } },
        ...others,
        { $ref: '#/components/parameters/Tenant' },
      ]
      const own = { summary: 'One', tags: ['pets'], deprecated: true, 'x-team': 'a' }
      const router = routed((r) => r.get('/:tenant/pets/:id', operation({ ...own, parameters }), none))
      const components = { parameters: { Tenant: parameter('tenant', { example: 'acme' }) } }
      const { paths } = openApi(router, { ...about, components } as OpenApiOptions)
      expect(paths['/{tenant}/pets/{id}']?.get).toEqual({
        ...own,
        parameters: [
          { $ref: '#/components/parameters/Tenant' },
          parameter('id', { description: 'Number of the pet', schema: { type: 'integer' } }),
          ...others,
        ],
        responses: { 200: { description: 'OK' } },
        security: [],
      })
    })

    it('with undocumented leaves out the operation and its scheme', () => {
      const document = documented(routed((r) => r.get('/x', operation({ undocumented: true }), withAuth(bearer), none)))
      expect(document).toEqual({ openapi: '3.1.0', info: about, servers: [{ url: '/' }], paths: {} })
    })

    it('names only the first operation of its route by its operationId', () => {
      const router = routed((r) => r.all('/pets{/:id}', operation({ operationId: 'pets' }), none))
      const ids = Object.entries(operations(router)).filter(([, one]) => 'operationId' in one)
      expect(ids.map(([place]) => place)).toEqual(['get /pets/{id}'])
    })

    it.each<[string, (router: Router) => unknown]>([
      [
        'openApi: operationId "x" is in GET /a and in POST /b; each needs its own',
        (r) => r.get('/a', operation({ operationId: 'x' }), none).post('/b', operation({ operationId: 'x' }), none),
      ],
      [
        'GET /a{/:id}: operation({ parameters }) names the path parameter "ID", which the path does not have',
        (r) => r.get('/a{/:id}', operation({ parameters: [{ name: 'ID', in: 'path' }] }), none),
      ],
      ['ALL /a: operation({ ... }) is in it twice; remove one', (r) => r.all('/a', operation({}), operation({}), none)],
    ])('is a TypeError when it is built: %s', (message, fill) => {
      const router = routed(fill)
      expect(() => documented(router)).toThrow(new TypeError(message))
    })
  })

  it('documents share nothing: changing an operation of a document changes no other operation and no other document', () => {
    const router = withAuth(bearer)(routed((r) => r.get('/a', none).get('/b', none).get(/^\/c$/, none)))
    const before = JSON.stringify(documented(router))
    const document = documented(router)
    const other = JSON.stringify(document.paths['/b'])
    const change = (value: unknown): unknown => {
      if (typeof value !== 'object' || value === null) return value
      for (const [name, one] of Object.entries(value)) {
        change(one)
        if (typeof one !== 'object') Reflect.set(value, name, 'changed')
      }
      return Reflect.set(value, 'x-changed', true)
    }
    change(document.paths['/a'])
    expect(JSON.stringify(document.paths['/b'])).toBe(other)
    change(document)
    expect(JSON.stringify(document)).toContain('x-changed')
    expect(JSON.stringify(documented(router))).toBe(before)
  })

  describe('a function as an authenticator, for which OpenAPI has no scheme', () => {
    const local = (request: { readonly ip: string }) => request.ip === '127.0.0.1' && 'this machine'
    const reported =
      'A function of the request decides, too. It has no security scheme, so there is nothing to enter for it.'
    const guarded = '**Guarded** by a function of the request. It has no security scheme, so there is nothing to enter.'
    const described = (auth: unknown, description?: string) => {
      const said = operation(description === undefined ? {} : { description })
      // Safe: a guard and a description are middleware
      const one = operations(routed((r) => r.get('/x', said, guardOf(auth) as never, none)))['get /x']
      return [Reflect.get(one!, 'description'), 'security' in one!]
    }

    it('is described as guarded, because it has no padlock', () => {
      expect(described(local)).toEqual([guarded, false])
      expect(described([local, local], 'Known addresses.')).toEqual([`Known addresses.\n\n${guarded}`, false])
    })

    it('is described beside kinds with a scheme, and if anonymous callers are admitted', () => {
      expect(described([bearer, local])[0]).toBe(reported)
      expect(described(optional(local), 'Any.')[0]).toBe(`Any.\n\n${reported}`)
    })

    it('is not described if there is no function', () => {
      for (const auth of [bearer, [bearer, key], null]) {
        expect([described(auth), described(auth, 'As it is.')]).toEqual([[undefined, true], ['As it is.', true]]) // prettier-ignore
      }
    })
  })
})

// The parts of a document other than its operations, and options that are refused.
describe('options', () => {
  describe('options of openApi', () => {
    it('make the Info Object and the root; undefined ones are left out', () => {
      const options = {
        ...about,
        summary: 'All of them',
        description: 'Text',
        termsOfService: 'https://example.com/terms',
        contact: { name: 'Us' },
        license: { name: 'MIT', identifier: 'MIT' },
        servers: [{ url: 'https://api.example.com' }],
        tags: [{ name: 'pets' }],
        externalDocs: { url: 'https://example.com' },
        'x-logo': { url: '/logo.svg' },
      }
      const { title, version, summary, description, termsOfService, contact, license, ...root } = options
      const info = { title, version, summary, description, termsOfService, contact, license }
      expect(openApi(new Router(), options)).toEqual({ openapi: '3.1.0', info, ...root, paths: {} })
      const unset = { ...about, description: undefined, servers: undefined } as unknown as OpenApiOptions
      expect(openApi(new Router(), unset)).toEqual(openApi(new Router(), about))
    })

    it('components: those of the author are added to ours, and replace them', () => {
      const Problem = { type: 'object' as const, title: 'Own' }
      const components = { schemas: { Pet: { type: 'object' as const }, Problem }, examples: {} }
      const router = new Router().get('/', withAuth(bearer), () => {})
      const document = openApi(router, { ...about, components })
      expect(document.components?.schemas).toEqual({ Problem, Pet: { type: 'object' } })
      expect(Object.keys(document.components ?? {})).toEqual(['securitySchemes', 'schemas', 'responses', 'headers'])
    })

    it.each([
      [undefined, 'openApi takes an object of options, not undefined'],
      [{ title: 'x' }, 'openApi({ version }) must be a string'],
      [{ version: '1' }, 'openApi({ title }) must be a string'],
      [{ ...about, tittle: 'x' }, 'openApi: no option "tittle"; there are title, summary, '],
      [{ ...about, security: [] }, 'openApi: no option "security"'],
      [{ ...about, servers: '/' }, 'openApi({ servers }) must be an array'],
      [{ ...about, components: 1 }, 'openApi({ components }) must be an object'],
      [{ ...about, components: { securitySchemes: {} } }, '{ securitySchemes } }): they come from the guards'],
    ])('%j is a TypeError', (options, message) => {
      expect(() => openApi(new Router(), options as never)).toThrow(TypeError)
      expect(() => openApi(new Router(), options as never)).toThrow(message)
    })

    it('routes() instead of the router is a TypeError', () => {
      expect(() => openApi(new Router().routes() as never, about)).toThrow(
        new TypeError(
          'openApi(router, options) takes the router itself, not its routes(): write openApi(routes.router, options)',
        ),
      )
    })
  })
})
