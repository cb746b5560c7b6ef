/** What is known of an authenticator without running it: its tree, the fields that it reads, and what OpenAPI lists. */
import fc from 'fast-check'
import {
  Challenge,
  type Description,
  type Leaf,
  type SecurityScheme,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import {
  anyOfDescriptions,
  challengesOf,
  withChallenges,
  fieldsReadBy,
  isAmbient,
  isThrottled,
  leaves,
  noted,
  readsQuery,
} from '../../src/core/Description.js'
import { alternativesOf } from '../../src/core/Alternative.js'
import { insufficientAuthentication } from '../../src/core/AuthError.js'
import { description } from '../support/models/arbitraries.js'
import { row } from '../support/models/row.js'

// Descriptions: trees are flattened, and the readers of a tree see every leaf.

const leaf = (scheme: SecurityScheme | undefined, ambient = false): Leaf => ({
  _tag: 'Leaf',
  scheme,
  challenge: Challenge.make('Test'),
  ambient,
})
const key = (place: 'query' | 'header' | 'cookie', name = 'key') => leaf({ type: 'apiKey', in: place, name })
const bearer = leaf({ type: 'http', scheme: 'bearer' })
const basic = leaf({ type: 'http', scheme: 'basic' }, true)
const custom = leaf(undefined, true)
const allOf = (...members: Description[]): Description => ({ _tag: 'AllOf', members })
const scoped = (member: Description, ...scopes: string[]): Description => ({ _tag: 'Scoped', member, scopes })

describe('fieldsOf', () => {
  const table: ReadonlyArray<{ description: string; input: ReadonlyArray<Description>; expected: string[] }> = [
    row('bearer', [bearer], ['Authorization']),
    row('bearer and Basic read the same field', [bearer, basic], ['Authorization']),
    row('OAuth 2.0', [leaf({ type: 'oauth2', flows: {} })], ['Authorization']),
    row('OpenID Connect', [leaf({ type: 'openIdConnect', openIdConnectUrl: 'https://a.example' })], ['Authorization']),
    row('a header key', [key('header', 'X-API-Key')], ['X-API-Key']),
    row('a cookie key', [key('cookie')], ['Cookie']),
    row('a query key is part of the URL', [key('query')], []),
    row('each field once', [key('cookie'), key('cookie', 'b'), bearer], ['Cookie', 'Authorization']),
    row('a plain function may read anything', [bearer, custom], ['*']),
    row('a client certificate is not a field', [leaf({ type: 'mutualTLS' }), bearer], ['*']),
  ]
  it.each(table)('$description', ({ input, expected }) => {
    expect(fieldsReadBy(anyOfDescriptions(input))).toStrictEqual(expected)
  })

  it('RFC 9110 §5.1 names that differ in letter case are one field', () => {
    const fields = fieldsReadBy(
      anyOfDescriptions([key('header', 'X-Key'), key('header', 'x-key'), key('header', 'authorization'), bearer]),
    )
    expect(fields.map((field) => field.toLowerCase())).toStrictEqual(['x-key', 'authorization'])
  })

  it('names every field once, or only *', () => {
    fc.assert(
      fc.property(description, (tree) => {
        const fields = fieldsReadBy(tree).map((field) => field.toLowerCase())
        expect(new Set(fields).size).toBe(fields.length)
        if (fields.includes('*')) expect(fields).toStrictEqual(['*'])
      }),
    )
  })
})

describe('explained', () => {
  it('keeps the challenge of a failure', () => {
    const challenge = Challenge.make('Own')
    expect(withChallenges(bearer, { _tag: 'invalid', challenge })).toStrictEqual({ _tag: 'invalid', challenge })
  })

  it('copies a challenge that is only frozen outside, so that a hook cannot change it later', () => {
    const challenge = Object.freeze({ scheme: 'Own', parameters: { hint: 'ask us' } })
    const failure = withChallenges(bearer, { _tag: 'invalid', challenge })
    challenge.parameters.hint = 'changed later'
    expect(failure.challenge?.parameters).toStrictEqual({ hint: 'ask us' })
  })

  it('A-30 is raised if the kind throws while it makes a challenge', () => {
    const error = new Error('no challenge')
    const hostile: Leaf = {
      ...bearer,
      challenge: () => {
        throw error
      },
    }
    expect(withChallenges(hostile, { _tag: 'invalid' })).toStrictEqual({ _tag: 'raised', error })
  })
})

describe('other readers of a description', () => {
  it('isThrottled, isAmbient and readsQuery (A-28) are true if one leaf is', () => {
    const is = (of: Description) => [isThrottled(of), isAmbient(of), readsQuery(of)]
    expect(is(anyOfDescriptions([bearer, key('header')]))).toStrictEqual([false, false, false])
    expect(is(allOf(bearer, scoped({ ...key('header'), throttled: true })))).toStrictEqual([true, false, false])
    expect(is(anyOfDescriptions([bearer, basic]))).toStrictEqual([false, true, false])
    expect(is(anyOfDescriptions([bearer, key('query')]))).toStrictEqual([false, false, true])
    expect(readsQuery(custom)).toBe(false)
  })

  it('RFC 6750 §3 challengesOf names the scopes of a permission, each once', () => {
    const scopesOf = (of: Description) => challengesOf(of)[0]?.parameters['scope']
    expect(scopesOf(scoped(bearer))).toBeUndefined()
    expect(scopesOf(scoped(bearer, 'read', 'write'))).toBe('read write')
    expect(scopesOf(scoped(scoped(bearer, 'read', 'write'), 'admin', 'read'))).toBe('read write admin')
  })

  it('RFC 9470 §3 a token is challenged for another authentication, and Basic in any letter case is none', () => {
    const error = insufficientAuthentication({ acr: ['phr'] })
    const named = (scheme: string) => challengesOf(leaf({ type: 'http', scheme }), error)[0]?.parameters['acr_values']
    expect(['bearer', 'Basic', 'basic'].map(named)).toStrictEqual(['phr', undefined, undefined])
  })

  it('fieldsOf has Origin if the origin decides who may read the challenges', () => {
    expect(fieldsReadBy({ ...bearer, exposesChallenges: () => true })).toStrictEqual(['Authorization', 'Origin'])
  })

  it('B-06 challengesOf has one for every leaf, in order; a function is called with the failure', () => {
    const asked: Leaf = { ...bearer, challenge: ({ _tag }) => Challenge.make('Asked', { error: _tag }) }
    const tree = anyOfDescriptions([basic, asked])
    expect(challengesOf(tree)).toStrictEqual([basic.challenge, Challenge.make('Asked', { error: 'absent' })])
    expect(challengesOf(tree, { _tag: 'expired' })[1]?.parameters).toStrictEqual({ error: 'expired' })
  })
})

// What every kind has only for OpenAPI: `schemeName` and `description`.

const authenticate = () => 'anna'
// Safe: a caller without types could write this
const untyped = (options: object) => options as never
const kinds: Readonly<Record<string, (options?: object) => Authenticator<unknown>>> = {
  apiKeyQuery: (options) => apiKeyQuery(untyped({ authenticate, ...options })),
  apiKeyHeader: (options) => apiKeyHeader(untyped({ authenticate, ...options })),
  apiKeyCookie: (options) => apiKeyCookie(untyped({ authenticate, ...options })),
  httpBasicAuth: (options) => httpBasicAuth(untyped({ authenticate, ...options })),
  httpBearer: (options) => httpBearer(untyped({ authenticate, ...options })),
  sessionAuth: (options) => sessionAuth(untyped({ ...options })),
  sessionAuthIsStaff: (options) => sessionAuthIsStaff(untyped({ ...options })),
  sessionAuthSuperUser: (options) => sessionAuthSuperUser(untyped({ ...options })),
}
const leafOf = (made: Authenticator<unknown>) => leaves(made.description)[0]

describe.each(Object.entries(kinds))('%s', (name, make) => {
  it('has the name and the description of its options, which change nothing else', () => {
    const plain = leafOf(make())
    const reported = leafOf(make({ schemeName: 'petKey-1.0_a', description: 'Ask *sales* for one.' }))
    expect(reported?.schemeName).toBe('petKey-1.0_a')
    expect(reported?.scheme).toStrictEqual({ ...plain?.scheme, description: 'Ask *sales* for one.' })
    expect(reported?.ambient).toBe(plain?.ambient)
  })

  it('has none without these options', () => {
    for (const leaf of [leafOf(make()), leafOf(make({ schemeName: undefined, description: undefined }))]) {
      expect(leaf).not.toHaveProperty('schemeName')
      // A session has a default description
      if (!name.startsWith('session')) expect(leaf?.scheme).not.toHaveProperty('description')
    }
  })

  it.each(['', 'a b', 'é', 'a/b', 'a#b', 'a\n', null, 1, ['a']])('is a TypeError for the name %o', (schemeName) => {
    const attempt = () => make({ schemeName })
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(`${name}({ schemeName }) must consist of letters, digits, ".", "-" and "_"`)
  })

  it.each([null, 1, {}, ['a']])('is a TypeError for the description %o', (description) => {
    expect(() => make({ description })).toThrow(TypeError)
    expect(() => make({ description })).toThrow(`${name}({ description }) must be a string`)
  })
})

it('a condition about several credentials together says so, and a condition about a single one does not', () => {
  const wordsOf = (member: Description) => {
    const around = noted<Description>({ _tag: 'Scoped', member, scopes: [] }, { decidedBy: 'f' })
    return alternativesOf(around).flatMap(({ demands }) => demands.flatMap((one) => one.authorizations))
  }
  expect(wordsOf(bearer)).toStrictEqual(['f'])
  expect(wordsOf(allOf(bearer, basic))).toStrictEqual(['f (of all 2)', 'f (of all 2)'])
})

it('an anonymous caller may be refused by a function before it in a list, wherever in the list', () => {
  // `custom` is that of a function: it is unknown whether its credential was sent
  const sent = { ...bearer, isSent: () => true }
  const anonymous: Description = { _tag: 'Optional', member: { ...basic, isSent: () => true }, lenient: false }
  const last = (...members: Description[]) => alternativesOf({ _tag: 'AnyOf', members: [...members, anonymous] }).at(-1)
  expect(last(sent, custom)).toMatchObject({ demands: [], mayBeRefused: true })
  expect(last(sent)).toMatchObject({ demands: [], mayBeRefused: false })
})

describe('a session kind', () => {
  it('keeps its description if only the request knows the name of its cookie', () => {
    const leaf = leafOf(sessionAuth({ description: 'Sign in at /login.' }))
    const request = { ctx: { sessionOptions: { key: 'pets.sess' } } } as never
    expect(leaf?.schemeFor?.(request)).toStrictEqual({
      type: 'apiKey',
      in: 'cookie',
      name: 'pets.sess',
      description: 'Sign in at /login.',
    })
    expect(leafOf(sessionAuth({ cookieName: 'own' }))).not.toHaveProperty('schemeFor')
  })
})
