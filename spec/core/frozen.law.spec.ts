/**
 * R15: what all requests share is read-only: each exported constant, and each result that an authenticator, a
 * combinator or the default mapper returns several times.
 */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import * as t from 'io-ts'
import * as root from 'koa-with-auth'
import {
  allOf,
  also,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  authenticator,
  authorize,
  authSettings,
  Challenge,
  defaultErrorMapper,
  httpBasicAuth,
  httpBearer,
  optional,
  requireScopes,
  sessionAuth,
  withAuth,
  type Authenticator,
  type ErrorMapper,
} from 'koa-with-auth'
import {
  altW,
  describedAs,
  firstPresent,
  fromFunction,
  lenient,
  flatMap,
  recoverUnavailable,
  timeout,
} from 'koa-with-auth/fp'
import * as auditing from 'koa-with-auth/audit'
import * as signing from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import * as is from '../../src/core/checks.js'
import { checkOptions } from '../../src/core/options.js'

/** The paths below a value that could be changed. */
const writable = (value: unknown, at: string, seen = new Set<unknown>()): ReadonlyArray<string> => {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return []
  seen.add(value)
  // The contents of io-ts's own codecs belong to io-ts; ours cannot be replaced
  const own = value instanceof t.Type ? [] : Reflect.ownKeys(value)
  const below = own.flatMap((key) => {
    const property = Object.getOwnPropertyDescriptor(value, key)
    return property !== undefined && 'value' in property && key !== 'prototype'
      ? writable(property.value, `${at}.${String(key)}`, seen)
      : []
  })
  // A function is called, not read; its properties are checked below
  const isOpen = typeof value === 'object' && !isNamespace(value) && !Object.isFrozen(value)
  return [...(isOpen ? [at] : []), ...below]
}

/** The properties of a function that another value can replace, and the records in them that can be changed. */
const replaceable = (f: object): ReadonlyArray<unknown> =>
  Reflect.ownKeys(f).filter((key) => {
    const { value, writable: isWritable, get } = Object.getOwnPropertyDescriptor(f, key)!
    if (get !== undefined || key === 'name' || key === 'length') return false
    return isWritable === true || (typeof value === 'object' && !Object.isFrozen(value))
  })

// Nothing can assign to the exports of a module
const isNamespace = (value: object): boolean => Object.prototype.toString.call(value) === '[object Module]'

describe('exports', () => {
  it.each([
    ['koa-with-auth', root],
    ['koa-with-auth/audit', auditing],
    ['koa-with-auth/sessions', signing],
  ])('%s: no constant can be changed', (name, entry) => {
    expect(Object.keys(entry)).not.toStrictEqual([])
    expect(writable(entry, name)).toStrictEqual([])
  })

  it('the law finds what can be changed', () => {
    const planted = { a: Object.freeze({ b: { c: 1 } }), f: Object.assign(() => 1, { d: [] }) }
    expect(writable(planted, 'x')).toStrictEqual(['x', 'x.a.b', 'x.f.d'])
  })
})

const authenticate = (_request: unknown, key: string): unknown => key === 'k1' && { client: 'Acme' }
const bearer = httpBearer({ authenticate: () => E.left(AuthError.expired) })
const key = apiKeyHeader({ authenticate })
const written = authenticator({
  scheme: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: '/token', scopes: { read: 'reads' } } } },
  challenge: (error) => ({ scheme: 'Own', parameters: { why: error._tag } }),
  ambient: false,
  extract: () => E.right('x') && { _tag: 'Some' as const, value: 'x' },
  authenticate: () => false,
})
const passing = fromFunction(() => ({ scope: 'read' }))

const authenticators: Readonly<Record<string, Authenticator<unknown>>> = {
  bearer,
  key,
  written,
  basic: httpBasicAuth({ authenticate: () => false }),
  query: apiKeyQuery({ authenticate }),
  cookie: apiKeyCookie({ authenticate }),
  session: sessionAuth(),
  custom: fromFunction(() => false),
  allOf: allOf({ key, bearer }),
  anyOf: anyOf([key, bearer]),
  tagged: anyOf({ key, bearer }),
  altW: altW(() => optional(bearer))(key),
  firstPresent: firstPresent([bearer, key]),
  optional: optional(bearer),
  lenient: lenient(bearer),
  map: flatMap(() => false)(bearer),
  authorize: authorize(() => false)(passing),
  scopedKey: pipe(bearer, requireScopes(['admin'], { granted: () => ['admin'] })),
  requireScopes: pipe(passing, requireScopes(['admin'], { granted: ({ scope }) => scope })),
  timeout: pipe(bearer, timeout(5)),
  recoverUnavailable: recoverUnavailable(() => false)(bearer),
  describedAs: describedAs(bearer)(bearer),
  also: also(bearer).authenticators[0] ?? bearer,
}

