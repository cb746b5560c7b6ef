/** A document is built once, and again if it would differ. */
import Router from '@koa/router'
import type { Request } from 'koa'
import { apiKeyHeader, httpBearer, operation, sessionAuth, withAuth } from 'koa-with-auth'
import { cachedOpenApi, openApi } from 'koa-with-auth/openapi'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const about = { title: 'Pets', version: '1.0.0' }
const authenticate = () => ({ user: 'anna' })
const [bearer, key] = [httpBearer({ authenticate }), apiKeyHeader({ authenticate })]
const none = () => {}
const withCookie = (name: string): Request => {
  const request = mockRequest()
  request.ctx['sessionOptions'] = { key: name }
  return request
}

describe('cachedOpenApi', () => {
  it('returns what openApi makes, and its JSON', () => {
    const router = new Router().get('/x', withAuth(bearer), none)
    const { document, json } = cachedOpenApi(router, about)()
    expect(document).toEqual(openApi(router, about))
    expect(json).toBe(JSON.stringify(document))
  })

  it('builds it once, whatever the request is', () => {
    const router = new Router().get('/x', withAuth([sessionAuth(), bearer]), none)
    const described = cachedOpenApi(router, about)
    expect(described(mockRequest({ url: '/a' }))).toBe(described(mockRequest({ url: '/b', fields: [['Host', 'x']] })))
  })

  const other = new Router().get('/z', withAuth(key), none)
  it.each<[string, (router: Router) => unknown]>([
    ['a route was added', (r) => r.get('/y', none)],
    ['a router was mounted', (r) => r.use(new Router().get('/y', none).routes())],
    ['a route was removed', (r) => r.stack.splice(0, 1)],
    ['a route was replaced', (r) => r.stack.splice(0, 1, other.stack[0]!)],
    ['the router got a prefix', (r) => r.prefix('/v2')],
    ['a guard was replaced', (r) => (r.stack[0]!.stack = other.stack[0]!.stack)],
  ])('builds it again if %s', (_, change) => {
    const router = new Router().get('/x', withAuth(bearer), none)
    const described = cachedOpenApi(router, about)
    const before = described()
    change(router)
    const after = described()
    expect(after.json).not.toBe(before.json)
    expect(after.document).toEqual(openApi(router, about))
    expect(described()).toBe(after)
  })

  it('does not keep a document for every name', () => {
    const described = cachedOpenApi(new Router().get('/x', withAuth(sessionAuth()), none), about)
    const first = described(withCookie('first'))
    for (let at = 0; at < 8; at++) described(withCookie(`n${at}`))
    expect(described(withCookie('first'))).not.toBe(first)
    expect(described(withCookie('first'))).toEqual(first)
  })

  it('refuses wrong options when it is called', () => {
    const wrong = { title: 'x' } as never
    expect(() => cachedOpenApi(new Router(), wrong)).toThrow('cachedOpenApi({ version }) must be a string')
  })
})

describe('an API with 5,000 operations', () => {
  const router = withAuth(bearer)(new Router({ prefix: '/api' }))
  for (let at = 0; at < 1250; at++) {
    const path = `/resource-${at}/:id{/part/:part}`
    const read = operation({ summary: `Read ${at}`, operationId: `read-${at}`, tags: ['pets'] })
    router.get(path, read, withAuth([bearer, key]), none)
    router.post(path, operation({ requestBody: { content: { 'application/json': {} } } }), none)
  }

  it('is built, and once', () => {
    const described = cachedOpenApi(router, about)
    const { document, json } = described()
    expect(Object.values(document.paths).flatMap((item) => Object.keys(item ?? {}))).toHaveLength(5000)
    // Small enough to be sent, because common responses are written once
    expect(json.length / 5000).toBeLessThan(700)
    expect(described()).toBe(described())
  })
})
