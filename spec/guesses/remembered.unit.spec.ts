/** `remembered`: what is kept, for how long and for whom, and what runs at each request. */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  apiKeyCookie,
  apiKeyHeader,
  AuthError,
  authenticator,
  authorize,
  Challenge,
  httpBasicAuth,
  httpBearer,
  optional,
  remembered,
  sessionAuth,
  type Authenticator,
  sessionAuthIsStaff,
} from 'koa-with-auth'
import { describedAs, firstPresent, fromFunction, lenient, flatMap, timeout } from 'koa-with-auth/fp'
import { option as O } from 'fp-ts'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const bearing = (token: string, more: ReadonlyArray<readonly [string, string]> = []) =>
  mockRequest({ fields: [['Authorization', `Bearer ${token}`], ...more] })

const counted = (answer: (token: string, call: number) => unknown) => {
  const calls: string[] = []
  const bearer = httpBearer({
    authenticate: (_request, token) => {
      calls.push(token)
      return answer(token, calls.length)
    },
  })
  return { bearer, calls }
}
const run = async <P>(a: Authenticator<P>, request = bearing('t')) => a.evaluate(request)
const tagOf = async (a: Authenticator<unknown>, request = bearing('t')) => {
  const result = await run(a, request)
  return E.isLeft(result) ? result.left._tag : 'passed'
}

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('the window', () => {
  it('M-01 a verification is not repeated until maxAge is over, not a millisecond longer', async () => {
    const { bearer, calls } = counted((_token, call) => ({ call }))
    const a = remembered({ maxAge: 60_000 })(bearer)
    expect(await run(a)).toStrictEqual(E.right({ call: 1 }))
    vi.advanceTimersByTime(59_999)
    expect(await run(a)).toStrictEqual(E.right({ call: 1 }))
    vi.advanceTimersByTime(1)
    expect(await run(a)).toStrictEqual(E.right({ call: 2 }))
    expect(calls).toHaveLength(2)
  })

  it('begins when the hook is called, not when it settles', async () => {
    const { bearer, calls } = counted(() => new Promise((resolve) => setTimeout(resolve, 5000, 'anna')))
    const a = remembered({ maxAge: 6000 })(bearer)
    const first = run(a)
    await vi.advanceTimersByTimeAsync(5000)
    await first
    vi.advanceTimersByTime(1000)
    void run(a)
    expect(calls).toHaveLength(2)
  })

  it('M-01 a system clock that is set back changes nothing', async () => {
    const { bearer, calls } = counted(() => 'anna')
    const a = remembered({ maxAge: 60_000 })(bearer)
    await run(a)
    vi.advanceTimersByTime(59_999)
    vi.setSystemTime(500_000)
    await run(a)
    expect(calls).toHaveLength(1)
    vi.advanceTimersByTime(1)
    await run(a)
    expect(calls).toHaveLength(2)
  })

  it('M-01 a machine that slept verifies again: performance.now() stopped, but the system clock did not', async () => {
    const { bearer, calls } = counted(() => 'anna')
    const a = remembered({ maxAge: 60_000 })(bearer)
    await run(a)
    vi.setSystemTime(1_059_999)
    await run(a)
    expect(calls).toHaveLength(1)
    vi.setSystemTime(1_060_000)
    await run(a)
    expect(calls).toHaveLength(2)
  })

  it.each<[description: string, expiresAt: unknown, calls: number]>([
    ['a Date before its end', new Date(1_030_000), 1],
    ['milliseconds before their end', 1_030_000, 1],
    ['a Date that is now', new Date(1_020_000), 2],
    ['milliseconds that are now', 1_020_000, 2],
    ['a Date that was over when it passed', new Date(1), 2],
    ['an invalid Date', new Date(NaN), 2],
    ['NaN', NaN, 2],
    ['a string, whose meaning is unknown', '2999-01-01', 2],
    ['a time far after the window', new Date(9e12), 1],
    ['null, which means never', null, 1],
    ['undefined, which means never', undefined, 1],
  ])('ends no later than the expiresAt of the principal: %s', async (_description, expiresAt, expected) => {
    const { bearer, calls } = counted(() => ({ user: 'anna', expiresAt }))
    const a = remembered({ maxAge: 60_000 })(bearer)
    await run(a)
    vi.advanceTimersByTime(20_000)
    await run(a)
    expect(calls).toHaveLength(expected)
  })
})

