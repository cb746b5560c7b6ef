/**
 * A value that is not an authenticator is a TypeError wherever one is expected (decision "bad values of auth"). The
 * message names the place and prints no value.
 */
import * as api from 'koa-with-auth'
import {
  allOf,
  also,
  anyOf,
  apiKeyHeader,
  authorize,
  httpBearer,
  optional,
  owned,
  rateLimit,
  requireScopes,
  unchecked,
  withAuth,
} from 'koa-with-auth'
import {
  altW,
  describedAs,
  firstPresent,
  fromFunction,
  isAuthenticator,
  lenient,
  flatMap,
  map,
  recoverUnavailable,
  timeout,
} from 'koa-with-auth/fp'
import { mcpScopes, requireAuthentication } from 'koa-with-auth/jwt'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { asyncGenerator, generator, messageOf, secret, Strategy, untyped } from '../support/projects/mistakes.js'
import { row } from '../support/models/row.js'

const bearer = httpBearer({ authenticate: () => 'anna' })
const key = apiKeyHeader({ authenticate: () => 'cron' })
const perhaps = optional(bearer)

/** Where an authenticator is expected, and how messages name the place. */
const takers: Readonly<Record<string, { take: (x: unknown) => unknown; place: string }>> = {
  'withAuth(x)': { take: (x) => withAuth(untyped(x)), place: 'withAuth(' },
  'withAuth([a, x])': { take: (x) => withAuth([bearer, untyped(x)]), place: 'withAuth([...])[1]' },
  'anyOf([x])': { take: (x) => anyOf([untyped(x)]), place: 'anyOf([...])[0]' },
  'anyOf({ x })': { take: (x) => anyOf({ a: bearer, x: untyped(x) }), place: 'anyOf({ x })' },
  'allOf([a, x])': { take: (x) => allOf([bearer, untyped(x)]), place: 'allOf([...])[1]' },
  'allOf({ x })': { take: (x) => allOf({ a: bearer, x: untyped(x) }), place: 'allOf({ x })' },
  'firstPresent([x])': { take: (x) => firstPresent([untyped(x)]), place: 'firstPresent([...])[0]' },
  'firstPresent({ x })': { take: (x) => firstPresent({ x: untyped(x) }), place: 'firstPresent({ x })' },
  'altW(() => x)': { take: (x) => altW(() => untyped(x))(bearer), place: 'alt(...)' },
  'altW(() => a)(x)': { take: (x) => altW(() => bearer)(untyped(x)), place: 'alt(...)' },
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
  'map(f)(x)': { take: (x) => map(() => 'anna')(untyped(x)), place: 'map(f)(a)' },
  'flatMap(f)(x)': { take: (x) => flatMap(() => 'anna')(untyped(x)), place: 'flatMap(f)(a)' },
  'also(x)': { take: (x) => also(untyped(x)), place: 'also(...)' },
  'also([a, x])': { take: (x) => also([bearer, untyped(x)]), place: 'also([...])[1]' },
  'fromFunction(x)': { take: (x) => fromFunction(untyped(x)), place: 'fromFunction' },
  'describedAs(x)': { take: (x) => describedAs(untyped(x)), place: 'describedAs(a)' },
  'describedAs(a)(x)': { take: (x) => describedAs(bearer)(untyped(x)), place: 'describedAs(a)(rte)' },
}