const sending = (...fields: ReadonlyArray<readonly [string, string]>) => mockRequest({ method: 'POST', fields })
const requests = {
  bare: mockRequest(),
  key: sending(['key', 'wrong']),
  twice: sending(['key', 'a'], ['key', 'b']),
  token: sending(['Authorization', 'Bearer t']),
  basic: sending(['Authorization', 'Basic x']),
  forged: sending(['Cookie', 'key=k1'], ['Sec-Fetch-Site', 'cross-site']),
}

describe('authenticators', () => {
  it.each(Object.entries(authenticators))('%s: its description cannot be changed', (name, { description }) => {
    expect(writable(description, name)).toStrictEqual([])
  })

  // the policy file says what was passed, so nothing may decide instead of it afterwards
  it.each(Object.entries(authenticators))('R24 %s: nothing replaces its decision', (_, one) => {
    expect(replaceable(one)).toStrictEqual([])
  })

  it.each([withAuth(bearer), withAuth(null), authSettings({})])('R24 a guard and settings keep their demands', (f) => {
    expect(replaceable(f)).toStrictEqual([])
  })

  it('R24 a change of the options that were passed changes nothing; what has methods stays itself', () => {
    const passed = { list: ['a'], proof: { methods: ['x'], maxAge: 1 }, store: { get: () => 1 } }
    const taken = checkOptions('f', passed, { list: is.list, proof: is.record, store: is.record })
    passed.list.push('b')
    passed.proof.methods.push('y')
    passed.proof.maxAge = 2
    expect(taken).toEqual({ list: ['a'], proof: { methods: ['x'], maxAge: 1 }, store: expect.anything() })
    expect(taken.store).toBe(passed.store)
  })

  const asked = Object.entries(authenticators).flatMap(([name, one]) =>
    Object.entries(requests).map(([sent, request]) => [name, sent, one, request] as const),
  )
  it.each(asked)('%s, %s: a result returned twice cannot be changed', async (name, sent, { evaluate }, request) => {
    const first = await evaluate(request)
    const second = await evaluate(request)
    const shared = reachable(second).filter((part) => reachable(first).includes(part))
    expect(shared.flatMap((part) => writable(part, `${name} ${sent}`))).toStrictEqual([])
  })
})

/** Every object below a value. */
const reachable = (value: unknown, seen = new Set<unknown>()): ReadonlyArray<unknown> => {
  if (typeof value !== 'object' || value === null || value instanceof Error || seen.has(value)) return []
  seen.add(value)
  return [value, ...Object.values(value).flatMap((one) => reachable(one, seen))]
}

describe('values that are returned several times cannot be changed', () => {
  const failures = [
    AuthError.absent,
    AuthError.malformed,
    AuthError.invalid,
    AuthError.expired,
    AuthError.forged,
    AuthError.insufficient(),
    AuthError.insufficient(['read']),
    AuthError.unavailable(),
    AuthError.unavailable(3),
    AuthError.throttled(),
    AuthError.throttled(3),
  ]
  const answered = (mapper: ErrorMapper) => failures.map((error) => mapper(error, requests.bare))

  it('failures', () => {
    expect(writable(Object.freeze(failures), 'failures')).toStrictEqual([])
    const scope = ['read']
    expect(AuthError.insufficient(scope)).toStrictEqual({ _tag: 'insufficient', scope })
    expect(Object.isFrozen(scope)).toBe(false)
  })

  it('responses of the default mapper', () => {
    const again = answered(defaultErrorMapper)
    const shared = answered(defaultErrorMapper).flatMap((one) => (again.includes(one) ? [one] : []))
    expect(shared).toHaveLength(7)
    expect(writable(Object.freeze(shared), 'answers')).toStrictEqual([])
  })

  it('challenges', () => {
    const parameters = { a: '1' }
    expect(writable(Challenge.make('Own', parameters), 'challenge')).toStrictEqual([])
    expect(Object.isFrozen(parameters)).toBe(false)
  })

  it('the failure after a time limit', async () => {
    const slow = timeout(1)(fromFunction(() => new Promise<never>(() => {})))
    expect(writable(await slow.evaluate(mockRequest()), 'too slow')).toStrictEqual([])
  })
})
