/** A requirement in OpenAPI: requirement objects and named schemes. */
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
  firstPresent,
  fromFunction,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  lenient,
  optional,
  requireScopes,
  sessionAuth,
  type Authenticator,
  type SecurityScheme,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { securityOf, securitySchemesOf } from '../../src/openapi/security.js'
import { mockRequest } from 'koa-with-auth/testing'

const authenticate = () => ({ scopes: ['read'] })
const bearer = httpBearer({ authenticate })
const basic = httpBasicAuth({ authenticate })
const query = apiKeyQuery({ paramName: 'api_key', authenticate })
const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate })
const own = (scheme: SecurityScheme, schemeName?: string) =>
  authenticator({
    scheme,
    ...(schemeName !== undefined && { schemeName }),
    challenge: Challenge.make('Own'),
    ambient: false,
    extract: fromHeader('X-Own'),
    authenticate,
  })
const callable = fromFunction(() => false)
const listOf = (of: Authenticator<unknown>) => securityOf(Requirement.guardedBy(of)).requirements
const reading = requireScopes(['read'], { granted: ({ scopes }: { scopes: string[] }) => scopes })
const writing = requireScopes(['write'], { granted: ({ scopes }: { scopes: string[] }) => scopes })

describe('requirement objects', () => {
  it.each([
    ['one authenticator is one object', bearer, [{ bearer: [] }]],
    [
      'a list has one for each alternative, in order',
      anyOf([query, bearer, basic]),
      [{ apiKeyQuery_api_key: [] }, { bearer: [] }, { basic: [] }],
    ],
    ['firstPresent is like a list', firstPresent([bearer, query]), [{ bearer: [] }, { apiKeyQuery_api_key: [] }]],
    [
      'duplicates are listed once',
      anyOf([bearer, query, httpBearer({ authenticate })]),
      [{ bearer: [] }, { apiKeyQuery_api_key: [] }],
    ],
    [
      'all of several is one object with several names',
      allOf([query, bearer]),
      [{ apiKeyQuery_api_key: [], bearer: [] }],
    ],
    [
      'all of the same in another order is not listed again',
      anyOf([allOf([query, bearer]), allOf([bearer, query])]),
      [{ apiKeyQuery_api_key: [], bearer: [] }],
    ],
    [
      'all of alternatives has every combination',
      allOf([anyOf([bearer, basic]), header]),
      [
        { bearer: [], 'apiKeyHeader_X-API-Key': [] },
        { basic: [], 'apiKeyHeader_X-API-Key': [] },
      ],
    ],
    ['optional adds an empty object', optional(bearer), [{ bearer: [] }, {}]],
    ['lenient is like optional', lenient(bearer), [{ bearer: [] }, {}]],
    [
      'scopes are listed for every type of scheme',
      anyOf([reading(bearer), writing(query)]),
      [{ bearer: ['read'] }, { apiKeyQuery_api_key: ['write'] }],
    ],
    ['scopes of levels add up', writing(reading(bearer)), [{ bearer: ['read', 'write'] }]],
    [
      'a scheme that is demanded twice has all scopes',
      allOf([reading(bearer), writing(bearer)]),
      [{ bearer: ['read', 'write'] }],
    ],
    ['authorize adds no scope', authorize(() => true)(bearer), [{ bearer: [] }]],
    ['a plain function beside others adds nothing', anyOf([callable, bearer]), [{ bearer: [] }]],
    ['a plain function in a group adds nothing to its object', allOf([callable, bearer]), [{ bearer: [] }]],
    ['decided: a callable alone is left out, never {} and never []', callable, undefined],
    [
      'decided: callables alone are left out, never {} and never []',
      allOf([callable, anyOf([callable, () => true])]),
      undefined,
    ],
    [
      'an optional plain function is never absent, so anonymous callers are not admitted',
      optional(callable),
      undefined,
    ],
    [
      'optional behind a plain function lets in no anonymous callers, because the function is never absent',
      anyOf([callable, optional(bearer)]),
      [{ bearer: [] }],
    ],
    [
      'nor does lenient',
      anyOf([allOf([callable, query]), lenient(bearer)]),
      [{ apiKeyQuery_api_key: [] }, { bearer: [] }],
    ],
    [
      'optional alternatives with a plain function are never absent either',
      optional(anyOf([callable, bearer, query])),
      [{ bearer: [] }, { apiKeyQuery_api_key: [] }],
    ],
    ['a group that can be only plain functions is never {}', allOf([callable, optional(bearer)]), [{ bearer: [] }]],
  ])('%s', (_, of, expected) => {
    expect(listOf(of)).toEqual(expected)
  })

  it('public and undecided operations have an empty list', () => {
    for (const requirement of [Requirement.open, Requirement.inherit]) {
      expect(securityOf(requirement)).toEqual({ description: undefined, requirements: [], schemes: [] })
    }
  })

  it('also: the levels demand their schemes together', () => {
    const { concat } = Requirement.Monoid
    expect(securityOf(concat(Requirement.guardedBy(query), also(bearer))).requirements).toEqual([
      { apiKeyQuery_api_key: [], bearer: [] },
    ])
    expect(securityOf(concat(Requirement.inherit, also(bearer))).requirements).toEqual([{ bearer: [] }])
  })
})

