/** The parts of the command that need no process: arguments, the choice of an export, documents, and SARIF. */
import Router from '@koa/router'
import { Ajv } from 'ajv'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import {
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  httpBearer,
  operation,
  optional,
  requireScopes,
  withAuth,
} from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { differencesOf, linesOf } from '../../src/audit/policy.js'
import { documentDifferences, documentFrom } from '../../src/command/document.js'
import { auditedOf, chosen } from '../../src/command/load.js'
import { findingsOf, findingsOfPolicy } from '../../src/audit/findings.js'
import { findingsOfDocument, optionsFrom, sarifOf } from '../../src/command/perform.js'
import { guardOf, addUnchecked } from '../support/models/levels.js'
import { sarifSchema } from '../support/papers/sarifSchema.js'

const handle = (): void => {}
const bearer = httpBearer({ authenticate: () => true })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => true })
const router = () => withAuth(bearer)(new Router()).get('/me', handle)

describe('arguments', () => {
  it.each<[string, object]>([
    ['audit a.js', { module: 'a.js', exportName: undefined, task: { _tag: 'Print' }, format: 'text' }],
    ['audit a.js --export api --json', { exportName: 'api', format: 'json' }],
    [
      'audit --check=auth.lock a.js --sarif',
      { module: 'a.js', task: { _tag: 'Check', file: 'auth.lock' }, format: 'sarif' },
    ],
    ['audit a.js --write auth.lock', { task: { _tag: 'Write', file: 'auth.lock' } }],
    ['audit a.js --openapi api.json', { task: { _tag: 'OpenApi', file: 'api.json' } }],
    ['audit a.js --help', { _tag: 'Help' }],
    ['--version', { _tag: 'Version' }],
  ])('%s', (line, expected) => {
    expect(optionsFrom(line.split(' '))).toMatchObject(E.right(expected))
  })

  it.each<[string, string]>([
    ['seal a.js', 'no command "seal"; there is audit'],
    ['audit', 'audit takes a module: koa-with-auth audit ./dist/app.js'],
    ['audit a.js b.js', 'audit takes one module; remove "b.js"'],
    ['audit a.js --write x --check x', '--write, --check and --openapi cannot be combined'],
    ['audit a.js --json --sarif', '--json and --sarif cannot be combined'],
    ['audit a.js --write x --json', '--write cannot be combined with --json or --sarif'],
    ['audit a.js --check=', '--check is empty'],
    ['audit a.js --chek x', "Unknown option '--chek'"],
  ])('%s: is refused', (line, why) => {
    expect(optionsFrom(line.split(' '))).toStrictEqual(E.left(why))
  })
})

describe('the export that is audited', () => {
  const app = new Koa().use(router().routes())
  const api = apiApp({ auth: bearer, docs: false })
  it.each<[name: string, namespace: object, chosen: string]>([
    ['the default export', { default: router(), other: app }, 'default export'],
    ['a function that makes an application', { default: () => app, app }, 'default export'],
    ['the routes of a router', { default: router().routes() }, 'default export'],
    ['an apiApp', { default: api }, 'default export'],
    ['the only export that fits', { port: 3000, start: () => app, api }, 'export api'],
    ['module.exports', { default: { app, port: 1 }, app, port: 1, 'module.exports': { app } }, 'export app'],
    [
      'the default export of an ES module that was compiled to CommonJS',
      { default: { __esModule: true, default: app }, __esModule: true },
      'default export',
    ],
  ])('is chosen: %s', (_name, namespace, expected) => {
    expect(
      pipe(
        chosen(namespace, undefined),
        E.map(({ name }) => name),
      ),
    ).toStrictEqual(E.right(expected))
  })

  const operations = async (value: unknown) =>
    pipe(
      await auditedOf({ name: 'export x', value }),
      E.map((audited) => audited.audit.operations.map((one) => one.operation)),
    )
  it.each<[name: string, value: unknown]>([
    ['a router', router()],
    ['its routes', router().routes()],
    ['an application', app],
    ['an async function', async () => app],
    ['a promise', Promise.resolve(router())],
  ])('may be %s', async (_name, value) => {
    expect(await operations(value)).toStrictEqual(E.right(['GET /me']))
  })

  it.each<[name: string, value: unknown, why: string]>([
    ['a class', class App {}, 'its export x is a class; export a router, an application, or a function that makes one'],
    [
      'a function with parameters',
      (a: unknown, b: unknown) => [a, b],
      'its export x is a function that takes 2 parameters; export one without',
    ],
    [
      'a function that makes something else',
      () => 42,
      'its export x() is not a router of @koa/router, an apiApp or a Koa application',
    ],
    ['null', null, 'its export x is not a router of @koa/router, an apiApp or a Koa application'],
  ])('may not be %s', async (_name, value, why) => {
    expect(await operations(value)).toStrictEqual(E.left(why))
  })
})