describe('remembered results', () => {
  it.each<[tag: string, answer: () => unknown]>([
    ['invalid', () => false],
    ['expired', () => AuthError.expired],
    ['malformed', () => AuthError.malformed],
    ['insufficient', () => AuthError.insufficient()],
    ['unavailable', () => AuthError.unavailable()],
    ['raised', () => Promise.reject(new Error('bug'))],
  ])('are not kept for a failure: %s', async (tag, answer) => {
    const { bearer, calls } = counted((_token, call) => (call === 1 ? answer() : 'anna'))
    const a = remembered({ maxAge: 60_000 })(bearer)
    expect(await tagOf(a)).toBe(tag)
    expect(await tagOf(a)).toBe('passed')
    expect(calls).toHaveLength(2)
  })

  it('are kept by kind and credential: another token, or the same value of another kind, is verified', async () => {
    const asked: string[] = []
    const hook = (kind: string) => (_request: unknown, value: string) => asked.push(`${kind} ${value}`) && { kind }
    const cache = remembered({ maxAge: 60_000 })
    const header = cache(apiKeyHeader({ paramName: 'X-A', authenticate: hook('a') }))
    const other = cache(apiKeyHeader({ paramName: 'X-A', authenticate: hook('b') }))
    const request = (value: string) => mockRequest({ fields: [['X-A', value]] })
    for (const value of ['1', '2', '1', '2']) await run(header, request(value))
    expect(await run(other, request('1'))).toStrictEqual(E.right({ kind: 'b' }))
    expect(asked).toStrictEqual(['a 1', 'a 2', 'b 1'])
  })

  it('are shared by two wrappers of one combinator around the same authenticator', async () => {
    const { bearer, calls } = counted(() => 'anna')
    const cache = remembered({ maxAge: 60_000 })
    await run(cache(bearer))
    await run(cache(bearer))
    expect(calls).toHaveLength(1)
    await run(remembered({ maxAge: 60_000 })(bearer))
    expect(calls).toHaveLength(2)
  })

  it('include the result of map, and another map of the same kind is another verification', async () => {
    const { bearer, calls } = counted((token) => ({ token }))
    const cache = remembered({ maxAge: 60_000 })
    const [plain, mapped] = [cache(bearer), cache(flatMap(() => 'mapped')(bearer))]
    expect(await run(plain)).toStrictEqual(E.right({ token: 't' }))
    expect(await run(mapped)).toStrictEqual(E.right('mapped'))
    expect(await run(plain)).toStrictEqual(E.right({ token: 't' }))
    expect(calls).toHaveLength(2)
  })

  it('M-06 are at most `size`; the last used ones stay', async () => {
    const { bearer, calls } = counted((token) => token)
    const a = remembered({ maxAge: 60_000, size: 2 })(bearer)
    for (const token of ['a', 'b', 'a', 'c']) await run(a, bearing(token))
    expect(calls).toStrictEqual(['a', 'b', 'c'])
    await run(a, bearing('a'))
    expect(calls).toHaveLength(3)
    await run(a, bearing('b'))
    expect(calls).toHaveLength(4)
  })

  it('are not displaced by guesses: 10,000 wrong tokens remove none', async () => {
    const { bearer, calls } = counted((token) => token === 'good' && 'anna')
    const a = remembered({ maxAge: 60_000, size: 1 })(bearer)
    await run(a, bearing('good'))
    for (let at = 0; at < 10_000; at++) await run(a, bearing(`wrong${at}`))
    const before = calls.length
    await run(a, bearing('good'))
    expect(calls).toHaveLength(before)
  })

  it('are sync if the authenticator is', () => {
    const a = remembered({ maxAge: 60_000 })(counted(() => 'anna').bearer)
    expect(a.evaluate(bearing('t'))).toStrictEqual(E.right('anna'))
    expect(a.evaluate(bearing('t'))).toStrictEqual(E.right('anna'))
  })
})

