/** Mistakes in composing: a TypeError where they are written, that names the place and the fix, and prints no value. */
import {
  allOf,
  also,
  alt,
  altW,
  anyOf,
  apiKeyHeader,
  authorize,
  describedAs,
  firstPresent,
  httpBearer,
  lenient,
  map,
  optional,
  perFailure,
  recoverUnavailable,
  requireScopes,
  timeout,
  withAuth,
} from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { plainRequest } from '../../support/plainRequest.js'

class Strategy {}
function* generator() {
  yield true
}
const secret = 'sup3rs3cr3t'
const bearer = httpBearer({ authenticate: () => 'anna' })
const key = apiKeyHeader({ authenticate: () => 'cron' })
const perhaps = optional(bearer)

// Safe, here and below: what a caller without types could write
const untyped = (value: unknown) => value as never
const messageOf = (f: () => unknown): string => {
  try {
    f()
  } catch (error) {
    if (error instanceof TypeError) return error.message
    throw error
  }
  throw new Error('nothing was refused')
}

const factories = { allOf, also, altW, anyOf, authorize, describedAs, firstPresent, lenient, map, optional, perFailure }
const uncalled = Object.entries({ ...factories, recoverUnavailable, requireScopes, timeout })

/** What no function of the request is, and what its message must say. */
const noMember: ReadonlyArray<{ description: string; input: unknown; expected: RegExp }> = [
  { description: 'undefined', input: undefined, expected: /is undefined; is it imported before it is made\?/ },
  { description: 'null', input: null, expected: /null/ },
  { description: 'text', input: secret, expected: /must be a function, not a string/ },
  { description: 'an object', input: { secret }, expected: /function, not an object/ },
  { description: 'a promise', input: Promise.resolve(bearer), expected: /function, not an object/ },
  { description: 'a class', input: Strategy, expected: /class Strategy; pass a function/ },
  { description: 'a generator', input: generator, expected: /generator.*write a plain or an async function/ },
  { description: 'a function of two', input: (_a: unknown, _b: unknown) => true, expected: /takes 2 parameters/ },
  { description: 'what also made', input: also(bearer), expected: /function, not an object/ },
  ...uncalled.map(([name, input]) => ({
    description: `${name}, not called`,
    input,
    expected: new RegExp(`is ${name} itself; call it: ${name}\\(`),
  })),
]

/** Where one authenticator is taken, and how the place is called. */
const takers: Readonly<Record<string, { take: (member: unknown) => unknown; place: string }>> = {
  'allOf([a, x])': { take: (x) => allOf([bearer, untyped(x)]), place: 'allOf([...])[1]' },
  'allOf({ x })': { take: (x) => allOf({ a: bearer, x: untyped(x) }), place: 'allOf({ x })' },
  'anyOf({ x })': { take: (x) => anyOf({ a: bearer, x: untyped(x) }), place: 'anyOf({ x })' },
  'firstPresent([x])': { take: (x) => firstPresent([untyped(x)]), place: 'firstPresent([...])[0]' },
  'firstPresent({ x })': { take: (x) => firstPresent({ x: untyped(x) }), place: 'firstPresent({ x })' },
  'optional(x)': { take: (x) => optional(untyped(x)), place: 'optional(a)' },
  'lenient(x)': { take: (x) => lenient(untyped(x)), place: 'lenient(a)' },
  'authorize(f)(x)': { take: (x) => authorize(() => true)(untyped(x)), place: 'authorize(f)(a)' },
  'requireScopes(...)(x)': {
    take: (x) => requireScopes(['read'], { granted: () => 'read' })(untyped(x)),
    place: 'requireScopes(...)(a)',
  },
  'timeout(1)(x)': { take: (x) => timeout(1)(untyped(x)), place: 'timeout(ms)(a)' },
  'recoverUnavailable(f)(x)': {
    take: (x) => recoverUnavailable(() => 'anna')(untyped(x)),
    place: 'recoverUnavailable(f)(a)',
  },
  'also(x)': { take: (x) => also(untyped(x)), place: 'also(...)' },
  'also([a, x])': { take: (x) => also([bearer, untyped(x)]), place: 'also([...])[1]' },
  'map(f)(x)': { take: (x) => map(() => 'anna')(untyped(x)), place: 'map(f)(a)' },
  'altW(() => x)': { take: (x) => altW(() => untyped(x))(bearer), place: 'alt(...)' },
}

