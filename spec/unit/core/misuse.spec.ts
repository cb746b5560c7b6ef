/** Mistakes in configuration: a TypeError where they are written, that names the place and prints no value. */
import { taskEither as TE } from 'fp-ts'
import {
  alt,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authSettings,
  Challenge,
  describedAs,
  fromFunction,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  map,
  sessionAuth,
  withAuth,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'

class Strategy {}
function* generator() {
  yield true
}
async function* asyncGenerator() {
  yield Promise.resolve(true)
}
const bearer = httpBearer({ authenticate: () => 'anna' })
const secret = 'sup3rs3cr3t'

/** What no function of the request is, and what its message must say. */
const noMember: ReadonlyArray<{ description: string; input: unknown; expected: RegExp }> = [
  { description: 'undefined', input: undefined, expected: /undefined/ },
  { description: 'text', input: secret, expected: /function, not a string/ },
  { description: 'a number', input: 1, expected: /function, not a number/ },
  { description: 'an object', input: { secret }, expected: /function, not an object/ },
  { description: 'true', input: true, expected: /function, not a boolean/ },
  { description: 'a promise', input: Promise.resolve(bearer), expected: /function, not an object/ },
  { description: 'a class', input: Strategy, expected: /class Strategy/ },
  { description: 'an anonymous class', input: class {}, expected: /class/ },
  { description: 'a generator', input: generator, expected: /generator/ },
  { description: 'an async generator', input: asyncGenerator, expected: /generator/ },
  { description: 'a function of two', input: (_a: unknown, _b: unknown) => true, expected: /takes 2 parameters/ },
  ...[httpBearer, httpBasicAuth, apiKeyQuery, apiKeyHeader, apiKeyCookie, sessionAuth].map((factory, at) => ({
    description: `the factory ${['httpBearer', 'httpBasicAuth', 'apiKeyQuery', 'apiKeyHeader', 'apiKeyCookie', 'sessionAuth'][at]}, not called`,
    input: factory,
    expected: /itself; call it/,
  })),
  { description: 'authenticator, not called', input: authenticator, expected: /authenticator itself; call it/ },
  { description: 'withAuth, not called', input: withAuth, expected: /withAuth itself; call it/ },
  { description: 'anyOf, not called', input: anyOf, expected: /anyOf itself; call it/ },
  { description: 'authSettings, not called', input: authSettings, expected: /authSettings itself; call it/ },
]

// Safe, here and below: what a caller without types could write
const untyped = (value: unknown) => value as never

const takers: Readonly<Record<string, (member: unknown) => unknown>> = {
  'withAuth(x)': (member) => withAuth(untyped(member)),
  'withAuth([a, x])': (member) => withAuth([bearer, untyped(member)]),
  'anyOf([x])': (member) => anyOf([untyped(member)]),
  'anyOf({ a: x })': (member) => anyOf({ a: untyped(member) }),
  'fromFunction(x)': (member) => fromFunction(untyped(member)),
  'alt(() => x)': (member) => alt(() => untyped(member))(bearer),
  'describedAs(x)': (member) => describedAs(untyped(member))(() => TE.right('anna')),
  'describedAs(a)(x)': (member) => describedAs(bearer)(untyped(member)),
}

describe.each(Object.entries(takers))('%s', (_place, take) => {
  it.each(noMember)('TypeError for $description', ({ input, expected }) => {
    expect(() => take(input)).toThrow(TypeError)
    expect(() => take(input)).toThrow(expected)
  })

  it('A-37 no message prints a value', () => {
    for (const input of [secret, { secret }, [secret]]) expect(messageOf(() => take(input))).not.toContain(secret)
  })
})

const messageOf = (f: () => unknown): string => {
  try {
    f()
  } catch (error) {
    if (error instanceof TypeError) return error.message
    throw error
  }
  throw new Error('nothing was refused')
}

describe('groups', () => {
  it.each([
    { description: 'an empty list', input: () => withAuth(untyped([])), expected: /withAuth\(\[\]\): an empty list/ },
    { description: 'an empty list', input: () => anyOf(untyped([])), expected: /anyOf\(\[\]\): an empty list/ },
    { description: 'an empty record', input: () => anyOf({}), expected: /anyOf\(\{\}\): an empty record/ },
    {
      description: 'a list in a list',
      input: () => withAuth([bearer, untyped([bearer])]),
      expected: /\[1\] is a list in a list/,
    },
    { description: 'null in a list', input: () => withAuth([bearer, untyped(null)]), expected: /\[1\] is null/ },
    {
      description: 'a hole in a list',
      input: () => withAuth(untyped([bearer, , bearer])),
      expected: /\[1\] is undefined/,
    },
    {
      description: 'a list in a record',
      input: () => anyOf({ a: untyped([bearer]) }),
      expected: /\(\{ a \}\) is a list/,
    },
    { description: 'null in a record', input: () => anyOf({ a: untyped(null) }), expected: /\(\{ a \}\) is null/ },
    {
      description: 'a record key that is an integer',
      input: () => anyOf({ 1: bearer }),
      expected: /looks like an integer/,
    },
    { description: 'a map', input: () => anyOf(untyped(new Map([['a', bearer]]))), expected: /./ },
    { description: 'one authenticator', input: () => anyOf(untyped(bearer)), expected: /a list or a record/ },
    { description: 'null', input: () => anyOf(untyped(null)), expected: /not null/ },
    { description: 'a record to withAuth', input: () => withAuth(untyped({ a: bearer })), expected: /not an object/ },
    { description: 'withAuth(undefined)', input: () => withAuth(untyped(undefined)), expected: /literal null/ },
    {
      description: 'withAuth(withAuth(a))',
      input: () => withAuth(untyped(withAuth(bearer))),
      expected: /a guard already/,
    },
  ])('TypeError for $description', ({ input, expected }) => {
    expect(messageOf(input)).toMatch(expected)
  })
})

const kinds: Readonly<Record<string, { make: (options: unknown) => unknown; arity: number }>> = {
  httpBearer: { make: (options) => httpBearer(untyped(options)), arity: 2 },
  httpBasicAuth: { make: (options) => httpBasicAuth(untyped(options)), arity: 3 },
  apiKeyQuery: { make: (options) => apiKeyQuery(untyped(options)), arity: 2 },
  apiKeyHeader: { make: (options) => apiKeyHeader(untyped(options)), arity: 2 },
  apiKeyCookie: { make: (options) => apiKeyCookie(untyped(options)), arity: 2 },
}

describe.each(Object.entries(kinds))('%s', (name, { make, arity }) => {
  const authenticate = () => true
  it.each([
    { description: 'no options', input: undefined },
    { description: 'null', input: null },
    { description: 'a list', input: [] },
    { description: 'the hook alone', input: authenticate },
    { description: 'no hook', input: {} },
    { description: 'a hook that is text', input: { authenticate: secret } },
    { description: 'a hook that is null', input: { authenticate: null } },
    { description: 'a class for a hook', input: { authenticate: Strategy } },
    { description: 'a generator for a hook', input: { authenticate: generator } },
    { description: 'an un-called factory for a hook', input: { authenticate: httpBearer } },
    { description: 'an unknown option', input: { authenticate, parmName: 'x' } },
    { description: 'B-05 a realm with a line break', input: { authenticate, realm: 'a\r\nb' } },
    { description: 'a realm beyond ASCII', input: { authenticate, realm: 'é' } },
    { description: 'a maximum of 0', input: { authenticate, maxLength: 0 } },
    { description: 'a negative maximum', input: { authenticate, maxLength: -1 } },
    { description: 'a maximum that is NaN', input: { authenticate, maxLength: NaN } },
    { description: 'no maximum', input: { authenticate, maxLength: Infinity } },
    { description: 'a maximum that is text', input: { authenticate, maxLength: '9' } },
  ])('TypeError that names it for $description', ({ input }) => {
    const message = messageOf(() => make(input))
    expect(message).toMatch(new RegExp(`${name}|authenticator|Challenge`))
    expect(message).not.toContain(secret)
  })

  it(`a hook of more than ${arity} parameters is refused, one of as many or fewer admitted`, () => {
    const hooks = [
      () => 1,
      (_a: unknown) => 1,
      (_a: unknown, _b: unknown) => 1,
      (_a: unknown, _b: unknown, _c: unknown) => 1,
    ]
    for (const hook of hooks) {
      const attempt = () => make({ authenticate: hook })
      if (hook.length <= arity) expect(attempt).not.toThrow()
      else expect(attempt).toThrow(`takes ${hook.length} parameters`)
    }
    expect(() => make({ authenticate: (_a: 1, _b: 2, _c: 3, _d: 4) => 1 })).toThrow('takes 4 parameters')
  })
})

describe('names', () => {
  it.each(['', 'a b', 'a\r\nb', 'é', 'a\tb', '\0', null, 1, ['a']])('TypeError for the paramName %o', (paramName) => {
    for (const kind of [apiKeyQuery, apiKeyHeader, apiKeyCookie]) {
      expect(() => kind({ paramName: untyped(paramName), authenticate: () => true })).toThrow(/paramName/)
    }
  })

  it('a header and a cookie are named by tokens, a parameter by anything printable', () => {
    for (const paramName of ['a;b', 'a=b', 'a,b', 'a"b', 'a:b', 'key[]']) {
      expect(() => apiKeyHeader({ paramName, authenticate: () => true })).toThrow(/paramName/)
      expect(() => apiKeyCookie({ paramName, authenticate: () => true })).toThrow(/paramName/)
      expect(() => apiKeyQuery({ paramName, authenticate: () => true })).not.toThrow()
    }
  })
})

describe('authenticator', () => {
  const kind = { challenge: Challenge.make('X'), ambient: false, extract: fromHeader('x'), authenticate: () => 'anna' }
  it.each([
    { description: 'no extract', input: { ...kind, extract: undefined }, expected: /extract/ },
    { description: 'an extract of two', input: { ...kind, extract: (_a: 1, _b: 2) => null }, expected: /extract/ },
    { description: 'no hook', input: { ...kind, authenticate: null }, expected: /authenticate/ },
    {
      description: 'a hook of three',
      input: { ...kind, authenticate: (_a: 1, _b: 2, _c: 3) => 1 },
      expected: /takes 3/,
    },
    { description: 'a maximum of 0', input: { ...kind, maxLength: 0 }, expected: /maxLength/ },
    {
      description: 'B-05 a challenge made by hand that cannot stand in a header',
      input: { ...kind, challenge: { scheme: 'X\r\nY', parameters: {} } },
      expected: /./,
    },
  ])('TypeError for $description', ({ input, expected }) => {
    expect(messageOf(() => authenticator(untyped(input)))).toMatch(expected)
  })

  it.each([undefined, null, 'f', Strategy, generator, (_a: 1, _b: 2) => 1])('TypeError for map(%o)', (f) => {
    expect(() => map(untyped(f))(bearer)).toThrow(TypeError)
  })
})