describe('names of schemes', () => {
  it.each([
    ['bearer', bearer, 'bearer'],
    ['bearer with a format', httpBearer({ bearerFormat: 'JWT', authenticate }), 'bearer_JWT'],
    [
      'bearer with a format of several words',
      httpBearer({ bearerFormat: 'opaque  token', authenticate }),
      'bearer_opaque_token',
    ],
    ['basic', basic, 'basic'],
    ['another HTTP scheme', own({ type: 'http', scheme: 'Digest' }), 'digest'],
    ['a query key', query, 'apiKeyQuery_api_key'],
    ['a header key', header, 'apiKeyHeader_X-API-Key'],
    ['a cookie key', apiKeyCookie({ paramName: '__Host-key', authenticate }), 'cookie___Host-key'],
    [
      'a name with invalid characters for a component',
      apiKeyHeader({ paramName: 'X!Key~1', authenticate }),
      'apiKeyHeader_X_21Key_7e1',
    ],
    ['mutual TLS', own({ type: 'mutualTLS' }), 'mutualTLS'],
    ['OAuth 2.0', own({ type: 'oauth2', flows: {} }), 'oauth2'],
    ['OpenID Connect', own({ type: 'openIdConnect', openIdConnectUrl: 'https://id.example' }), 'openIdConnect'],
    ['a session', sessionAuth(), 'cookie_koa.sess'],
    ['a session whose cookie has a name', sessionAuth({ cookieName: '__Host-sid' }), 'cookie___Host-sid'],
    ['a name of the author', httpBearer({ schemeName: 'staff.token', authenticate }), 'staff.token'],
  ])('%s', (_, of, name) => {
    const { requirements, schemes } = securityOf(Requirement.guardedBy(of))
    expect(requirements).toEqual([{ [name]: [] }])
    expect(schemes.map((scheme) => scheme.name)).toEqual([name])
    expect(name).toMatch(/^[A-Za-z0-9._-]+$/)
  })

  it('the cookie name of a session comes from the request', () => {
    const request = mockRequest()
    request.ctx['sessionOptions'] = { key: '__Host-sid' }
    const { requirements, schemes } = securityOf(Requirement.guardedBy(sessionAuth()), request)
    expect(requirements).toEqual([{ 'cookie___Host-sid': [] }])
    expect(schemes.map(({ scheme }) => scheme)).toMatchObject([{ type: 'apiKey', in: 'cookie', name: '__Host-sid' }])
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

  it.each([
    [
      'names of the author',
      httpBearer({ schemeName: 'x', authenticate }),
      httpBasicAuth({ schemeName: 'x', authenticate }),
    ],
    ['a name of the author and a derived one', bearer, httpBasicAuth({ schemeName: 'bearer', authenticate })],
    [
      'derived names of schemes with different descriptions',
      bearer,
      httpBearer({ description: 'Another', authenticate }),
    ],
  ])('is a TypeError that names both operations if one name has two schemes: %s', (_, one, other) => {
    expect(() => securitySchemesOf(usesOf(one, other))).toThrow(
      /^openApi: the security schemes called "(x|bearer)" of GET \/0 and of GET \/1 differ; give each its own schemeName$/,
    )
  })

  it('is a TypeError if one name has two schemes in one operation', () => {
    const both = anyOf([bearer, httpBearer({ description: 'Another', authenticate })])
    expect(() => securitySchemesOf(usesOf(both))).toThrow(
      'GET /0 demands two security schemes called "bearer" that differ',
    )
  })
})