describe('a document of OpenAPI', () => {
  const scoped = pipe(bearer, requireScopes(['read'], { granted: () => [] }))
  const described = () =>
    router()
      .get('/users/:id', guardOf([bearer, key]) as never, handle)
      .get('/scoped', guardOf(scoped) as never, handle)
      .get('/perhaps', guardOf(optional(bearer)) as never, handle)
      .get('/open', guardOf(null) as never, handle)
      .get('/custom', guardOf(() => true) as never, handle)
      .get('/hidden', operation({ undocumented: true }), handle)
      .all('/all{/:x}', handle)
      .get(/^\/regexp/, handle)
  const made = () => JSON.parse(JSON.stringify(openApi(described(), { title: 't', version: '1' }))) as Document
  interface Document {
    paths: Record<string, Record<string, { security?: object[] }>>
    components: { securitySchemes: Record<string, object> }
    servers?: object[]
    security?: object[]
  }
  const compared = (document: object) => {
    const own = described()
    return documentDifferences(document, [own], audit(own)).map(({ isOpener, text }) => [isOpener, text])
  }

  it('that the router made agrees, also with other names of schemes and parameters, and below a server URL', () => {
    expect(compared(made())).toEqual([])
    const renamed = JSON.parse(
      JSON.stringify(made()).replaceAll('"bearer":', '"token":').replaceAll('{id}', '{user}'),
    ) as Document
    expect(compared(renamed)).toEqual([])
    const below = made()
    const own = new Router({ prefix: '/v1' }).get('/open', guardOf(null) as never, handle)
    const document = {
      ...below,
      servers: [{ url: 'https://api.example/v1/' }],
      paths: { '/open': below.paths['/open'] },
    }
    expect(documentDifferences(document, [own], audit(own))).toEqual([])
  })

  it('differs if it demands what a guard after the handler demands: anyone may call the operation', () => {
    const own = addUnchecked(new Router(), '/me', handle, guardOf(bearer))
    const document = { ...made(), paths: { '/me': made().paths['/me'] } }
    expect(documentDifferences(document, [own], audit(own)).map(({ isOpener, text }) => [isOpener, text])).toEqual([
      [true, 'GET /me: the document says bearer, the guards demand nothing'],
    ])
  })

  it('D-R8 differs if it demands a guard, but an open operation answers first', () => {
    const guard = guardOf(bearer) as never
    const differences = (own: Router) =>
      documentDifferences(openApi(own, { title: 't', version: '1' }), [own], audit(own)).map((one) => [
        one.isOpener,
        one.text,
      ])
    const open = guardOf(null) as never
    expect(differences(new Router().get('/users/:id', open, handle).get('/users/me', guard, handle))).toEqual([
      [true, 'GET /users/me: the document says bearer, but GET /users/:id, which is public, answers its requests'],
    ])
    expect(differences(new Router().get('/:who/me', open, handle).get('/users/:id', guard, handle))).toEqual([
      [true, 'GET /users/:id: the document says bearer, but GET /:who/me, which is public, answers some requests'],
    ])
    // A narrower open operation answers its own requests only. Of two operations for one path the first is in the
    // document.
    expect(differences(new Router().get('/users/me', open, handle).get('/users/:id', guard, handle))).toEqual([])
    expect(differences(new Router().get('/x', open, handle).get('/x', guard, handle))).toEqual([])
  })

  it('may list hidden operations, and may have its demands at the root', () => {
    const document = { ...made(), security: [{ bearer: [] }] }
    document.paths['/hidden'] = { get: {} }
    delete document.paths['/me']?.['get']?.security
    expect(compared(document)).toEqual([])
  })

  it.each<[name: string, add: (router: ReturnType<typeof described>) => unknown, paths: object, text?: string]>([
    [
      'undocumented and public',
      (own) => own.get('/hatch', operation({ undocumented: true }), guardOf(null) as never, handle),
      {},
      'GET /hatch: is not in the document, and anyone may call it',
    ],
    [
      'undocumented, and optional',
      (own) => own.get('/hatch', operation({ undocumented: true }), guardOf(optional(bearer)) as never, handle),
      {},
      'GET /hatch: is not in the document, and anyone may call it',
    ],
    [
      'a RegExp',
      (own) => own.get(/^\/hatch/, guardOf(null) as never, handle),
      {},
      'GET /^\\/hatch/: is not in the document, and anyone may call it',
    ],
    [
      'a method that OpenAPI does not have',
      (own) => own.register('/hatch', ['PROPFIND'], [guardOf(null), handle] as never),
      {},
      'PROPFIND /hatch: is not in the document, and anyone may call it',
    ],
    [
      'undocumented, although the document demands a credential',
      (own) => own.get('/hatch', operation({ undocumented: true }), guardOf(null) as never, handle),
      { '/hatch': { get: { security: [{ bearer: [] }] } } },
      'GET /hatch: the document says bearer, and anyone may call it',
    ],
    [
      'undocumented, and the document says that it is public',
      (own) => own.get('/hatch', operation({ undocumented: true }), guardOf(null) as never, handle),
      { '/hatch': { get: {} } },
    ],
  ])('does not hide an open operation: %s', (_name, add, paths, text) => {
    const document = made()
    Object.assign(document.paths, paths)
    const own = described()
    add(own)
    expect(documentDifferences(document, [own], audit(own))).toStrictEqual(
      text === undefined ? [] : [{ isOpener: true, operation: text.split(': ')[0], text }],
    )
  })

  it.each<[name: string, change: (document: Document) => void, differences: [boolean, string][]]>([
    [
      'a stricter document: listed first',
      ({ paths }) => {
        paths['/open']!['get']!.security = [{ bearer: [] }]
        paths['/me']!['get']!.security = []
      },
      [
        [true, 'GET /open: the document says bearer, the guards demand nothing'],
        [false, 'GET /me: the document says nothing, the guards demand bearer'],
      ],
    ],
    [
      'other scopes',
      ({ paths }) => (paths['/scoped']!['get']!.security = [{ bearer: ['read', 'write'] }]),
      [
        [
          true,
          'GET /scoped: the document says bearer with scopes read write, the guards demand bearer with scopes read',
        ],
      ],
    ],
    [
      'a missing alternative',
      ({ paths }) => (paths['/users/{id}']!['get']!.security = [{ bearer: [] }]),
      [[true, 'GET /users/{id}: the document says bearer, the guards demand bearer or API key in header x-key']],
    ],
    [
      'a missing anonymous alternative',
      ({ paths }) => (paths['/perhaps']!['get']!.security = [{ bearer: [] }]),
      [[true, 'GET /perhaps: the document says bearer, the guards demand bearer or nothing (anonymous)']],
    ],
    [
      'an operation that no route answers',
      ({ paths }) => (paths['/gone\u001b'] = { put: {} }),
      [[false, 'PUT /gone\\u{1b}: is in the document, but no route answers it']],
    ],
    [
      'a missing operation',
      ({ paths }) => delete paths['/me'],
      [[false, 'GET /me: is not in the document, and the guards demand bearer']],
    ],
    [
      'a missing open operation, listed with what the guards admit',
      ({ paths }) => {
        delete paths['/open']
        delete paths['/me']
      },
      [
        [true, 'GET /open: is not in the document, and the guards demand nothing'],
        [false, 'GET /me: is not in the document, and the guards demand bearer'],
      ],
    ],
    [
      'a scheme that the document does not define',
      ({ paths }) => (paths['/me']!['get']!.security = [{ oauth: [] }]),
      [[true, 'GET /me: the document says the unknown scheme "oauth", the guards demand bearer']],
    ],
  ])('%s', (_name, change, differences) => {
    const document = made()
    change(document)
    expect(compared(document)).toStrictEqual(differences)
  })

  it.each<[string, string]>([
    ['{', 'is not JSON'],
    ['openapi: 3.1.0', 'is not JSON'],
    ['{"swagger":"2.0","paths":{}}', 'is not an OpenAPI 3 document'],
    ['null', 'is not an OpenAPI 3 document'],
    ['{"openapi":"3.1.0"}', 'has no paths'],
  ])('cannot be %s', (text, why) => {
    expect(documentFrom(text)).toStrictEqual(E.left(why))
  })
})

