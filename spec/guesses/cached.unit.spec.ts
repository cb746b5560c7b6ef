/** `cached` keeps what a hook let in, by the credential alone, for a time; never what it refused. */
import { either as E } from 'fp-ts'
import {
  anyOf,
  apiKeyHeader,
  AuthError,
  authorize,
  cached,
  constantTimeEqual,
  httpBasicAuth,
  httpBearer,
  throttled,
  UnavailableError,
} from 'koa-with-auth'
import { recoverUnavailable } from 'koa-with-auth/fp'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { evidenceOf } from '../../src/core/Evidence.js'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

const basicOf = (username: string, password: string) =>
  mockRequest({ fields: [['Authorization', `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`]] })

const keyed = (key: string) => mockRequest({ fields: [['X-Key', key]] })

const passwords = (options: { readonly maxAge: number; readonly size?: number }, isLate = true) => {
  const calls: string[] = []
  const judge = (username: string, password: string) => {
    calls.push(`${username}:${password}`)
    return constantTimeEqual(password, 'good') && { username }
  }
  const verify = (_request: unknown, username: string, password: string) =>
    isLate ? Promise.resolve().then(() => judge(username, password)) : judge(username, password)
  const hook = cached(verify, options)
  return { basic: httpBasicAuth({ authenticate: hook }), calls, hook }
}

describe.each([
  ['late', true],
  ['sync', false],
])('of a hook that is %s', (_how, isLate) => {
  it('M-01 what passed passes again without the hook, until maxAge is over', async () => {
    const { basic, calls } = passwords({ maxAge: 1000 }, isLate)
    const ask = async () => E.isRight(await basic.evaluate(basicOf('anna', 'good')))
    expect([await ask(), await ask()]).toEqual([true, true])
    vi.advanceTimersByTime(999)
    await ask()
    expect(calls).toHaveLength(1)
    vi.advanceTimersByTime(1)
    await ask()
    expect(calls).toHaveLength(2)
  })

  it('M-06 what was refused is verified each time', async () => {
    const { basic, calls } = passwords({ maxAge: 1000 }, isLate)
    for (let at = 0; at < 3; at++) expect(E.isLeft(await basic.evaluate(basicOf('anna', 'bad')))).toBe(true)
    expect(calls).toHaveLength(3)
  })

  it('M-06 an outage and an exception are not kept', async () => {
    let fault: Error | undefined = new UnavailableError('down')
    const key = apiKeyHeader({
      paramName: 'X-Key',
      authenticate: cached(
        (_request, key: string) => {
          if (fault !== undefined) throw fault
          return { key }
        },
        { maxAge: 1000 },
      ),
    })
    expect(await key.evaluate(keyed('k'))).toMatchObject({ left: { _tag: 'unavailable' } })
    fault = new Error('bug')
    expect(await key.evaluate(keyed('k'))).toMatchObject({ left: { _tag: 'raised' } })
    fault = undefined
    expect(await key.evaluate(keyed('k'))).toStrictEqual(E.right({ key: 'k' }))
  })

  it('M-05 is forgotten by its credential, and by no other', async () => {
    const { basic, calls, hook } = passwords({ maxAge: 1000 }, isLate)
    await basic.evaluate(basicOf('anna', 'good'))
    await basic.evaluate(basicOf('ben', 'good'))
    hook.forget('anna', 'good')
    await basic.evaluate(basicOf('anna', 'good'))
    await basic.evaluate(basicOf('ben', 'good'))
    expect(calls).toEqual(['anna:good', 'ben:good', 'anna:good'])
  })

  it('M-06 keeps `size` credentials, and drops the least recently used', async () => {
    const { basic, calls } = passwords({ maxAge: 1000, size: 2 }, isLate)
    for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await basic.evaluate(basicOf(name, 'good'))
    expect(calls.map((call) => call[0])).toEqual(['a', 'b', 'c', 'b'])
  })
})

