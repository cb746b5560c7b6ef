/** The responses of a guard in the document. */
import {
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  authorize,
  firstPresent,
  fromFunction,
  httpBasicAuth,
  httpBearer,
  lenient,
  flatMap,
  optional,
  requireScopes,
  sessionAuth,
  sessionAuthSuperUser,
  type Authenticator,
  type Description,
} from 'koa-with-auth'
import { httpJwt, protectedResource } from 'koa-with-auth/jwt'
import { describe, expect, it } from 'vitest'
import { failureComponents, failuresOf, responsesOf } from '../../src/openapi/security.js'
import { listed } from '../../src/openapi/paths.js'

const authenticate = () => ({ user: 'anna' })
const bearer = httpBearer({ authenticate })
const key = apiKeyHeader({ authenticate })
const cookie = apiKeyCookie({ authenticate })
const allowed = authorize(() => true)
const scoped = requireScopes(['read'], { granted: () => 'read' })

describe('the statuses that a guard can answer', () => {
  it.each<[string, Authenticator<unknown>, number[], number[]]>([
    ['a credential that no browser sends by itself', bearer, [401, 503], [401, 503]],
    [
      'a resource for pages of some origins',
      httpJwt({
        issuer: { issuer: 'https://login.example', secret: 's'.repeat(32) },
        audience: 'https://api.example/mcp',
        protectedResource: protectedResource({
          resource: 'https://api.example/mcp',
          authorizationServers: 'https://login.example',
          origins: ['https://app.example'],
        }),
      }),
      [401, 403, 503],
      [401, 403, 503],
    ],
    ['a cookie: CSRF on unsafe methods', cookie, [401, 503], [401, 403, 503]],
    ['a session', sessionAuth(), [401, 503], [401, 403, 503]],
    [
      'a session with a proof, which may be missing',
      sessionAuth({ proof: { maxAge: 300_000 } }),
      [401, 403, 503],
      [401, 403, 503],
    ],
    [
      'a superuser with a proof, deep in a tree',
      optional(anyOf([bearer, sessionAuthSuperUser({ proof: { methods: ['totp'] } })])),
      [401, 403, 503],
      [401, 403, 503],
    ],
    ['Basic, which browsers remember', httpBasicAuth({ authenticate }), [401, 503], [401, 403, 503]],
    ['a plain function, of which nothing is known', fromFunction(() => true), [401, 503], [401, 403, 503]],
    ['a list with a cookie', anyOf([bearer, cookie]), [401, 503], [401, 403, 503]],
    ['an authorized principal', allowed(bearer), [401, 403, 503], [401, 403, 503]],
    ['scopes', scoped(bearer), [401, 403, 503], [401, 403, 503]],
    [
      'scopes deep in a tree',
      optional(allOf([key, flatMap(() => 1)(scoped(bearer))])),
      [401, 403, 503],
      [401, 403, 503],
    ],
    ['optional: bad credentials are refused', optional(bearer), [401, 503], [401, 503]],
    ['lenient: no caller is refused', lenient(bearer), [503], [503]],
    ['a lenient cookie: a forged write is refused', lenient(cookie), [503], [403, 503]],
    ['a list whose last member is lenient', anyOf([bearer, lenient(key)]), [401, 503], [401, 503]],
    ['the first present, whose last member is lenient', firstPresent([bearer, lenient(key)]), [401, 503], [401, 503]],
    ['all of several, one of them lenient', allOf([bearer, lenient(key)]), [401, 503], [401, 503]],
    ['all of several, all of them lenient', allOf([lenient(bearer), lenient(key)]), [503], [503]],
  ])('%s', (_, { description }, safe, unsafe) => {
    for (const method of listed) {
      const expected = method === 'get' || method === 'head' || method === 'options' ? safe : unsafe
      expect({ method, failures: failuresOf(description, method) }).toEqual({ method, failures: expected })
    }
  })

  it('429 if guesses at one of the credentials are counted (throttled), and only then', () => {
    const { description } = key
    if (description._tag !== 'Leaf') expect.fail('a kind is a leaf')
    const guarded: Description = { _tag: 'AnyOf', members: [bearer.description, { ...description, throttled: true }] }
    expect(failuresOf(guarded, 'get')).toEqual([401, 429, 503])
    expect(failuresOf({ _tag: 'Optional', member: guarded, lenient: true }, 'get')).toEqual([429, 503])
    expect(failuresOf({ _tag: 'Scoped', member: guarded, scopes: [] }, 'post')).toEqual([401, 403, 429, 503])
  })

  it('none if anyone may call', () => {
    expect(failuresOf(undefined, 'post')).toEqual([])
  })
})

