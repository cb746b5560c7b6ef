/** Options and arguments that cannot work are a TypeError that names the place and prints no value. */
import {
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authorize,
  authSettings,
  Challenge,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  optional,
  requireScopes,
  sessionAuth,
  type Authenticator,
} from 'koa-with-auth'
import { lenient, flatMap, map, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { generator, messageOf, secret, Strategy, untyped } from '../support/projects/mistakes.js'
import { row } from '../support/models/row.js'

const bearer = httpBearer({ authenticate: () => 'anna' })
const key = apiKeyHeader({ authenticate: () => 'cron' })
const perhaps = optional(bearer)
const authenticate = () => true

// --- kinds

const kinds: Readonly<Record<string, { make: (options: unknown) => unknown; hook: string; arity: number }>> = {
  httpBearer: { make: (options) => httpBearer(untyped(options)), hook: 'authenticate', arity: 2 },
  httpBasicAuth: { make: (options) => httpBasicAuth(untyped(options)), hook: 'authenticate', arity: 3 },
  apiKeyQuery: { make: (options) => apiKeyQuery(untyped(options)), hook: 'authenticate', arity: 2 },
  apiKeyHeader: { make: (options) => apiKeyHeader(untyped(options)), hook: 'authenticate', arity: 2 },
  apiKeyCookie: { make: (options) => apiKeyCookie(untyped(options)), hook: 'authenticate', arity: 2 },
  sessionAuth: { make: (options) => sessionAuth(untyped(options)), hook: 'loadUser', arity: 1 },
}
const credentialKinds = Object.entries(kinds).filter(([name]) => name !== 'sessionAuth')

describe.each(Object.entries(kinds))('%s', (name, { make, hook, arity }) => {
  const good = { [hook]: authenticate }
  it.each([
    row('null', null, 'takes an object of options, not null'),
    row('a list', [], 'takes an object of options, not an array'),
    row('only the hook', authenticate, 'takes an object of options, not a function'),
    row('a hook that is a string', { [hook]: secret }, `{ ${hook} }) must be a function`),
    row('a hook that is null', { [hook]: null }, `{ ${hook} }) must be a function`),
    row('a class as a hook', { [hook]: Strategy }, 'is the class Strategy'),
    row('a generator as a hook', { [hook]: generator }, 'is a generator'),
    row('a factory as a hook', { [hook]: httpBearer }, 'call it: httpBearer'),
    row('an unknown option', { ...good, paramname: 'x' }, 'no option "paramname"; there are '),
    row('B-05 a realm with a line break', { ...good, realm: 'a\r\nb' }, 'realm'),
    row('B-05 a realm that ends with a line break', { ...good, realm: 'a\n' }, 'realm'),
    row('a realm outside of ASCII', { ...good, realm: 'é' }, 'realm'),
    row('a realm with NUL', { ...good, realm: '\0' }, 'realm'),
    row('a realm that is a number', { ...good, realm: 7 }, 'realm'),
    row('a realm that is null', { ...good, realm: null }, 'realm'),
  ])('is a TypeError that names the place for $description', ({ input, expected }) => {
    const message = messageOf(() => make(input))
    expect(message).toContain(expected)
    expect(message).toMatch(new RegExp(`^${name}\\b`))
    expect(message).not.toContain(secret)
  })

  it(`a hook with more than ${arity} parameters is refused, a hook with as many or fewer is not`, () => {
    const hooks = [
      () => 1,
      (_a: unknown) => 1,
      (_a: unknown, _b: unknown) => 1,
      (_a: unknown, _b: unknown, _c: unknown) => 1,
      (_a: unknown, _b: unknown, _c: unknown, _d: unknown) => 1,
    ]
    for (const one of hooks) {
      const attempt = () => make({ [hook]: one })
      if (one.length <= arity) expect(attempt).not.toThrow()
      else expect(attempt).toThrow(`takes ${one.length} parameters, but is called with ${arity}`)
    }
  })
})

describe.each(credentialKinds)('%s', (name, { make }) => {
  it.each([{}, undefined])('is a TypeError for the options %o, because there is no hook', (options) => {
    expect(messageOf(() => make(options))).toMatch(new RegExp(`^${name}\\b`))
  })

  it.each([0, -1, NaN, Infinity, 2 ** 31, '10', null, {}])('is a TypeError for the maxLength %o', (maxLength) => {
    expect(messageOf(() => make({ authenticate, maxLength }))).toContain(`${name}({ maxLength })`)
  })

  it('accepts a maxLength of 1', () => {
    expect(() => make({ authenticate, maxLength: 1 })).not.toThrow()
  })
})

describe('names of credentials', () => {
  const refused = ['', ' ', 'a b', 'a\r\nb', 'é', 'a\tb', '\0', 'a\0', null, 1, ['key']]
  it.each(refused)('the paramName %o is a TypeError', (paramName) => {
    for (const [name, kind] of Object.entries({ apiKeyQuery, apiKeyHeader, apiKeyCookie })) {
      const message = messageOf(() => kind({ paramName: untyped(paramName), authenticate }))
      expect(message).toMatch(new RegExp(`^${name}\\({ paramName }\\) must be a name`))
    }
  })

  it('a header and a cookie are named by tokens, a parameter by any printable characters', () => {
    for (const paramName of ['a;b', 'a=b', 'a,b', 'a"b', 'a:b', '(a)', 'key[]']) {
      expect(() => apiKeyHeader({ paramName, authenticate })).toThrow(/paramName/)
      expect(() => apiKeyCookie({ paramName, authenticate })).toThrow(/paramName/)
      expect(() => apiKeyQuery({ paramName, authenticate })).not.toThrow()
    }
  })
})

describe('authenticator', () => {
  const kind = { challenge: Challenge.make('X'), ambient: false, extract: fromHeader('x'), authenticate: () => 'anna' }
  it.each([
    row('no extract', { ...kind, extract: undefined }, /\{ extract \}/),
    row('an extract with two parameters', { ...kind, extract: (_a: 1, _b: 2) => null }, /\{ extract \}/),
    row('no hook', { ...kind, authenticate: null }, /\{ authenticate \}/),
    row('a class as a hook', { ...kind, authenticate: Strategy }, /class Strategy/),
    row('a hook with three parameters', { ...kind, authenticate: (_a: 1, _b: 2, _c: 3) => 1 }, /takes 3/),
    row('a maxLength of 0', { ...kind, maxLength: 0 }, /\{ maxLength \}/),
    row(
      'B-05 a challenge that does not fit a header',
      { ...kind, challenge: { scheme: 'X\r\nY', parameters: {} } },
      /^Challenge/,
    ),
  ])('is a TypeError for $description', ({ input, expected }) => {
    expect(messageOf(() => authenticator(untyped(input)))).toMatch(expected)
  })
})

// --- combinators

const functionsOf: Readonly<Record<string, { take: (f: never) => unknown; arity: number }>> = {
  'map(f)': { take: (f) => map(f)(bearer), arity: 1 },
  'flatMap(f)': { take: (f) => flatMap(f)(bearer), arity: 1 },
  'authorize(f)': { take: (f) => authorize(f), arity: 2 },
  'recoverUnavailable(f)': { take: (f) => recoverUnavailable(f), arity: 1 },
}

describe.each(Object.entries(functionsOf))('%s', (place, { take }) => {
  it.each([undefined, null, true, secret, Strategy, generator, httpBearer, (_a: 1, _b: 2, _c: 3) => true])(
    'is a TypeError for %o',
    (f) => {
      const message = messageOf(() => take(untyped(f)))
      expect(message.startsWith(place)).toBe(true)
      expect(message).not.toContain(secret)
    },
  )
})

it('an authenticator instead of a function of the principal is a TypeError that names the fix', () => {
  const message = 'authorize(f) takes a function of the principal, not an authenticator; write authorize(f)(a)'
  expect(messageOf(() => authorize(untyped(bearer)))).toBe(message)
})

describe('authorize and requireScopes', () => {
  it.each<Authenticator<unknown>>([perhaps, lenient(bearer), anyOf([key, perhaps]), allOf([perhaps, perhaps])])(
    'over an optional authenticator are a TypeError, because an anonymous caller cannot be allowed',
    (admitting) => {
      const message = messageOf(() => authorize(() => true)(admitting))
      expect(message).toBe('authorize(f)(a): a is optional; write optional(authorize(f)(a))')
      const scoped = requireScopes(['read'], { granted: () => 'read' })
      expect(messageOf(() => scoped(admitting))).toBe(
        'requireScopes(...)(a): a is optional; write optional(requireScopes(...)(a))',
      )
    },
  )

  it.each([[], undefined, null, 'read', new Set(['read']), {}])('are a TypeError for the scopes %o', (scopes) => {
    const message = messageOf(() => requireScopes(untyped(scopes), { granted: () => 'read' }))
    expect(message).toMatch(/^requireScopes\(\[\.\.\.\], { granted }\): pass an array of at least one scope$/)
  })

  it.each(['', 'a b', 'a"b', 'a\\b', 'é', 'a\n', 1, null, undefined, ['a']])(
    'RFC 6749 §3.3 are a TypeError for the scope %o',
    (scope) => {
      const message = messageOf(() => requireScopes(['read', untyped(scope)], { granted: () => 'read' }))
      expect(message).toMatch(/scope 2 must be printable ASCII without blanks/)
    },
  )

  it.each([undefined, null, [], () => 'read', {}, { granted: 'read' }, { granted: () => 'read', grant: 1 }])(
    'are a TypeError for the options %o',
    (options) => {
      expect(messageOf(() => requireScopes(['read'], untyped(options)))).toMatch(/^requireScopes\(\[\.\.\.\], /)
    },
  )
})

const notMilliseconds = [0, -1, NaN, Infinity, -Infinity, 2 ** 31, '5', null]

it('options without a prototype are accepted', () => {
  const options: object = Object.assign(Object.create(null) as object, { authenticate })
  expect(() => apiKeyHeader(untyped(options))).not.toThrow()
})

describe('timeout', () => {
  it.each([...notMilliseconds, undefined, 5n])('is a TypeError for %o milliseconds', (ms) => {
    expect(messageOf(() => timeout(untyped(ms)))).toMatch(/^timeout\(ms\) must be a number from 1 to 2147483647, not /)
  })

  it('accepts all times of a timer', () => {
    for (const ms of [1, 500, 2 ** 31 - 1]) expect(() => timeout(ms)(bearer)).not.toThrow()
  })
})

// --- settings

describe('authSettings', () => {
  const settings = authSettings as (options?: unknown) => unknown
  const refused: ReadonlyArray<[string, unknown, RegExp]> = [
    ['no options', undefined, /^authSettings takes an object of options/],
    ['an unknown option', { CSRF: false }, /^authSettings: no option "CSRF"; there are csrf, /],
    ...['yes', 'false', 0, null].map((csrf): [string, unknown, RegExp] => [
      `csrf: ${JSON.stringify(csrf)}`,
      { csrf },
      /^authSettings\({ csrf }\) must be true or false/,
    ]),
    ['an origin that is not in a list', { trustedOrigins: 'https://a.example' }, /trustedOrigins.* must be an array/],
    ['no origin', { trustedOrigins: ['https://*.example'] }, /is not an origin; write scheme:\/\/host/],
    ...notMilliseconds.map((ms): [string, unknown, RegExp] => [
      `timeout: ${typeof ms} ${String(ms)}`,
      { timeout: ms },
      /^authSettings\({ timeout }\) must be a number from 1 to 2147483647/,
    ]),
    ['B-05 a realm with CR LF', { realm: 'a\r\nSet-Cookie: x=1' }, /realm/],
    ['a realm outside of ASCII', { realm: '\u00e4' }, /realm/],
    ['a realm that is a number', { realm: 7 }, /realm/],
    ['an errorMapper that is no function', { errorMapper: {} }, /^authSettings\({ errorMapper }\) must be a function/],
    ['an errorMapper of three', { errorMapper: (_a: 1, _b: 2, _c: 3) => 1 }, /errorMapper.* takes 3 parameters/],
  ]

  it.each(refused)('is a TypeError that names the place for %s', (_description, options, message) => {
    expect(messageOf(() => settings(options))).toMatch(message)
  })

  it('accepts valid settings', () => {
    const origins = ['https://a.example', 'http://localhost:3000']
    expect(() => settings({ csrf: false, trustedOrigins: origins, realm: 'a "b"', timeout: 1 })).not.toThrow()
    expect(() => settings({ timeout: 2 ** 31 - 1 })).not.toThrow()
  })
})