describe('parallel requests', () => {
  it('M-02 with one credential share one call; with another one they do not', async () => {
    const { basic, calls } = passwords({ maxAge: 1000 })
    const sent = ['anna', 'anna', 'ben', 'anna'].map((name) => Promise.resolve(basic.evaluate(basicOf(name, 'good'))))
    const all = await Promise.all(sent)
    expect(all.map((one) => E.isRight(one) && one.right.username)).toEqual(['anna', 'anna', 'ben', 'anna'])
    expect(calls).toHaveLength(2)
  })

  it('M-05 forget: what is under way is not kept', async () => {
    const { basic, calls, hook } = passwords({ maxAge: 1000 })
    const first = basic.evaluate(basicOf('anna', 'good'))
    hook.forget('anna', 'good')
    await first
    await basic.evaluate(basicOf('anna', 'good'))
    expect(calls).toHaveLength(2)
  })

  it('A-43 of calls that do not end, `size` are joined, and no more are kept', () => {
    const asked: string[] = []
    const never = (_request: unknown, token: string) => new Promise<never>(() => void asked.push(token))
    const bearer = httpBearer({ authenticate: cached(never, { maxAge: 60_000, size: 2 }) })
    for (const token of ['a', 'b', 'b', 'c', 'c', 'a'])
      void bearer.evaluate(mockRequest({ fields: [['Authorization', `Bearer ${token}`]] }))
    expect(asked.join()).toBe('a,b,c,a')
  })

  it('M-02 a call that does not end is joined for as long as a decision may take, and not longer', async () => {
    let calls = 0
    const verify = (_request: unknown, _token: string) =>
      calls++ === 0 ? new Promise<never>(() => {}) : { user: 'anna' }
    const bearer = httpBearer({ authenticate: cached(verify, { maxAge: 60_000 }) })
    const request = () => mockRequest({ fields: [['Authorization', 'Bearer t']] })
    void bearer.evaluate(request())
    vi.advanceTimersByTime(9_999)
    void bearer.evaluate(request())
    expect(calls).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await bearer.evaluate(request())).toStrictEqual(E.right({ user: 'anna' }))
  })
})

describe('a credential', () => {
  it('M-03 is told apart from every other one, however its parts are cut', async () => {
    const pairs: ReadonlyArray<readonly [string, string]> = [
      ['a', 'bc'],
      ['ab', 'c'],
      ['a","b', 'c'],
      ['\ud800', ''],
      ['\ud801', ''],
    ]
    const hook = cached((_request, one: string, other: string) => ({ one, other }), { maxAge: 1000 })
    for (const pair of [...pairs, ...pairs]) {
      expect(await hook(mockRequest(), ...pair)).toStrictEqual(E.right({ one: pair[0], other: pair[1] }))
    }
  })

  it.each([[new Map()], [() => 'a'], [Symbol('a')], [undefined], [NaN], [10n], [new Date()], [{ a: new Set() }]])(
    'that is %o is an exception that names the fix',
    (value) => {
      const hook = cached((_request, sent: unknown) => ({ sent }), { maxAge: 1000 })
      expect(() => hook(mockRequest(), value)).toThrow(/must be text or plain data/)
    },
  )

  it('may be plain data', async () => {
    let calls = 0
    const hook = cached((_request, sent: { readonly a: unknown }) => ({ sent, calls: ++calls }), { maxAge: 1000 })
    for (const a of [1, [null, true], { b: 'c' }]) await hook(mockRequest(), { a })
    for (const a of [1, [null, true], { b: 'c' }]) await hook(mockRequest(), { a })
    expect(calls).toBe(3)
  })
})

