/** Configuration that would let everybody in, or nobody: a TypeError where it is written, naming the place and the fix. */
import Router from '@koa/router'
import * as api from 'koa-with-auth'
import {
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authSettings,
  httpBasicAuth,
  httpBearer,
  isAuthenticator,
  sessionAuth,
  withAuth,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { appOf, bearerFor, callsOf, get, guardOf, handler } from '../support/levels.js'
import { listen } from '../support/server.js'

const a = bearerFor('a')
const key = { authenticate: (_request: unknown, sent: string) => sent }

class Authenticator {
  readonly user = 'anybody'
}
// a hole, which `forEach` skips
const holed: unknown[] = [a, , a]

interface Case {
  readonly description: string
  readonly auth: unknown
  readonly message: string
}

const members: ReadonlyArray<Case> = [
  { description: 'undefined', auth: undefined, message: 'undefined' },
  { description: 'a class', auth: Authenticator, message: 'is the class Authenticator; pass a function' },
  { description: 'an anonymous class', auth: class {}, message: 'is the class' },
  { description: 'a generator', auth: function* () {}, message: 'is a generator, whose answer is always truthy' },
  { description: 'an async generator', auth: async function* () {}, message: 'is a generator' },
  { description: '(ctx, next) => {}', auth: (_ctx: unknown, _next: unknown) => {}, message: 'takes 2 parameters' },
  { description: 'a guard', auth: withAuth(a), message: 'withAuth(withAuth(a)): it is a guard already' },
  { description: 'a guard that makes public', auth: withAuth(null), message: 'withAuth(withAuth(a))' },
  { description: 'a string', auth: 'secret', message: 'must be a function, not a string' },
  { description: 'true', auth: true, message: 'must be a function, not a boolean' },
  { description: 'false', auth: false, message: 'must be a function, not a boolean' },
  { description: 'zero', auth: 0, message: 'must be a function, not a number' },
  { description: 'an object', auth: { authenticate: () => true }, message: 'must be a function, not an object' },
  { description: 'a promise of an authenticator', auth: Promise.resolve(a), message: 'must be a function' },
  { description: 'a Map', auth: new Map([['a', a]]), message: 'must be a function, not an object' },
]

describe('withAuth of what is no authenticator', () => {
  test.each(members)('withAuth($description) is a TypeError', ({ auth, message }) => {
    expect(() => guardOf(auth)).toThrow(TypeError)
    expect(() => guardOf(auth)).toThrow(message)
    expect(() => guardOf(auth)).toThrow(/withAuth/)
  })

  test.each(members)('withAuth([a, $description]) is a TypeError that tells which member', ({ auth }) => {
    expect(() => guardOf([a, auth])).toThrow(TypeError)
    expect(() => guardOf([a, auth])).toThrow(/withAuth\(\[\.\.\.\]\)\[1\]/)
  })

  test.each([
    { description: '[]', auth: [], message: 'withAuth([]): an empty list; pass at least one authenticator' },
    { description: '[[a]]', auth: [[a]], message: 'withAuth([...])[0] is a list in a list; write one list' },
    { description: '[a, []]', auth: [a, []], message: 'withAuth([...])[1] is a list in a list' },
    { description: '[null]', auth: [null], message: 'withAuth([...])[0] is null; null stands alone' },
    { description: '[a, null]', auth: [a, null], message: 'withAuth([...])[1] is null; null stands alone' },
    { description: 'a list with a hole', auth: holed, message: 'withAuth([...])[1] is undefined' },
  ])('withAuth($description) is a TypeError', ({ auth, message }) => {
    expect(() => guardOf(auth)).toThrow(TypeError)
    expect(() => guardOf(auth)).toThrow(message)
  })

  test('a message never prints the value that it refuses', () => {
    for (const auth of ['s3cret', ['s3cret'], { password: 's3cret' }]) {
      expect(() => guardOf(auth)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('s3cret') }))
    }
  })

  const makers = Object.entries(api).filter(([, value]) => typeof value === 'function' && !isAuthenticator(value))
  const factories = [
    'alt altW anyOf authenticator describedAs fromFunction map apiKeyCookie apiKeyHeader apiKeyQuery httpBasicAuth',
    'httpBearer sessionAuth sessionAuthIsStaff sessionAuthSuperUser withAuth authSettings',
    'authorization cookie fromHeader fromQuery apiApp',
  ].flatMap((names) => names.split(' '))

  test.each(factories)('withAuth(%s), a factory that was not called, is a TypeError that says so', (name) => {
    const [, factory] = makers.find(([exported]) => exported === name)!
    expect(() => guardOf(factory)).toThrow(TypeError)
    expect(() => guardOf(factory)).toThrow(new RegExp(`is ${name === 'alt' ? 'altW' : name} itself; call it`))
    expect(() => guardOf([a, factory])).toThrow(TypeError)
    expect(() => httpBearer({ authenticate: factory as never })).toThrow(TypeError)
  })

  test('nobody passes whatever this package exports, if it is taken for an authenticator', async () => {
    expect(makers.length).toBeGreaterThan(factories.length)
    for (const [name, value] of makers) {
      const guard = refusing(() => guardOf(value))
      if (guard === undefined) continue
      const own = await listen(appOf(new Router().get('/x', guard as never, handler('misuse')).routes()))
      expect([name, (await get(own.port, '/x')).status >= 400, callsOf('misuse')]).toEqual([name, true, 0])
      await own.close()
    }
  })
})

