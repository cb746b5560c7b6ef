/** What a document says of security: requirements, schemes, and the responses to failures. */
import {
  allOf,
  also,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authorize,
  Challenge,
  formAuth,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  optional,
  owned,
  requireScopes,
  sessionAuth,
  type Authenticator,
  type SecurityScheme,
  sessionAuthSuperUser,
  type Description,
} from 'koa-with-auth'
import { firstPresent, fromFunction, lenient, flatMap } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { httpJwt, protectedResource } from 'koa-with-auth/jwt'
import { leaves } from '../../src/core/Description.js'
import * as Requirement from '../../src/core/Requirement.js'
import {
  securityOf,
  securitySchemesOf,
  failureComponents,
  failuresOf,
  headerParametersOf,
  requestBodyOf,
  responsesOf,
} from '../../src/openapi/security.js'
import { pathItemMethods } from '../../src/openapi/paths.js'

// A requirement in OpenAPI: requirement objects and named schemes.
describe('security', () => {
  const authenticate = () => ({ scopes: ['read'] })
  const bearer = httpBearer({ authenticate })
  const basic = httpBasicAuth({ authenticate })
  const query = apiKeyQuery({ paramName: 'api_key', authenticate })
  const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate })
  const ofScheme = (scheme: SecurityScheme, schemeName?: string) =>
    authenticator({
      scheme,
      ...(schemeName !== undefined && { schemeName }),
      challenge: Challenge.make('Own'),
      ambient: false,
      extract: fromHeader('X-Own'),
      authenticate,
    })
  const own = ofScheme({ type: 'mutualTLS' }, 'own')
  const callable = fromFunction(() => false)
  const listOf = (of: Authenticator<unknown>) => securityOf(Requirement.guardedBy(of)).requirements
  const reading = requireScopes(['read'], { granted: ({ scopes }: { scopes: string[] }) => scopes })
  const writing = requireScopes(['write'], { granted: ({ scopes }: { scopes: string[] }) => scopes })

  describe('requirement objects', () => {
    // each object on its own, with scopes after their scheme
    const written = (of: Authenticator<unknown>) =>
      listOf(of)?.map((one) => Object.entries(one).map((each) => each.flat().join(' ')).join(' + ') || '{}').join(', ') // prettier-ignore

    it.each<[what: string, of: Authenticator<unknown>, expected: string | undefined]>([
      ['one authenticator is one object', bearer, 'bearer'],
      ['a list has one for each, in order', anyOf([query, bearer, basic]), 'apiKeyQuery_api_key, bearer, basic'],
      ['firstPresent is like a list', firstPresent([bearer, query]), 'bearer, apiKeyQuery_api_key'],
      ['duplicates are listed once', anyOf([bearer, basic, httpBearer({ authenticate })]), 'bearer, basic'],
      ['all of several is one object', allOf([query, bearer]), 'apiKeyQuery_api_key + bearer'],
      ['the same in another order', anyOf([allOf([basic, bearer]), allOf([bearer, basic])]), 'basic + bearer'],
      ['all of alternatives is every combination', allOf([anyOf([bearer, basic]), own]), 'bearer + own, basic + own'],
      ['optional adds an empty object', optional(bearer), 'bearer, {}'],
      ['lenient is like optional', lenient(bearer), 'bearer, {}'],
      ['scopes are listed for every type', anyOf([reading(bearer), writing(own)]), 'bearer read, own write'],
      ['scopes of levels add up', writing(reading(bearer)), 'bearer read write'],
      ['a scheme that is demanded twice has all', allOf([reading(bearer), writing(bearer)]), 'bearer read write'],
      ['authorize adds no scope', authorize(() => true)(bearer), 'bearer'],
      ['a plain function beside others adds nothing', anyOf([callable, bearer]), 'bearer'],
      ['a plain function in a group adds nothing to its object', allOf([callable, bearer]), 'bearer'],
      ['decided: a callable alone is left out', callable, undefined],
      ['decided: callables alone are left out', allOf([callable, anyOf([callable, () => true])]), undefined],
      // a plain function is never absent, so anonymous callers are not admitted
      ['an optional plain function', optional(callable), undefined],
      ['optional behind a plain function', anyOf([callable, optional(bearer)]), 'bearer'],
      ['lenient behind a plain function', anyOf([allOf([callable, own]), lenient(bearer)]), 'own, bearer'],
      ['an optional list with a plain function', optional(anyOf([callable, bearer, basic])), 'bearer, basic'],
      ['a group that can be only plain functions', allOf([callable, optional(bearer)]), 'bearer'],
    ])('%s', (_, of, expected) => {
      expect(written(of)).toEqual(expected)
    })

    it('public and undecided operations have an empty list', () => {
      for (const requirement of [Requirement.open, Requirement.inherit]) {
        expect(securityOf(requirement)).toEqual({ description: undefined, requirements: [], schemes: [] })
      }
    })

    it('also: the levels demand their schemes together', () => {
      const { concat } = Requirement.Monoid
      const both = concat(Requirement.guardedBy(query), also(bearer))
      expect(securityOf(both).requirements).toEqual([{ apiKeyQuery_api_key: [], bearer: [] }])
      expect(securityOf(concat(Requirement.inherit, also(bearer))).requirements).toEqual([{ bearer: [] }])
    })
  })

  describe('names of schemes', () => {
    it.each([
      ['bearer', bearer, 'bearer'],
      ['bearer with a format', httpBearer({ bearerFormat: 'JWT', authenticate }), 'bearer_JWT'],
      ['a format of several words', httpBearer({ bearerFormat: 'a  b', authenticate }), 'bearer_a_b'],
      ['basic', basic, 'basic'],
      ['another HTTP scheme', ofScheme({ type: 'http', scheme: 'Digest' }), 'digest'],
      ['a query key', query, 'apiKeyQuery_api_key'],
      ['a header key', header, 'apiKeyHeader_X-API-Key'],
      ['a cookie key', apiKeyCookie({ paramName: '__Host-key', authenticate }), 'cookie___Host-key'],
      ['invalid characters', apiKeyHeader({ paramName: 'X!Key~1', authenticate }), 'apiKeyHeader_X_21Key_7e1'],
      ['mutual TLS', ofScheme({ type: 'mutualTLS' }), 'mutualTLS'],
      ['OAuth 2.0', ofScheme({ type: 'oauth2', flows: {} }), 'oauth2'],
      ['OpenID Connect', ofScheme({ type: 'openIdConnect', openIdConnectUrl: 'https://id.example' }), 'openIdConnect'],
      ['a session', sessionAuth(), 'cookie_koa.sess'],
      ['a session whose cookie has a name', sessionAuth({ cookieName: '__Host-sid' }), 'cookie___Host-sid'],
      ['a name of the author', httpBearer({ schemeName: 'staff.token', authenticate }), 'staff.token'],
    ])('%s', (_, of, name) => {
      const { requirements, schemes } = securityOf(Requirement.guardedBy(of))
      expect(requirements).toEqual([{ [name]: [] }])
      expect(schemes.map((scheme) => scheme.name)).toEqual([name])
      expect(name).toMatch(/^[A-Za-z0-9._-]+$/)
    })
  })

  describe('components.securitySchemes', () => {
    const usesOf = (...all: ReadonlyArray<Authenticator<unknown>>) =>
      all.flatMap((of, at) =>
        securityOf(Requirement.guardedBy(of)).schemes.map((scheme) => ({ ...scheme, where: `GET /${at}` })),
      )

    it('has each kind with its place, its format and its description', () => {
      const described = httpBearer({ bearerFormat: 'JWT', description: 'From POST /token', authenticate })
      const cookie = apiKeyCookie({ paramName: 'key', authenticate })
      expect(securitySchemesOf(usesOf(described, basic, query, header, cookie, sessionAuth()))).toEqual({
        bearer_JWT: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'From POST /token' },
        basic: { type: 'http', scheme: 'basic' },
        apiKeyQuery_api_key: { type: 'apiKey', in: 'query', name: 'api_key' },
        'apiKeyHeader_X-API-Key': { type: 'apiKey', in: 'header', name: 'X-API-Key' },
        cookie_key: { type: 'apiKey', in: 'cookie', name: 'key' },
        'cookie_koa.sess': {
          type: 'apiKey',
          in: 'cookie',
          name: 'koa.sess',
          description: 'The session of the user who is signed in. Browsers send its cookie by themselves.',
        },
      })
    })

    it('has one entry for two authenticators with the same scheme', () => {
      expect(Object.keys(securitySchemesOf(usesOf(bearer, httpBearer({ authenticate }))))).toEqual(['bearer'])
    })

    const named = httpBasicAuth({ schemeName: 'bearer', authenticate })
    it.each([
      ['names of the author', httpBearer({ schemeName: 'bearer', authenticate }), named],
      ['a name of the author and a derived one', bearer, named],
      ['derived names with other descriptions', bearer, httpBearer({ description: 'Another', authenticate })],
    ])('is a TypeError that names both operations if one name has two schemes: %s', (_, one, other) => {
      expect(() => securitySchemesOf(usesOf(one, other))).toThrow(
        /^openApi: the security schemes called "bearer" of GET \/0 and of GET \/1 differ; give each its own schemeName$/,
      )
    })

    it('is a TypeError if one name has two schemes in one operation', () => {
      const both = anyOf([bearer, httpBearer({ description: 'Another', authenticate })])
      const why = 'GET /0 demands two security schemes called "bearer" that differ'
      expect(() => securitySchemesOf(usesOf(both))).toThrow(why)
    })
  })
})