describe.each(Object.entries(takers))('%s', (_name, { take, place }) => {
  it.each(noMember)('TypeError that names the place and the fix for $description', ({ input, expected }) => {
    const message = messageOf(() => take(input))
    expect(message).toMatch(expected)
    expect(message).toContain(place)
    expect(message).not.toContain(secret)
  })

  it('A-37 no message prints a value', () => {
    for (const input of [secret, { secret }, [secret]]) expect(messageOf(() => take(input))).not.toContain(secret)
  })
})

describe.each(Object.entries({ allOf, anyOf, firstPresent }))('%s', (name, group) => {
  const of = (...args: unknown[]): unknown => Reflect.apply(group, undefined, args)
  it.each([
    { description: 'an empty list', input: [], expected: '([]): an empty list; pass at least one authenticator' },
    { description: 'an empty record', input: {}, expected: '({}): an empty record; pass at least one authenticator' },
    { description: 'a list in a list', input: [bearer, [key]], expected: '[1] is a list in a list; write one list' },
    { description: 'a list in a record', input: { a: [key] }, expected: '({ a }) is a list in a list' },
    { description: 'a hole', input: [bearer, , key], expected: '[1] is undefined' },
    { description: 'null in a list', input: [null], expected: '[0] is null; null stands alone' },
    { description: 'a key like an integer', input: { 1: bearer }, expected: '({ 1: ... }): a key that looks like' },
    { description: 'a key like an integer behind another', input: { a: key, 20: bearer }, expected: '({ 20: ... })' },
    { description: 'one authenticator', input: bearer, expected: 'takes a list or a record of authenticators' },
    { description: 'null', input: null, expected: 'takes a list or a record of authenticators, not null' },
    { description: 'nothing', input: undefined, expected: 'takes a list or a record of authenticators, not undefined' },
    { description: 'text', input: secret, expected: 'takes a list or a record of authenticators, not a string' },
    { description: 'a set', input: new Set([bearer]), expected: ' takes a plain record' },
  ])('TypeError for $description', ({ input, expected }) => {
    const message = messageOf(() => of(input))
    expect(message).toContain(expected)
    expect(message.startsWith(name)).toBe(true)
    expect(message).not.toContain(secret)
  })
})

describe('a record', () => {
  it('keeps the order of its keys, whatever they are called', () => {
    const asked: string[] = []
    const asking = (id: string) => () => asked.push(id)
    const made = allOf({ zeta: asking('z'), constructor: asking('c'), '01a': asking('0'), toString: asking('t') })
    const expected = { zeta: 1, constructor: 2, '01a': 3, toString: 4 }
    expect(made.evaluate(plainRequest())).toStrictEqual({ _tag: 'Right', right: expected })
    expect(asked).toStrictEqual(['z', 'c', '0', 't'])
  })
})

describe('optional that is not last (issue: last in a list or alone)', () => {
  it.each([
    { description: 'anyOf', input: () => anyOf([perhaps, key]), place: 'anyOf' },
    { description: 'anyOf of a record', input: () => anyOf({ perhaps, key }), place: 'anyOf' },
    { description: 'withAuth of a list', input: () => withAuth([perhaps, key]), place: '' },
    { description: 'also of a list', input: () => also([perhaps, key]), place: '' },
    { description: 'firstPresent', input: () => firstPresent([perhaps, key]), place: 'firstPresent' },
    { description: 'alt', input: () => alt(() => key)(perhaps as never), place: 'alt(...)' },
    { description: 'lenient', input: () => anyOf([lenient(bearer), key]), place: 'anyOf' },
    { description: 'mapped', input: () => anyOf([map((x) => x ?? 'guest')(perhaps), key]), place: 'anyOf' },
    { description: 'in a timeout', input: () => anyOf([timeout(5)(perhaps), key]), place: 'anyOf' },
    { description: 'in a list in the list', input: () => anyOf([anyOf([bearer, perhaps]), key]), place: 'anyOf' },
    { description: 'all of them', input: () => anyOf([allOf([perhaps, lenient(key)]), key]), place: 'anyOf' },
  ])('TypeError for $description', ({ input, place }) => {
    const message = messageOf(input)
    expect(message).toContain(place)
    expect(message).toMatch(/alternative 1 is optional, so those behind it would not be asked; put it last$/)
  })

  it('says which alternative it is', () => {
    expect(messageOf(() => anyOf([bearer, key, perhaps, key]))).toContain('alternative 3 is optional')
  })

  it('stands last in a list, alone, and anywhere in allOf', () => {
    for (const made of [() => anyOf([key, perhaps]), () => anyOf([perhaps]), () => firstPresent({ key, perhaps })]) {
      expect(made).not.toThrow()
    }
    expect(() => allOf([perhaps, key])).not.toThrow()
    expect(() => anyOf([allOf([perhaps, bearer]), key])).not.toThrow()
  })
})

