/** A document of OpenAPI that is compared with the code. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { pipe } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { operation, optional, requireScopes, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { documentDifferences } from '../../src/command/document.js'
import { bearer, handle, key, open } from '../support/models/audits.js'
import { guardOf, addUnchecked } from '../support/models/levels.js'

const router = () => withAuth(bearer)(new Router()).get('/me', handle)

const differencesFrom = (document: object, own: Router) => {
  const text = `\uFEFF${JSON.stringify({ openapi: '3.1.0', ...document })}`
  const differences = documentDifferences(text, [own], audit(own))
  return E.isRight(differences) ? differences.right : expect.unreachable(differences.left)
}

describe('a document of OpenAPI', () => {
  const scoped = pipe(bearer, requireScopes(['read'], { granted: () => [] }))
  const described = () =>
    router()
      .get('/users/:id', guardOf([bearer, key]) as never, handle)
      .get('/scoped', guardOf(scoped) as never, handle)
      .get('/perhaps', guardOf(optional(bearer)) as never, handle)
      .get('/open', open, handle)
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
    return differencesFrom(document, own).map(({ direction, text }) => `${direction}: ${text}`)
  }

  it('that the router made agrees, also with other names of schemes and parameters, and below a server URL', () => {
    expect(compared(made())).toEqual([])
    const renamed = JSON.stringify(made()).replaceAll('"bearer":', '"token":').replaceAll('{id}', '{user}')
    expect(compared(JSON.parse(renamed) as Document)).toEqual([])
    const referring = made()
    const { bearer: real = {} } = referring.components.securitySchemes
    const $ref = '#/components/securitySchemes/real'
    Object.assign(referring.components.securitySchemes, { real, bearer: { $ref } })
    expect(compared(referring)).toEqual([])
    const below = made()
    const own = new Router({ prefix: '/v1' }).get('/open', open, handle)
    const paths = { '/open': below.paths['/open'] }
    expect(differencesFrom({ ...below, servers: [{ url: 'https://api.example/v1/' }], paths }, own)).toEqual([])
  })

  it('differs if it demands what a guard after the handler demands: anyone may call the operation', () => {
    const own = addUnchecked(new Router(), '/me', handle, guardOf(bearer))
    const document = { ...made(), paths: { '/me': made().paths['/me'] } }
    expect(differencesFrom(document, own).map(({ direction, text }) => [direction, text])).toEqual([
      ['opened', 'GET /me: the document says bearer, the guards demand nothing'],
    ])
  })

  it('D-R8 differs if it demands a guard, but an open operation answers first', () => {
    const guard = guardOf(bearer) as never
    const differences = (own: Router) =>
      differencesFrom(openApi(own, { title: 't', version: '1' }), own).map((one) => [one.direction, one.text])
    expect(differences(new Router().get('/users/:id', open, handle).get('/users/me', guard, handle))).toEqual([
      ['opened', 'GET /users/me: the document says bearer, but GET /users/:id, which is public, answers its requests'],
    ])
    expect(differences(new Router().get('/:who/me', open, handle).get('/users/:id', guard, handle))).toEqual([
      ['opened', 'GET /users/:id: the document says bearer, but GET /:who/me, which is public, answers some requests'],
    ])
    // A narrower open operation answers its own requests only. Of two operations for one path the first is in the
    // document.
    expect(differences(new Router().get('/users/me', open, handle).get('/users/:id', guard, handle))).toEqual([])
    expect(differences(new Router().get('/x', open, handle).get('/x', guard, handle))).toEqual([])
    const unknown = differences(new Router().get(/^\/\d{4}$/, open, handle).get('/:id', guard, handle))
    expect(unknown).toEqual([['opened', 'GET /^\\/\\d{4}$/: is not in the document, and anyone may call it']])
  })

  it('is compared with the first router, if two have an operation', () => {
    const [first, second] = [router(), new Router().get('/me', open, handle)]
    const text = JSON.stringify(openApi(first, { title: 't', version: '1' }))
    const audited = audit(new Koa().use(first.routes()).use(second.routes()))
    expect(documentDifferences(text, [first, second], audited)).toStrictEqual(E.right([]))
  })

  it('may list hidden operations, and may have its demands at the root', () => {
    const document = { ...made(), security: [{ bearer: [] }] }
    document.paths['/hidden'] = { get: {} }
    delete document.paths['/me']?.['get']?.security
    expect(compared(document)).toEqual([])
  })

  const hidden = operation({ undocumented: true })
  const perhaps = guardOf(optional(bearer)) as never
  const absent = 'is not in the document, and anyone may call it'
  it.each<
    [name: string, add: (router: ReturnType<typeof described>) => unknown, text: string | undefined, own?: object]
  >([
    ['undocumented and public', (own) => own.get('/x', hidden, open, handle), `GET /x: ${absent}`],
    ['undocumented, and optional', (own) => own.get('/x', hidden, perhaps, handle), `GET /x: ${absent}`],
    ['a RegExp', (own) => own.get(/^\/x/, open, handle), `GET /^\\/x/: ${absent}`],
    ['a method of its own', (own) => own.register('/x', ['PROPFIND'], [open, handle]), `PROPFIND /x: ${absent}`],
    [
      'undocumented, although the document demands a credential',
      (own) => own.get('/x', hidden, open, handle),
      'GET /x: the document says bearer, and anyone may call it',
      { security: [{ bearer: [] }] },
    ],
    ['undocumented, and the document calls it public', (own) => own.get('/x', hidden, open, handle), undefined, {}],
  ])('does not hide an open operation: %s', (_name, add, text, written) => {
    const document = made()
    if (written !== undefined) Object.assign(document.paths, { '/x': { get: written } })
    const own = described()
    add(own)
    const expected = text === undefined ? [] : [{ direction: 'opened', operation: text.split(': ')[0], text }]
    expect(differencesFrom(document, own)).toStrictEqual(expected)
  })

  // What the document demands of some operations instead; `undefined`: it has no such operation
  const public_: object[] = []
  const one = [{ bearer: [] }]
  const says = (demanded: string, said = 'bearer') => `the document says ${said}, the guards demand ${demanded}`
  it.each<[name: string, changed: Record<string, object[] | undefined>, ...differences: string[]]>([
    [
      'a stricter document: listed first',
      { '/open': one, '/me': public_ },
      `opened: GET /open: ${says('nothing')}`,
      `closed: GET /me: ${says('bearer', 'nothing')}`,
    ],
    [
      'other scopes',
      { '/scoped': [{ bearer: ['read', 'write'] }] },
      'opened: GET /scoped: the document says bearer with scopes read write, the guards demand bearer with scopes read',
    ],
    ['one way less', { '/users/{id}': one }, `opened: GET /users/{id}: ${says('bearer, or API key in header x-key')}`],
    ['no anonymous callers', { '/perhaps': one }, `opened: GET /perhaps: ${says('bearer, or anonymous')}`],
    ['no route', { '/gone\u001b': public_ }, 'closed: GET /gone\\u{1b}: is in the document, but no route answers it'],
    [
      'missing operations, listed with what the guards admit',
      { '/open': undefined, '/me': undefined },
      'opened: GET /open: is not in the document, and the guards demand nothing',
      'changed: GET /me: is not in the document, and the guards demand bearer',
    ],
    ['no such scheme', { '/me': [{ oauth: [] }] }, `changed: GET /me: ${says('bearer', 'the unknown scheme "oauth"')}`],
  ])('%s', (_name, changed, ...differences) => {
    const document = made()
    for (const [path, security] of Object.entries(changed)) {
      if (security === undefined) delete document.paths[path]
      else document.paths[path] = { ...document.paths[path], get: { security } }
    }
    expect(compared(document)).toStrictEqual(differences)
  })

  it.each<[string, string]>([
    ['{', 'is not JSON'],
    ['openapi: 3.1.0', 'is not JSON'],
    ['{"swagger":"2.0","paths":{}}', 'is not an OpenAPI 3 document'],
    ['null', 'is not an OpenAPI 3 document'],
    ['{"openapi":"3.1.0"}', 'has no paths'],
  ])('cannot be %s', (text, why) => {
    expect(documentDifferences(text, [router()], audit(router()))).toStrictEqual(E.left(why))
  })
})