describe('single flight', () => {
  const later = <A>(value: A, ms: number) => new Promise<A>((resolve) => setTimeout(resolve, ms, value))

  it('M-02 parallel requests with one credential call the hook once, and all get its result', async () => {
    const { bearer, calls } = counted((token) => later({ token }, 10))
    const a = remembered({ maxAge: 60_000 })(bearer)
    const all = Array.from({ length: 100 }, () => run(a))
    const other = run(a, bearing('other'))
    await vi.advanceTimersByTimeAsync(10)
    for (const result of await Promise.all(all)) expect(result).toStrictEqual(E.right({ token: 't' }))
    expect(await other).toStrictEqual(E.right({ token: 'other' }))
    expect(calls).toStrictEqual(['t', 'other'])
  })

  it('a failure is shared by parallel requests, and not kept', async () => {
    const { bearer, calls } = counted((_token, call) => later(call === 1 ? false : 'anna', 10))
    const a = remembered({ maxAge: 60_000 })(bearer)
    const both = [tagOf(a), tagOf(a)]
    await vi.advanceTimersByTimeAsync(10)
    expect(await Promise.all(both)).toStrictEqual(['invalid', 'invalid'])
    const third = tagOf(a)
    await vi.advanceTimersByTimeAsync(10)
    expect(await third).toBe('passed')
    expect(calls).toHaveLength(2)
  })

  it('a hook that never settles is awaited until the time limit, then called again', async () => {
    const { bearer, calls } = counted((_token, call) => (call === 1 ? new Promise(() => {}) : 'anna'))
    const a = remembered({ maxAge: 60_000 })(bearer)
    void run(a)
    await vi.advanceTimersByTimeAsync(9999)
    void run(a)
    expect(calls).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await tagOf(a)).toBe('passed')
    expect(calls).toHaveLength(2)
  })

  it('a system clock that is set back does not make a caller wait longer', async () => {
    const { bearer, calls } = counted((_token, call) => (call === 1 ? new Promise(() => {}) : 'anna'))
    const a = remembered({ maxAge: 60_000 })(bearer)
    void run(a)
    vi.advanceTimersByTime(10_000)
    vi.setSystemTime(1_000_000)
    expect(await tagOf(a)).toBe('passed')
    expect(calls).toHaveLength(2)
  })

  it('a verification that has lasted as long as maxAge is not joined, because it may be out of date', async () => {
    const { bearer, calls } = counted((_token, call) => (call === 1 ? later(false, 2000) : 'anna'))
    const a = remembered({ maxAge: 1000 })(bearer)
    const first = tagOf(a)
    await vi.advanceTimersByTimeAsync(999)
    const joined = tagOf(a)
    expect(calls).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(await tagOf(a)).toBe('passed')
    expect(calls).toHaveLength(2)
    await vi.advanceTimersByTimeAsync(1000)
    expect([await first, await joined]).toStrictEqual(['invalid', 'invalid'])
  })
})

describe('forget', () => {
  it('forgets the users that the predicate names, and no others', async () => {
    const { bearer, calls } = counted((token) => ({ user: token }))
    const cache = remembered<{ user: string }>({ maxAge: 60_000 })
    const a = cache(bearer as Authenticator<{ user: string }>)
    for (const token of ['anna', 'ben']) await run(a, bearing(token))
    expect(cache.forget(({ user }) => user === 'anna')).toBe(1)
    for (const token of ['anna', 'ben']) await run(a, bearing(token))
    expect(calls).toStrictEqual(['anna', 'ben', 'anna'])
  })

  it('M-05 reaches verifications under way: the result for the old password is not kept, and not joined', async () => {
    const answers: Array<(user: unknown) => void> = []
    const { bearer, calls } = counted(() => new Promise((resolve) => answers.push(resolve)))
    const cache = remembered({ maxAge: 60_000 })
    const a = cache(bearer)
    const before = tagOf(a)
    cache.forget(() => true)
    const behind = tagOf(a)
    expect(calls).toHaveLength(2)
    answers[0]!('anna')
    answers[1]!(false)
    expect([await before, await behind]).toStrictEqual(['passed', 'invalid'])
    void run(a)
    expect(calls).toHaveLength(3)
  })

  it('forgets all if the predicate throws, also what it could not judge', async () => {
    const { bearer, calls } = counted((token) => token)
    const cache = remembered({ maxAge: 60_000 })
    const a = cache(bearer)
    for (const token of ['a', 'b']) await run(a, bearing(token))
    expect(() =>
      cache.forget((principal) => {
        if (principal === 'b') throw new Error('mine')
        return false
      }),
    ).toThrow('mine')
    for (const token of ['a', 'b']) await run(a, bearing(token))
    expect(calls).toHaveLength(4)
  })
})