const refusing = <A>(make: () => A): A | undefined => {
  try {
    return make()
  } catch {
    return undefined
  }
}

describe('options that cannot work', () => {
  const wrong: ReadonlyArray<[string, () => unknown, RegExp]> = [
    ['no options', () => httpBearer(undefined as never), /httpBearer takes an object of options, not undefined/],
    ['a function for options', () => httpBasicAuth((() => true) as never), /httpBasicAuth takes an object of options/],
    ['no hook', () => apiKeyQuery({} as never), /apiKeyQuery\({ authenticate }\) must be a function, not undefined/],
    ['a hook that is a string', () => apiKeyHeader({ authenticate: 'k' as never }), /apiKeyHeader\({ authenticate }\)/],
    ['a hook that is null', () => apiKeyCookie({ authenticate: null as never }), /apiKeyCookie\({ authenticate }\)/],
    ['a class for a hook', () => httpBearer({ authenticate: Authenticator as never }), /is the class Authenticator/],
    ['a generator for a hook', () => httpBearer({ authenticate: function* () {} }), /is a generator/],
    [
      'a third parameter of a bearer hook',
      () => httpBearer({ authenticate: ((_r: unknown, _t: string, _n: unknown) => true) as never }),
      /httpBearer\({ authenticate }\) takes 3 parameters, but is called with 2/,
    ],
    [
      'a third parameter of a key hook',
      () => apiKeyQuery({ authenticate: ((_r: unknown, _t: string, _n: unknown) => true) as never }),
      /apiKeyQuery\({ authenticate }\) takes 3 parameters/,
    ],
    [
      'a fourth parameter of a Basic hook',
      () => httpBasicAuth({ authenticate: ((_r: unknown, _u: string, _p: string, _n: unknown) => 1) as never }),
      /httpBasicAuth\({ authenticate }\) takes 4 parameters, but is called with 3/,
    ],
    [
      'a second parameter of loadUser',
      () => sessionAuth({ loadUser: ((_session: unknown, _next: unknown) => true) as never }),
      /sessionAuth\({ loadUser }\) takes 2 parameters/,
    ],
    ['an empty record', () => anyOf({} as never), /anyOf\({}\): an empty record/],
    [
      'a record with an integer-like key',
      () => anyOf({ 1: a }),
      /anyOf\({ 1: ... }\): a key that looks like an integer/,
    ],
    ['no extract', () => authenticator({ ...key, ambient: false } as never), /authenticator\({ extract }\)/],
  ]

  test.each(wrong)('%s is a TypeError that names the place', (_description, make, message) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })

  const kinds = { apiKeyQuery, apiKeyHeader, apiKeyCookie, httpBearer, httpBasicAuth, sessionAuth }

  test.each(Object.entries(kinds))(
    '%s refuses an option that it does not know, and tells which it does',
    (name, make) => {
      const options = name === 'sessionAuth' ? {} : key
      const run = () => (make as (options: unknown) => unknown)({ ...options, paramname: 'x' })
      expect(run).toThrow(TypeError)
      expect(run).toThrow(new RegExp(`^${name}: no option "paramname"; there are `))
    },
  )

  test.each([...['apiKeyQuery', 'apiKeyHeader', 'apiKeyCookie', 'httpBearer', 'httpBasicAuth']] as const)(
    '%s refuses a maxLength that is no positive number',
    (name) => {
      const make = kinds[name] as (options: unknown) => unknown
      for (const maxLength of [0, -1, NaN, Infinity, 2 ** 31, '10', null, {}]) {
        expect(() => make({ ...key, maxLength }), JSON.stringify(maxLength)).toThrow(TypeError)
        expect(() => make({ ...key, maxLength })).toThrow(/maxLength/)
      }
      expect(() => make({ ...key, maxLength: 1 })).not.toThrow()
    },
  )

  test.each(['apiKeyQuery', 'apiKeyHeader', 'apiKeyCookie'] as const)(
    '%s refuses a paramName that cannot be sent',
    (name) => {
      const refused = ['', ' ', 'a b', 'a\r\nb', 'a\u0000', '\u00e4', 7, null, ['key']]
      const ofToken = name === 'apiKeyQuery' ? [] : ['a=b', 'a;b', 'a,b', 'a:b', 'a"b', '(a)']
      for (const paramName of [...refused, ...ofToken]) {
        const run = () => (kinds[name] as (options: unknown) => unknown)({ ...key, paramName })
        expect(run, JSON.stringify(paramName)).toThrow(TypeError)
        expect(run).toThrow(new RegExp(`^${name}\\({ paramName }\\) must be a name`))
      }
    },
  )

  test.each(Object.entries(kinds))('%s refuses a realm that does not fit a header', (name, make) => {
    const options = name === 'sessionAuth' ? {} : key
    for (const realm of ['a\r\nSet-Cookie: x', 'a\n', '\u00e4', '\u0000', 7, null]) {
      const run = () => (make as (options: unknown) => unknown)({ ...options, realm })
      expect(run, JSON.stringify(realm)).toThrow(TypeError)
    }
  })
})