describe('what was kept', () => {
  it('M-01 C-16 ends with the expiresAt of its principal, a Date or milliseconds; one of another type is not kept', async () => {
    let calls = 0
    const soon = { date: () => new Date(1_000_500), number: () => 1_000_500, text: () => '1970', none: () => undefined }
    const hook = cached((_request, kind: keyof typeof soon) => ({ calls: ++calls, expiresAt: soon[kind]() }), {
      maxAge: 60_000,
    })
    const counted = async (kind: keyof typeof soon) => {
      const before = calls
      await hook(mockRequest(), kind)
      return calls - before
    }
    for (const kind of ['date', 'number'] as const) {
      expect([await counted(kind), await counted(kind)]).toEqual([1, 0])
    }
    expect([await counted('text'), await counted('text'), await counted('none'), await counted('none')]).toEqual([
      1, 1, 1, 0,
    ])
    vi.advanceTimersByTime(500)
    expect([await counted('date'), await counted('none')]).toEqual([1, 0])
  })

  it.each([['anna'], [7], [true], [Symbol('anna')]])('is whatever the hook lets in, such as %s', async (principal) => {
    let calls = 0
    const authenticate = cached((_request, _token: string) => (calls++, principal), { maxAge: 1000 })
    const bearer = httpBearer({ authenticate })
    const request = () => mockRequest({ fields: [['Authorization', 'Bearer x']] })
    for (let at = 0; at < 2; at++) expect(await bearer.evaluate(request())).toMatchObject(E.right(principal))
    expect(calls).toBe(1)
  })

  it('says so, and still ends as the key that the hook has asked', async () => {
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const { key } = await keys.issue({ owner: 'anna' })
    const authenticate = cached(
      async (request, sent: string) => {
        const found = await keys.authenticate(request, sent)
        return E.isRight(found) && { user: found.right.owner }
      },
      { maxAge: 60_000 },
    )
    const once = await authenticate(mockRequest(), key)
    const again = await authenticate(mockRequest(), key)
    expect([once, again]).toStrictEqual([E.right({ user: 'anna' }), E.right({ user: 'anna' })])
    expect([evidenceOf(once).isCached, evidenceOf(again).isCached]).toEqual([false, true])
  })

  it('M-04 passes through lists and conditions, which decide each time', async () => {
    const { basic, calls } = passwords({ maxAge: 1000 })
    let isAllowed = true
    const a = anyOf([apiKeyHeader({ authenticate: () => false }), authorize(() => isAllowed)(basic)])
    expect(E.isRight(await a.evaluate(basicOf('anna', 'good')))).toBe(true)
    isAllowed = false
    expect(await a.evaluate(basicOf('anna', 'good'))).toMatchObject({ left: { _tag: 'insufficient' } })
    expect(calls).toHaveLength(1)
  })

  it('M-08 is not what recoverUnavailable has decided, because its function may read the request', async () => {
    let calls = 0
    const down = httpBearer({ authenticate: () => E.left(AuthError.unavailable()) })
    const robust = recoverUnavailable(() => ({ user: `guest ${++calls}` }))(down)
    const hook = cached((request, _token: string) => robust(request), { maxAge: 1000 })
    const request = () => mockRequest({ fields: [['Authorization', 'Bearer t']] })
    expect(await hook(request(), 't')).toStrictEqual(E.right({ user: 'guest 1' }))
    expect(await hook(request(), 't')).toStrictEqual(E.right({ user: 'guest 2' }))
  })

  it('M-06 is at most 1000 credentials, if nothing else is said', async () => {
    const { calls, hook } = passwords({ maxAge: 1000 }, false)
    for (let at = 0; at <= 1000; at++) await hook(mockRequest(), `${at}`, 'good')
    await hook(mockRequest(), '0', 'good')
    expect(calls).toHaveLength(1002)
  })

  it('M-07 allows no more guesses under throttled: beyond the limit, the right password is refused, too', async () => {
    const { basic } = passwords({ maxAge: 60_000 })
    const a = throttled({ limiter: new RateLimiterMemory({ points: 2, duration: 60 }) })(basic)
    const tags: string[] = []
    for (const password of ['good', 'bad', 'bad', 'good']) {
      const result = await a.evaluate(basicOf('anna', password))
      tags.push(E.isRight(result) ? 'passed' : result.left._tag)
    }
    expect(tags).toEqual(['passed', 'invalid', 'invalid', 'throttled'])
  })
})

describe('what cannot work is a TypeError', () => {
  const verify = () => true
  it.each([
    ['no function', undefined, { maxAge: 1 }, /^cached\(verify, options\) must be a function/],
    ['a window of 0', verify, { maxAge: 0 }, /maxAge/],
    ['a size of 0', verify, { maxAge: 1, size: 0 }, /size/],
  ])('%s', (_what, hook, options, message) => {
    // Safe: the types refuse them
    expect(() => cached(hook as never, options as never)).toThrow(message)
    expect(() => cached(hook as never, options as never)).toThrow(TypeError)
  })
})