/** Values that are not authenticators, and what the message must say. */
const wrong: ReadonlyArray<{ description: string; input: unknown; expected: RegExp }> = [
  row('undefined', undefined, /undefined.*is it imported before it is defined\?/),
  row('a string', secret, /function of the request, not a string/),
  row('an empty string', '', /function of the request, not a string/),
  row('a number', 1, /function of the request, not a number/),
  row('zero', 0, /function of the request, not a number/),
  row('true', true, /function of the request, not a boolean/),
  row('false', false, /function of the request, not a boolean/),
  row('an object', { secret }, /function of the request, not an object/),
  row('an instance', new Strategy(), /function of the request, not an object/),
  row('a Map', new Map([['a', bearer]]), /function of the request, not an object/),
  row('a promise', Promise.resolve(bearer), /function of the request, not an object/),
  row('a class', Strategy, /is the class Strategy; pass a function/),
  row('an anonymous class', class {}, /is the class/),
  row('a generator', generator, /is a generator.*write a plain or an async function/),
  row('an async generator', asyncGenerator, /is a generator/),
  row('a function with two parameters', (_a: unknown, _b: unknown) => true, /takes 2 parameters/),
  ...[
    authorize(() => true),
    requireScopes(['read']),
    requireScopes(['read'], { granted: () => 'read' }),
    owned('note', { param: 'id', find: () => 1 }),
    unchecked('id', 'all members read it'),
    rateLimit({ limiter: new RateLimiterMemory({ points: 1, duration: 1 }), by: () => 'anna' }),
    requireAuthentication({ maxAge: 1000 }),
    mcpScopes({ 'tools/list': { '*': [] } }),
  ].map((input) => ({
    description: 'a condition, whose authenticator is missing',
    input,
    expected: /is (\w+\(\.\.\.\)), a condition; write it after the authenticator: withAuth\(a, \1\)/,
  })),
  row('a guard', withAuth(bearer), /./),
  row('a guard of a public operation', withAuth(null), /./),
]

// Only `withAuth` accepts null and what `also` returns
const wrongButForWithAuth: typeof wrong = [
  row('null', null, /is null/),
  row('the result of also', also(bearer), /function of the request, not an object/),
  row('a list in the list', [bearer], /is a list in a list; write one list/),
]

const takesNull = (name: string) => name === 'withAuth(x)'
const takesList = (name: string) => ['withAuth(x)', 'also(x)'].includes(name)

describe.each(Object.entries(takers))('%s', (name, { take, place }) => {
  const refused = [
    ...wrong,
    ...wrongButForWithAuth.filter(({ input }) => (Array.isArray(input) ? !takesList(name) : !takesNull(name))),
  ]
  it.each(refused)(
    'A-37 is a TypeError that names the place and prints no value: $description',
    ({ input, expected }) => {
      const message = messageOf(() => take(input))
      expect(message).toMatch(expected)
      expect(message).toContain(place)
      expect(message).not.toContain(secret)
    },
  )
})

// Authenticators, and two functions that take one request; they admit no request (mistakes.http.spec.ts)
const takesRequest = ['isAuthenticator', 'defaultErrorMapper']
const others = ['constantTimeEqual', 'onError', 'UnavailableError', 'AuthEndedError']
const functions = Object.entries(api).filter(
  ([name, value]) => typeof value === 'function' && !isAuthenticator(value) && !takesRequest.includes(name),
)

describe('an exported function of this package that was not called', () => {
  it.each(functions)('%s is a TypeError wherever an authenticator is expected', (name, f) => {
    const called = name === 'alt' ? 'altW' : name
    const expected = others.includes(name) ? /./ : new RegExp(`is ${called} itself; call it: ${called}\\(`)
    for (const { take, place } of Object.values(takers)) {
      const message = messageOf(() => take(f))
      expect(message).toMatch(expected)
      expect(message).toContain(place)
    }
    if (others.includes(name)) return
    expect(messageOf(() => httpBearer({ authenticate: untyped(f) }))).toContain('httpBearer({ authenticate })')
  })
})

describe.each(Object.entries({ allOf, anyOf, firstPresent }))('%s', (name, group) => {
  const of = (...args: unknown[]): unknown => Reflect.apply(group, undefined, args)
  it.each([
    row('an empty list', [], '([]): an empty list; pass at least one authenticator'),
    row('an empty object', {}, '({}): an empty object; pass at least one authenticator'),
    row('a list in an object', { a: [key] }, '({ a }) is a list in a list'),
    row('a hole', [bearer, , key], '[1] is undefined'),
    row('an integer key', { 1: bearer }, '({ 1: ... }): the key looks like'),
    row('an integer key after another', { a: key, 20: bearer }, '({ 20: ... })'),
    row('one authenticator', bearer, 'takes a list or an object of authenticators'),
    row('null', null, 'takes a list or an object of authenticators, not null'),
    row('nothing', undefined, 'takes a list or an object of authenticators, not undefined'),
    row('a string', secret, 'takes a list or an object of authenticators, not a string'),
    row('a Set', new Set([bearer]), ' takes a plain object'),
    row('a Map', new Map([['a', bearer]]), ' takes a plain object'),
  ])('is a TypeError for $description', ({ input, expected }) => {
    const message = messageOf(() => of(input))
    expect(message).toContain(expected)
    expect(message.startsWith(name)).toBe(true)
    expect(message).not.toContain(secret)
  })
})