describe('authSettings', () => {
  const settings = authSettings as (options?: unknown) => unknown
  const origin = (given: unknown) => ({ trustedOrigins: [given] })
  const refused: ReadonlyArray<[string, unknown, RegExp]> = [
    ['no options', undefined, /authSettings takes an object of options/],
    ['an unknown option', { CSRF: false }, /authSettings: no option "CSRF"; there are csrf, /],
    ["csrf: 'yes'", { csrf: 'yes' }, /authSettings\({ csrf }\) must be true or false/],
    ['csrf: 0', { csrf: 0 }, /csrf/],
    ['csrf: null', { csrf: null }, /csrf/],
    ['one origin, no list', { trustedOrigins: 'https://a.example' }, /trustedOrigins.* must be a list/],
    ['an origin with a path', origin('https://a.example/x'), /is no origin; write scheme:\/\/host/],
    ['an origin with a slash', origin('https://a.example/'), /is no origin/],
    ['an origin with a query', origin('https://a.example?x'), /is no origin/],
    ['an origin with a fragment', origin('https://a.example#x'), /is no origin/],
    ['an origin with a user', origin('https://u@a.example'), /is no origin/],
    ["'null'", origin('null'), /is no origin/],
    ['null', origin(null), /is no origin/],
    ["'*'", origin('*'), /is no origin/],
    ["'https://*.example'", origin('https://*.example'), /is no origin/],
    ['an origin without a scheme', origin('a.example'), /is no origin/],
    ['a host with a port, without a scheme', origin('a.example:443'), /is no origin/],
    ['an origin with its default port', origin('https://a.example:443'), /is no origin/],
    ['an origin in capitals', origin('https://A.example'), /is no origin/],
    ['an empty origin', origin(''), /is no origin/],
    ['an expression', origin(/example/), /is no origin/],
    ['an undefined origin', origin(undefined), /is no origin/],
    ...[0, -1, NaN, Infinity, -Infinity, 2 ** 31, '10', null].map((timeout): [string, unknown, RegExp] => [
      `timeout: ${JSON.stringify(timeout)} (${String(timeout)})`,
      { timeout },
      /authSettings\({ timeout }\) must be a number from 1 to 2147483647/,
    ]),
    ['realm with CR LF', { realm: 'a\r\nSet-Cookie: x=1' }, /realm/],
    ['realm with an umlaut', { realm: '\u00e4' }, /realm/],
    ['realm that is no string', { realm: 7 }, /realm/],
    ['errorMapper that is no function', { errorMapper: {} }, /authSettings\({ errorMapper }\) must be a function/],
    ['errorMapper of three', { errorMapper: (_a: 1, _b: 2, _c: 3) => 1 }, /errorMapper.* takes 3 parameters/],
  ]

  test.each(refused)('%s is a TypeError that names the place', (_description, options, message) => {
    expect(() => settings(options)).toThrow(TypeError)
    expect(() => settings(options)).toThrow(message)
  })

  test('what holds is taken', () => {
    const some = {
      csrf: false,
      trustedOrigins: ['https://a.example', 'http://localhost:3000'],
      realm: 'a "b"',
      timeout: 1,
    }
    expect(() => settings(some)).not.toThrow()
    expect(() => settings({ timeout: 2 ** 31 - 1 })).not.toThrow()
  })
})