const unauthorized = { $ref: '#/components/responses/Unauthorized' }
const forbidden = { $ref: '#/components/responses/Forbidden' }
const unavailable = { $ref: '#/components/responses/ServiceUnavailable' }

describe('the responses of an operation', () => {
  it('are 200 and those of its guard, if it describes none', () => {
    expect(responsesOf(undefined, [401, 403, 503])).toEqual({
      200: { description: 'OK' },
      401: unauthorized,
      403: forbidden,
      503: unavailable,
    })
    expect(responsesOf({}, [])).toEqual({ 200: { description: 'OK' } })
  })

  it('keep those that it describes, without another 200', () => {
    const own = { 201: { description: 'Made' }, 403: { description: 'Not yours' }, default: { description: 'Else' } }
    expect(responsesOf(own, [401, 403, 503])).toEqual({ ...own, 401: unauthorized, 503: unavailable })
    expect(responsesOf(own, [])).toEqual(own)
  })

  const header = { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } }
  it.each([
    ['a described 401 gets the header of the challenge', { description: 'No' }, { description: 'No', headers: header }],
    ['a described 401 with headers stays', { description: 'No', headers: {} }, { description: 'No', headers: {} }],
    ['a reference stays', { $ref: '#/components/responses/No' }, { $ref: '#/components/responses/No' }],
  ])('%s', (_, own, expected) => {
    expect(responsesOf({ 401: own }, [401])).toEqual({ 401: expected })
  })

  it('keep a described 401 of a public operation as it is', () => {
    expect(responsesOf({ 401: { description: 'No' } }, [])).toEqual({ 401: { description: 'No' } })
  })
})

describe('components', () => {
  it('are those that are referred to, and no others', () => {
    expect(failureComponents([responsesOf(undefined, [])])).toEqual({})
    expect(failureComponents([responsesOf({ 401: { description: 'No' } }, [401])])).toEqual({
      headers: { 'WWW-Authenticate': expect.anything() },
    })
    const all = failureComponents([responsesOf(undefined, [401]), responsesOf(undefined, [403, 429, 503])])
    const names = ['Unauthorized', 'Forbidden', 'TooManyRequests', 'ServiceUnavailable']
    expect(Object.keys(all.responses ?? {})).toEqual(names)
    expect(Object.keys(all.headers ?? {})).toEqual(['WWW-Authenticate', 'Retry-After'])
    expect(Object.keys(all.schemas ?? {})).toEqual(['Problem'])
    expect(Object.keys(failureComponents([responsesOf(undefined, [503])]).headers ?? {})).toEqual(['Retry-After'])
  })

  it('describe the challenge of 401, the Retry-After of 429 and 503, and problem details (RFC 9457)', () => {
    const { responses } = failureComponents([responsesOf(undefined, [401, 403, 429, 503])])
    const problem = (status: number, title: string) => ({
      'application/problem+json': {
        schema: { $ref: '#/components/schemas/Problem' },
        example: { type: 'about:blank', title, status, detail: title },
      },
    })
    expect(responses).toMatchObject({
      Unauthorized: { headers: header, content: problem(401, 'Unauthorized') },
      Forbidden: { content: problem(403, 'Forbidden') },
      TooManyRequests: {
        headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
        content: problem(429, 'Too Many Requests'),
      },
      ServiceUnavailable: {
        headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
        content: problem(503, 'Service Unavailable'),
      },
    })
    expect(responses?.['Forbidden']).not.toHaveProperty('headers')
  })

  const header = { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } }
})