describe('M-04 what runs at each request', () => {
  it.each(['around', 'inside'])('authorize, %s', async (where) => {
    const { bearer, calls } = counted(() => ({ user: 'anna' }))
    const asked: string[] = []
    const own = authorize(
      (_principal: { user: string }, request) => asked.push(request.path) > 0 && request.path === '/a',
    )
    const user = bearer as Authenticator<{ user: string }>
    const cache = remembered({ maxAge: 60_000 })
    const a = where === 'around' ? own(cache(user)) : cache(own(user))
    const at = (url: string) => mockRequest({ url, fields: [['Authorization', 'Bearer t']] })
    expect([await tagOf(a, at('/a')), await tagOf(a, at('/b')), await tagOf(a, at('/a'))]).toStrictEqual([
      'passed',
      'insufficient',
      'passed',
    ])
    expect([calls.length, asked]).toStrictEqual([1, ['/a', '/b', '/a']])
  })

  it('CSRF: a request from the same site does not make one from another site pass, and the reverse, also in parallel', async () => {
    let calls = 0
    const cookie = apiKeyCookie({ authenticate: async (_request, key) => (++calls, { key }) })
    const a = remembered({ maxAge: 60_000 })(cookie)
    const from = (site: string) =>
      mockRequest({ method: 'POST', fields: [['Cookie', 'key=k'], ['Host', 'a.example'], ['Sec-Fetch-Site', site]] }) // prettier-ignore
    const forged = tagOf(a, from('cross-site'))
    const own = tagOf(a, from('same-origin'))
    expect([await forged, await own]).toStrictEqual(['forged', 'passed'])
    expect(await tagOf(a, from('cross-site'))).toBe('forged')
    expect(await tagOf(a, from('same-origin'))).toBe('passed')
    // The forged ones call the hook each time, because they never pass
    expect(calls).toBe(3)
  })
})

describe('remembered around a group', () => {
  const kinds = () => {
    const calls: string[] = []
    const kind = (name: string, passes = true) =>
      apiKeyHeader({
        paramName: `X-${name}`,
        authenticate: (_request, key) => {
          calls.push(name)
          return passes && { name, key }
        },
      })
    return { calls, kind }
  }
  const request = mockRequest({ fields: [['X-A', '1'], ['X-B', '2']] }) // prettier-ignore
  const cases: ReadonlyArray<readonly [string, (kind: ReturnType<typeof kinds>['kind']) => Authenticator<unknown>]> = [
    ['anyOf of a list', (kind) => anyOf([kind('A', false), kind('B')])],
    ['anyOf of a record', (kind) => anyOf({ a: kind('A', false), b: kind('B') })],
    ['firstPresent of a record', (kind) => firstPresent({ c: kind('C'), b: kind('B') })],
    ['allOf of a list', (kind) => allOf([kind('A'), kind('B')])],
    ['allOf of a record', (kind) => allOf({ a: kind('A'), b: kind('B') })],
    ['optional', (kind) => optional(kind('B'))],
    ['lenient', (kind) => lenient(kind('B'))],
    ['map of a list', (kind) => flatMap((principal: unknown) => [principal])(anyOf([kind('A', false), kind('B')]))],
    ['timeout of a list', (kind) => timeout(100)(anyOf([kind('A', false), kind('B')]) as Authenticator<unknown>)],
  ]

  it.each(cases)('%s: each kind is remembered separately, and the group decides as before', async (_name, make) => {
    const { calls, kind } = kinds()
    const plain = make(kind)
    const a = remembered({ maxAge: 60_000 })(plain)
    const expected = await run(plain, request)
    const asked = [...calls]
    expect([await run(a, request), await run(a, request)]).toStrictEqual([expected, expected])
    // Once for the plain one, once for the other; a failure calls the hook each time
    const again = asked.filter(
      (name) => name === 'A' && E.isRight(expected) && !JSON.stringify(expected).includes('"A"'),
    )
    expect(calls).toStrictEqual([...asked, ...asked, ...again])
    expect(await run(a, mockRequest())).toStrictEqual(await run(plain, mockRequest()))
  })

  it('an object of principals has several expiresAt, which all count', async () => {
    let calls = 0
    const bearer = httpBearer({ authenticate: () => (++calls, { expiresAt: 1_010_000 }) })
    const a = remembered({ maxAge: 60_000 })(anyOf({ bearer }))
    await run(a)
    vi.advanceTimersByTime(10_000)
    await run(a)
    expect(calls).toBe(2)
  })

  it.each<[string, unknown, RegExp]>([
    ['a plain function', () => true, /a is a plain function.*authenticator\({ extract, \.\.\. }\)/],
    [
      'a list with a plain function',
      anyOf([httpBearer({ authenticate: () => true }), () => true]),
      /a is a plain function/,
    ],
    ['a described plain function', fromFunction(() => true), /a is a plain function/],
    [
      'a list that hides its members',
      describedAs(anyOf([httpBearer({ authenticate: () => 1 }), apiKeyHeader({ authenticate: () => 1 })]))(
        httpBearer({ authenticate: () => 1 }),
      ),
      /hides the authenticators.*put remembered\(\.\.\.\) around each/,
    ],
    ['C-16 a fresh proof', sessionAuth({ proof: { maxAge: 1000 } }), /a proof becomes older/],
    [
      'a fresh proof in a list',
      anyOf([httpBearer({ authenticate: () => 1 }), sessionAuth({ proof: { maxAge: 1000 } })]),
      /a proof becomes older/,
    ],
    [
      'a fresh proof of a right',
      sessionAuthIsStaff({ proof: { maxAge: 1000 }, refuse: 'insufficient' }),
      /a proof becomes older/,
    ],
    ['nothing', undefined, /is undefined/],
    ['null', null, /is null/],
    ['a list', [], /list/],
    [
      'remembered itself, not called',
      remembered({ maxAge: 1 }),
      /is remembered\(\.\.\.\), a condition; write it after/,
    ],
  ])('is a TypeError with the fix for %s', (_name, input, expected) => {
    const attempt = (): unknown => Reflect.apply(remembered({ maxAge: 1 }), undefined, [input])
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(expected)
  })
})