// The responses of a guard in the document.
describe('failures', () => {
  const authenticate = () => ({ user: 'anna' })
  const bearer = httpBearer({ authenticate })
  const key = apiKeyHeader({ authenticate })
  const cookie = apiKeyCookie({ authenticate })
  const allowed = authorize(() => true)
  const scoped = requireScopes(['read'], { granted: () => 'read' })

  describe('the statuses that a guard can answer', () => {
    const resource = { resource: 'https://api.example/mcp', authorizationServers: 'https://login.example' }
    const ofPages = httpJwt({
      issuer: { issuer: 'https://login.example', secret: 's'.repeat(32) },
      audience: 'https://api.example/mcp',
      protectedResource: protectedResource({ ...resource, origins: ['https://app.example'] }),
    })
    const proven = sessionAuthSuperUser({ proof: { methods: ['totp'] } })

    // of safe methods, and of the others
    it.each<[string, Authenticator<unknown>, string, string]>([
      ['a credential that no browser sends by itself', bearer, '401 503', '401 503'],
      ['a resource for pages of some origins', ofPages, '401 403 503', '401 403 503'],
      ['a cookie: CSRF on unsafe methods', cookie, '401 503', '401 403 503'],
      ['a session', sessionAuth(), '401 503', '401 403 503'],
      ['a session with a proof', sessionAuth({ proof: { maxAge: 300_000 } }), '401 403 503', '401 403 503'],
      ['a superuser with a proof, deep in a tree', optional(anyOf([bearer, proven])), '401 403 503', '401 403 503'],
      ['Basic, which browsers keep', httpBasicAuth({ authenticate }), '401 503', '401 403 503'],
      ['a plain function, of which nothing is known', fromFunction(() => true), '401 503', '401 403 503'],
      ['a list with a cookie', anyOf([bearer, cookie]), '401 503', '401 403 503'],
      ['an authorized principal', allowed(bearer), '401 403 503', '401 403 503'],
      ['scopes', scoped(bearer), '401 403 503', '401 403 503'],
      ['scopes deep in a tree', optional(allOf([key, flatMap(() => 1)(scoped(bearer))])), '401 403 503', '401 403 503'],
      ['optional: bad credentials are refused', optional(bearer), '401 503', '401 503'],
      ['lenient: no caller is refused', lenient(bearer), '503', '503'],
      ['a lenient cookie: a forged write is refused', lenient(cookie), '503', '403 503'],
      ['a list whose last member is lenient', anyOf([bearer, lenient(key)]), '401 503', '401 503'],
      ['the first present, whose last is lenient', firstPresent([bearer, lenient(key)]), '401 503', '401 503'],
      ['all of several, one of them lenient', allOf([bearer, lenient(key)]), '401 503', '401 503'],
      ['all of several, all of them lenient', allOf([lenient(bearer), lenient(key)]), '503', '503'],
    ])('%s', (_, { description }, safe, unsafe) => {
      for (const method of pathItemMethods) {
        const expected = method === 'get' || method === 'head' || method === 'options' ? safe : unsafe
        expect([method, failuresOf(description, method).join(' ')]).toEqual([method, expected])
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

  const header = { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } }
  const unauthorized = { $ref: '#/components/responses/Unauthorized' }
  const forbidden = { $ref: '#/components/responses/Forbidden' }
  const unavailable = { $ref: '#/components/responses/ServiceUnavailable' }

  describe('the responses of an operation', () => {
    const [no, bare, reference] = [{ description: 'No' }, { headers: {} }, { $ref: '#/components/responses/No' }]
    it('are 200 and those of its guard, if it describes none', () => {
      const ok = { 200: { description: 'OK' } }
      const failures = { 401: unauthorized, 403: forbidden, 503: unavailable }
      expect(responsesOf(undefined, [401, 403, 503])).toEqual({ ...ok, ...failures })
      expect(responsesOf({}, [])).toEqual(ok)
    })

    it('keep those that it describes, without another 200', () => {
      const own = { 201: { description: 'Made' }, 403: { description: 'Not yours' }, default: { description: 'Else' } }
      expect(responsesOf({ 401: no }, [])).toEqual({ 401: no })
      expect(responsesOf(own, [401, 403, 503])).toEqual({ ...own, 401: unauthorized, 503: unavailable })
      expect(responsesOf(own, [])).toEqual(own)
    })

    it.each([
      ['a described 401 gets the header of the challenge', no, { ...no, headers: header }],
      ['a described 401 with headers stays', { ...no, ...bare }, { ...no, ...bare }],
      ['a reference stays', reference, reference],
    ])('%s', (_, own, expected) => {
      expect(responsesOf({ 401: own }, [401])).toEqual({ 401: expected })
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
      const retry = { 'Retry-After': { $ref: '#/components/headers/Retry-After' } }
      expect(responses).toMatchObject({
        Unauthorized: { headers: header, content: problem(401, 'Unauthorized') },
        Forbidden: { content: problem(403, 'Forbidden') },
        TooManyRequests: { headers: retry, content: problem(429, 'Too Many Requests') },
        ServiceUnavailable: { headers: retry, content: problem(503, 'Service Unavailable') },
      })
      expect(responses?.['Forbidden']).not.toHaveProperty('headers')
    })
  })
})

describe('what an operation takes besides', () => {
  const form = formAuth({ fields: ['email', 'Passwd', 'passPhrase'], authenticate: () => 'anna' })
  const note = owned('note', { param: 'id', find: () => 'milk' })
  const token = httpBearer({ authenticate: () => 'anna' })
  const [leaf] = leaves(token.description)
  const signed: Description = { ...leaf!, headers: ['Signature', 'Digest'] }

  it('a form is the body of the methods that have one, and a password is shown as one in any letter case', () => {
    const taken = pathItemMethods.filter((method) => requestBodyOf(form.description, method) !== undefined)
    expect(taken).toEqual(['put', 'post', 'patch'])
    const secret = { type: 'string', minLength: 1, maxLength: expect.any(Number) as number, format: 'password' }
    const { format: _, ...plain } = secret
    expect(requestBodyOf(form.description, 'post')?.content['application/json']?.schema).toMatchObject({
      properties: { email: plain, Passwd: secret, passPhrase: secret },
    })
    expect(requestBodyOf(form.description, 'post')?.required).toBe(true)
  })

  const fields = '`email` and `Passwd` and `passPhrase`'
  const code = formAuth({ fields: ['code'], authenticate: () => 'anna' })
  it.each<[string, Authenticator<unknown>, string]>([
    ['alone', form, `**Guarded** by the fields ${fields} of the request body.`],
    ['or a form', anyOf([form, code]), `The fields ${fields}, or \`code\` of the request body are a credential, too.`],
    ['or a token', anyOf([form, token]), `The fields ${fields} of the request body are a credential, too.`],
  ])('a form is described: %s', (_what, auth, remark) => {
    expect(securityOf(Requirement.guardedBy(auth)).remark).toBe(remark)
  })

  it('a header is required if every alternative reads it', () => {
    const required = (...members: ReadonlyArray<Description>) =>
      headerParametersOf({ _tag: 'AnyOf', members }).map(({ name, required }) => [name, required])
    const other: Description = { ...signed, headers: ['Digest'] }
    expect(required(signed, other)).toEqual([
      ['Signature', false],
      ['Digest', true],
    ])
    expect(headerParametersOf(undefined)).toEqual([])
  })

  it('an object that is not there or not for the caller is a 404, and a 403 if the rule says so', () => {
    expect(failuresOf(note(token).description, 'get')).toEqual([401, 404, 503])
    const forbidding = owned('note', { param: 'id', find: () => 'milk', refuse: 403 })
    expect(failuresOf(forbidding(token).description, 'get')).toEqual([401, 403, 404, 503])
  })

  it('a proof is described with its age', () => {
    const kind = sessionAuth({ proof: { methods: ['totp'], maxAge: 120_000 } })
    const { remark } = securityOf(Requirement.guardedBy(kind))
    expect(remark).toContain('a proof by `totp`, at most 2 min ago')
  })
})