describe('decision "withAuth(undefined)" withAuth and also', () => {
  it.each([
    row('withAuth([])', () => withAuth(untyped([])), /^withAuth\(\[\]\): an empty list/),
    row('withAuth([a, []])', () => withAuth(untyped([bearer, []])), /\[1\] is a list in a/),
    row('withAuth of a hole', () => withAuth(untyped([bearer, , key])), /\[1\] is undefined/),
    row('withAuth of an object', () => withAuth(untyped({ a: bearer })), /not an object/),
    row('withAuth(undefined)', () => withAuth(untyped(undefined)), /literal null/),
    row('withAuth()', () => (withAuth as () => unknown)(), /literal null/),
    row('withAuth(withAuth(a))', () => withAuth(untyped(withAuth(bearer))), /guard already/),
    row('also([])', () => also(untyped([])), /^also\(\[\]\): an empty list/),
  ])('are a TypeError for $description', ({ input, expected }) => {
    expect(messageOf(input)).toMatch(expected)
  })

  it('accept null, and nothing else, as public', () => {
    expect(() => withAuth(null)).not.toThrow()
  })
})

describe('an optional alternative that is not last', () => {
  it.each([
    { description: 'anyOf', input: () => anyOf([perhaps, key]), place: 'anyOf' },
    { description: 'anyOf of an object', input: () => anyOf({ perhaps, key }), place: 'anyOf' },
    { description: 'withAuth of a list', input: () => withAuth([perhaps, key]), place: '' },
    { description: 'also of a list', input: () => also([perhaps, key]), place: '' },
    { description: 'firstPresent', input: () => firstPresent([perhaps, key]), place: 'firstPresent' },
    { description: 'alt', input: () => altW(() => key)(untyped(perhaps)), place: 'alt(...)' },
    { description: 'lenient', input: () => anyOf([lenient(bearer), key]), place: 'anyOf' },
    { description: 'mapped', input: () => anyOf([flatMap((x) => x ?? 'guest')(perhaps), key]), place: 'anyOf' },
    { description: 'in a timeout', input: () => anyOf([timeout(5)(perhaps), key]), place: 'anyOf' },
    { description: 'in a list in the list', input: () => anyOf([anyOf([bearer, perhaps]), key]), place: 'anyOf' },
    { description: 'all of them', input: () => anyOf([allOf([perhaps, lenient(key)]), key]), place: 'anyOf' },
  ])('is a TypeError: $description', ({ input, place }) => {
    const message = messageOf(input)
    expect(message).toContain(place)
    expect(message).toMatch(/alternative 1 is optional, /)
  })

  it('is named by its number in the message', () => {
    expect(messageOf(() => anyOf([bearer, key, perhaps, key]))).toContain('alternative 3 is optional')
  })

  it('is allowed last in a list, alone, and anywhere in allOf', () => {
    for (const made of [() => anyOf([key, perhaps]), () => anyOf([perhaps]), () => firstPresent({ key, perhaps })]) {
      expect(made).not.toThrow()
    }
    expect(() => allOf([perhaps, key])).not.toThrow()
    expect(() => anyOf([allOf([perhaps, bearer]), key])).not.toThrow()
  })
})

it.each([5, null, undefined, ['id'], {}])('unchecked(%j, reason) is a TypeError', (param) => {
  expect(messageOf(() => unchecked(untyped(param), 'all members read it'))).toMatch(
    /^unchecked\(param\) must be the name/,
  )
})