describe('a credential that is not a string', () => {
  const own = (sent: () => unknown) => {
    let calls = 0
    const kind = authenticator({
      challenge: Challenge.make('Own'),
      ambient: false,
      extract: () => O.some(sent()),
      authenticate: () => ({ call: ++calls }),
    })
    return { a: remembered({ maxAge: 60_000 })(kind), calls: () => calls }
  }

  it.each<[string, unknown]>([
    ['true, the same in every request', true],
    ['a Map', new Map([['a', 1]])],
    ['a function', () => 1],
    ['a request', mockRequest()],
    ['a context', mockRequest().ctx],
    ['an object with one inside', { a: new Set() }],
  ])('is a 500 that names the fix if two could look the same: %s', async (_name, sent) => {
    const { a, calls } = own(() => sent)
    const result = await run(a)
    expect(result).toMatchObject(E.left({ _tag: 'raised', error: expect.any(TypeError) }))
    expect(calls()).toBe(0)
  })

  it('is compared by its contents if it is bytes or a plain object', async () => {
    let sent: unknown = Buffer.from([0xff])
    const { a, calls } = own(() => sent)
    for (const next of [
      Buffer.from([0xff]),
      Buffer.from([0xfe]),
      { a: '1' },
      { a: '1' },
      { a: 1 },
      { a: '1', b: null },
    ]) {
      sent = next
      await run(a)
    }
    expect(calls()).toBe(5)
  })

  it('is compared by the data if it is a session', async () => {
    const loaded: unknown[] = []
    const session = (data: object) => ({ ...data, populated: true, toJSON: () => data })
    const user = remembered({ maxAge: 60_000 })(
      sessionAuth({ loadUser: (data) => loaded.push(data['id']) && { username: String(data['id']) } }),
    )
    const of = (id: number) => {
      const request = mockRequest()
      Object.assign(request.ctx, { session: session({ id }), sessionOptions: { key: 's' } })
      request.ctx.app.keys = ['0123456789abcdef0123456789abcdef']
      return request
    }
    for (const id of [1, 1, 2]) expect(await tagOf(user, of(id))).toBe('passed')
    expect(loaded).toStrictEqual([1, 2])
  })
})

describe('options of remembered', () => {
  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /remembered takes an object of options, not undefined/],
    ['no maxAge', {}, /remembered\({ maxAge }\) must be a number/],
    ['maxAge 0', { maxAge: 0 }, /remembered\({ maxAge }\)/],
    ['maxAge as a string', { maxAge: '60s' }, /remembered\({ maxAge }\)/],
    ['an infinite maxAge', { maxAge: Infinity }, /remembered\({ maxAge }\)/],
    ['size 0', { maxAge: 1, size: 0 }, /remembered\({ size }\)/],
    ['an option that does not exist', { maxAge: 1, ttl: 1 }, /no option "ttl"; there are maxAge, size/],
  ])('are a TypeError that names the place for %s', (_name, input, expected) => {
    const attempt = (): unknown => Reflect.apply(remembered, undefined, [input])
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(expected)
  })

  it('forget without a function is a TypeError', () => {
    expect(() => remembered({ maxAge: 1 }).forget('anna' as never)).toThrow(/forget\(predicate\) must be a function/)
  })

  it('has the description of its authenticator', () => {
    const basic = httpBasicAuth({ authenticate: () => true })
    expect(pipe(basic, remembered({ maxAge: 1 })).description).toStrictEqual(basic.description)
  })
})