describe('SARIF 2.1.0', () => {
  const validate = new Ajv().compile(sarifSchema)
  const open = guardOf(null) as never
  const cookie = guardOf(apiKeyCookie({ paramName: 'sid', authenticate: () => true })) as never
  const api = apiApp({ csrf: false, docs: false })
  api.use((_ctx, next) => next())
  api
    .get('/:id', open, handle)
    .get('/me', guardOf(bearer) as never, handle)
    .get('/undecided', handle)
    .post('/csrf', cookie, handle)
  const findings = findingsOf(audit(api))

  it('reports an undecided operation and one that is never reached as errors, and an open one as a note', () => {
    expect(findings.map(({ rule, operation: name, severity }) => [rule, name, severity])).toStrictEqual([
      ['open-operation', 'GET /:id', 'note'],
      ['answered-first', 'GET /me', 'error'],
      ['undecided-operation', 'GET /undecided', 'error'],
      ['csrf-off', 'POST /csrf', 'warning'],
      ['unguarded-middleware', 'USE /*', 'note'],
    ])
  })

  it('has a valid log for findings, differences, documents, hostile paths, and nothing', () => {
    const hostile = new Router().get('/\u001b\u202e\\[x', open, handle)
    const differences = differencesOf([], linesOf(audit(hostile))).map((one) => ({ ...one, was: undefined }))
    const document = findingsOfDocument(
      documentDifferences({ openapi: '3.1.0', paths: {} }, [router()], audit(router())),
    )
    for (const some of [findings, findingsOfPolicy(differences as never), document, []]) {
      const log = sarifOf(some, 'auth lock%.json', '1.0.0')
      validate(log)
      expect(validate.errors).toBeNull()
      expect(JSON.stringify(log)).not.toMatch(/\\u001b|\u202e/)
    }
  })

  it('has a schema that notices an invalid log', () => {
    const log = JSON.parse(JSON.stringify(sarifOf(findings, 'a', '1'))) as {
      runs: [{ results: [Record<string, unknown>] }]
    }
    log.runs[0].results[0]['level'] = 'fatal'
    expect(validate(log)).toBe(false)
    log.runs[0].results[0]['level'] = 'error'
    expect(validate(log)).toBe(true)
    delete log.runs[0].results[0]['message']
    expect(validate(log)).toBe(false)
  })

  it('names the file as a URI, the line of a policy file, and the operation; it doubles braces in messages', () => {
    const was = {
      lineNumber: 7,
      operation: 'GET /x{/:id}',
      who: 'bearer',
      by: 'by operation',
      csrf: 'csrf not needed',
      docs: 'docs listed',
      notes: [],
    }
    const log = sarifOf(findingsOfPolicy(differencesOf([was], [])), 'my lock', '1')
    expect(log).toMatchObject({
      runs: [
        {
          results: [
            {
              ruleId: 'policy-closed',
              level: 'note',
              message: { text: 'GET /x{{/:id}}: was bearer, is gone' },
              locations: [
                {
                  physicalLocation: { artifactLocation: { uri: 'my%20lock' }, region: { startLine: 7 } },
                  logicalLocations: [{ fullyQualifiedName: 'GET /x{/:id}' }],
                },
              ],
            },
          ],
        },
      ],
    })
    expect(JSON.stringify(sarifOf(findings.slice(0, 1), '/elsewhere/auth.lock', '1'))).toContain(
      '"uri":"file:///elsewhere/auth.lock"',
    )
  })
})