describe('authorize and requireScopes', () => {
  it.each([perhaps, lenient(bearer), anyOf([key, perhaps]), allOf([perhaps, perhaps])])(
    'TypeError over an optional: nobody can be allowed nothing',
    (welcoming) => {
      const message = messageOf(() => authorize(() => true)(welcoming))
      expect(message).toBe('authorize(f)(a): a is optional; write optional(authorize(f)(a))')
      const scoped = requireScopes(['read'], { granted: () => 'read' })
      expect(messageOf(() => scoped(welcoming))).toBe(
        'requireScopes(...)(a): a is optional; write optional(requireScopes(...)(a))',
      )
    },
  )

  it.each([undefined, null, true, secret, Strategy, generator, httpBearer, (_a: 1, _b: 2, _c: 3) => true])(
    'TypeError for authorize(%o)',
    (f) => {
      const message = messageOf(() => authorize(untyped(f)))
      expect(message).toMatch(/^authorize\(f\)/)
      expect(message).not.toContain(secret)
    },
  )

  it.each([[], undefined, null, 'read', new Set(['read']), {}])('TypeError for the scopes %o', (scopes) => {
    const message = messageOf(() => requireScopes(untyped(scopes), { granted: () => 'read' }))
    expect(message).toMatch(/^requireScopes\(\[\.\.\.\], { granted }\): pass a list of one scope at least$/)
  })

  it.each(['', 'a b', 'a"b', 'a\\b', 'é', 'a\n', 1, null, undefined, ['a']])(
    'RFC 6749 §3.3 TypeError for the scope %o',
    (scope) => {
      const message = messageOf(() => requireScopes(['read', untyped(scope)], { granted: () => 'read' }))
      expect(message).toMatch(/scope 2 must be printable ASCII without blanks/)
    },
  )

  it.each([undefined, null, [], () => 'read', {}, { granted: 'read' }, { granted: () => 'read', grant: 1 }])(
    'TypeError for the options %o',
    (options) => {
      expect(messageOf(() => requireScopes(['read'], untyped(options)))).toMatch(/^requireScopes\(\[\.\.\.\], /)
    },
  )
})

describe('timeout', () => {
  it.each([0, -1, NaN, Infinity, 2 ** 31, '5', null, undefined, 5n])('TypeError for %o milliseconds', (ms) => {
    expect(messageOf(() => timeout(untyped(ms)))).toMatch(/^timeout\(ms\) must be a number from 1 to 2147483647, not /)
  })

  it('takes what a timer can wait for', () => {
    for (const ms of [1, 500, 2 ** 31 - 1]) expect(() => timeout(ms)(bearer)).not.toThrow()
  })
})

describe('recoverUnavailable', () => {
  it.each([undefined, null, secret, Strategy, generator, apiKeyHeader, (_a: 1, _b: 2, _c: 3) => true])(
    'TypeError for recoverUnavailable(%o)',
    (f) => expect(messageOf(() => recoverUnavailable(untyped(f)))).toMatch(/^recoverUnavailable\(f\)/),
  )
})

describe('also', () => {
  it.each([
    { description: 'an empty list', input: [], expected: 'also([]): an empty list' },
    { description: 'a list in a list', input: [bearer, [key]], expected: 'also([...])[1] is a list in a list' },
    { description: 'null', input: null, expected: 'also(...) is null' },
    { description: 'a guard', input: withAuth(bearer), expected: 'also(...)' },
  ])('TypeError for $description', ({ input, expected }) => {
    expect(messageOf(() => also(untyped(input)))).toContain(expected)
  })
})
