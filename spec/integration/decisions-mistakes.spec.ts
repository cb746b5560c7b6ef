/** DESIGN's table "Decisions": mistakes in configuration, refused where they are written. Titles begin with the question. */
import Router from '@koa/router'
import {
  altW,
  anyOf,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authSettings,
  describedAs,
  fromFunction,
  httpBasicAuth,
  httpBearer,
  map,
  sessionAuth,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, bearerOf, expectDenied, expectPassed, running } from '../support/behavior.js'

class Strategy {
  authenticate(): boolean {
    return true
  }
}
const good = bearerOf('t')

// What a user of plain JavaScript may pass: the types refuse every one of them
const asAuth = (value: unknown) => value as AuthenticatorLike

const wrong: ReadonlyArray<readonly [what: string, value: unknown, message: RegExp]> = [
  ['an empty list', [], /empty list/],
  ['a list in a list', [good, [good]], /\[1\].*list in a list/],
  ['a list that holds null', [good, null], /\[1\].*null/],
  ['a list that holds undefined', [good, undefined], /\[1\].*undefined/],
  ['a list that holds a hole', Object.assign(new Array(2), { 0: good }), /\[1\].*undefined/],
  ['a list that holds a text', ['Bearer'], /\[0\].*string/],
  ['true', true, /boolean/],
  ['false', false, /boolean/],
  ['0', 0, /number/],
  ['a text', 'bearer', /string/],
  ['an empty text', '', /string/],
  ['an object', { authenticate: () => true }, /object/],
  ['a promise', Promise.resolve(good), /object/],
  ['an instance of a class', new Strategy(), /object/],
  ['a class', Strategy, /class Strategy/],
  ['an un-called factory, httpBearer', httpBearer, /call it: httpBearer/],
  ['an un-called factory, httpBasicAuth', httpBasicAuth, /call it: httpBasicAuth/],
  ['an un-called factory, apiKeyQuery', apiKeyQuery, /call it: apiKeyQuery/],
  ['an un-called factory, sessionAuth', sessionAuth, /call it: sessionAuth/],
  ['an un-called combinator, anyOf', anyOf, /call it: anyOf/],
  ['an un-called combinator in a list', [good, map], /\[1\].*call it: map/],
  ['withAuth itself', withAuth, /call it: withAuth/],
  ['a guard', withAuth(good), /guard/],
  ['a guard in a list', [withAuth(good)], /./],
  ['a function of two parameters', (request: unknown, key: unknown) => [request, key], /2 parameters/],
  ['a generator', function* () {}, /generator/],
  ['an asynchronous generator', async function* () {}, /generator/],
]

test.each(wrong)(
  '`auth: []`, a non-function, ...: withAuth(%s) is a TypeError that says what is wrong',
  (_what, value, message) => {
    const set = () => withAuth(asAuth(value))
    expect(set).toThrow(TypeError)
    expect(set).toThrow(message)
  },
)

test.each(wrong.filter(([, value]) => !Array.isArray(value)))(
  '`auth: []`, a non-function, ...: %s is a TypeError for the combinators, too',
  (_what, value) => {
    for (const set of [
      () => fromFunction(asAuth(value)),
      () => anyOf([good, asAuth(value)]),
      () => anyOf({ good, other: asAuth(value) }),
      () => altW(() => asAuth(value) as typeof good)(good),
      () => describedAs(good)(asAuth(value) as never),
    ]) {
      expect(set).toThrow(TypeError)
    }
  },
)

describe('`withAuth(undefined)`', () => {
  test('`withAuth(undefined)`: TypeError; only a literal null makes something public', () => {
    expect(() => withAuth(asAuth(undefined))).toThrow(TypeError)
    expect(() => withAuth(asAuth(undefined))).toThrow(/null/)
    expect(() => (withAuth as () => unknown)()).toThrow(TypeError)
    expect(() => withAuth(null)).not.toThrow()
  })
})

describe('hooks that cannot work', () => {
  const hooks: ReadonlyArray<readonly [what: string, hook: unknown]> = [
    ['no hook', undefined],
    ['null', null],
    ['a text', 'authenticate'],
    ['a class', Strategy],
    ['a generator', function* () {}],
    ['four parameters', (a: unknown, b: unknown, c: unknown, d: unknown) => [a, b, c, d]],
    ['an un-called factory', httpBearer],
  ]
  test.each(hooks)('a hook: %s is a TypeError that names the kind', (_what, authenticate) => {
    const options = { authenticate } as never
    for (const [name, make] of [
      ['httpBearer', httpBearer],
      ['httpBasicAuth', httpBasicAuth],
      ['apiKeyHeader', apiKeyHeader],
      ['apiKeyQuery', apiKeyQuery],
    ] as const) {
      expect(() => make(options)).toThrow(TypeError)
      expect(() => make(options)).toThrow(new RegExp(name))
    }
    const kind = { challenge: { scheme: 'X', parameters: {} }, ambient: false, extract: () => [] as never }
    expect(() => authenticator({ ...kind, authenticate: authenticate as () => unknown })).toThrow(TypeError)
  })

  test('an unknown option, and no options at all, are a TypeError', () => {
    expect(() => httpBearer({ authenticate: () => true, relam: 'x' } as never)).toThrow(/relam/)
    expect(() => (httpBearer as () => unknown)()).toThrow(TypeError)
    expect(() => authSettings({ crsf: false } as never)).toThrow(/crsf/)
    for (const csrf of ['false', 0, null]) expect(() => authSettings({ csrf } as never)).toThrow(TypeError)
    for (const timeout of [0, -1, NaN, Infinity, '10']) {
      expect(() => authSettings({ timeout } as never)).toThrow(TypeError)
    }
  })
})

test('a mistake that is caught leaves the operations as they were: guarded', async () => {
  const { ask } = await running((app, answering) => {
    const router = withAuth(good)(new Router()).get('/x', answering)
    expect(() => withAuth(asAuth(undefined))(router)).toThrow(TypeError)
    expect(() => router.get('/y', withAuth(asAuth([])), answering)).toThrow(TypeError)
    app.use(router.routes())
  })
  expectPassed(await ask('/x', bearer('t')), { via: 't' })
  expectDenied(await ask('/x'), 401, ['Bearer realm="t"'])
  expect(await ask('/y', bearer('t'))).toMatchObject({ status: 404, seen: [] })
})
