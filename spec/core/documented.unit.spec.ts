/** What every kind has only for OpenAPI: `schemeName` and `description`. */
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  Challenge,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  type Authenticator,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { leaves } from '../../src/core/Description.js'

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

  it('does not share the name of another', () => {
    make({ schemeName: 'first', description: 'first' })
    expect(leafOf(make())).not.toHaveProperty('schemeName')
    expect(JSON.stringify(leafOf(make())?.scheme)).not.toContain('first')
  })

  it.each(['', 'a b', 'é', 'a/b', 'a#b', 'a\n', null, 1, ['a']])(
    'is a TypeError for the schemeName %o',
    (schemeName) => {
      const attempt = () => make({ schemeName })
      expect(attempt).toThrow(TypeError)
      expect(attempt).toThrow(`${name}({ schemeName }) must consist of letters, digits, ".", "-" and "_"`)
    },
  )

  it.each([null, 1, {}, ['a']])('is a TypeError for the description %o', (description) => {
    expect(() => make({ description })).toThrow(TypeError)
    expect(() => make({ description })).toThrow(`${name}({ description }) must be a string`)
  })
})

describe('your own kind', () => {
  const kind = { challenge: Challenge.make('Own'), ambient: false, extract: fromHeader('x'), authenticate }

  it('has a name and a description in the same way', () => {
    expect(leafOf(authenticator({ ...kind, schemeName: 'own' }))?.schemeName).toBe('own')
    expect(leafOf(authenticator(kind))).not.toHaveProperty('schemeName')
    expect(() => authenticator({ ...kind, schemeName: 'a b' })).toThrow('authenticator({ schemeName }) must consist of')
  })
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
