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
import { mockRequest, withBearer, withHeader } from 'koa-with-auth/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { evidenceOf } from '../../src/core/Evidence.js'
import { guess, memory, tagsOf } from '../support/models/guessing.js'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

const keyed = (key: string) => mockRequest(withHeader('X-Key', key))
const bearing = (token = 't') => mockRequest(withBearer(token))

const passwords = (options: { readonly maxAge?: number; readonly size?: number } = {}, isLate = true) => {
  const calls: string[] = []
  const judge = (username: string, password: string) => {
    calls.push(`${username}:${password}`)
    return constantTimeEqual(password, 'good') && { username }
  }
  const verify = (_request: unknown, username: string, password: string) =>
    isLate ? Promise.resolve().then(() => judge(username, password)) : judge(username, password)
  const hook = cached(verify, { maxAge: 1000, ...options })
  return { basic: httpBasicAuth({ authenticate: hook }), calls, hook }
}

describe.each([
  ['late', true],
  ['sync', false],
])('of a hook that is %s', (_how, isLate) => {
  it('M-01 what passed passes again without the hook, until maxAge is over', async () => {
    const { basic, calls } = passwords({}, isLate)
    const ask = async () => E.isRight(await basic.evaluate(guess('anna', 'good')))
    expect([await ask(), await ask()]).toEqual([true, true])
    vi.advanceTimersByTime(999)
    await ask()
    expect(calls).toHaveLength(1)
    vi.advanceTimersByTime(1)
    await ask()
    expect(calls).toHaveLength(2)
  })

  it('M-06 what was refused is verified each time', async () => {
    const { basic, calls } = passwords({}, isLate)
    for (let at = 0; at < 3; at++) expect(E.isLeft(await basic.evaluate(guess('anna', 'bad')))).toBe(true)
    expect(calls).toHaveLength(3)
  })

  it('M-06 an outage and an exception are not kept', async () => {
    const faults = [new UnavailableError('down'), new Error('bug')]
    const verify = (_request: unknown, key: string) => {
      const fault = faults.shift()
      if (fault !== undefined) throw fault
      return { key }
    }
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: cached(verify, { maxAge: 1000 }) })
    expect(await tagsOf(key, keyed('k'), keyed('k'), keyed('k'))).toBe('unavailable raised passed')
  })

  it('M-05 is forgotten by its credential, and by no other', async () => {
    const { basic, calls, hook } = passwords({}, isLate)
    await basic.evaluate(guess('anna', 'good'))
    await basic.evaluate(guess('ben', 'good'))
    hook.forget('anna', 'good')
    await basic.evaluate(guess('anna', 'good'))
    await basic.evaluate(guess('ben', 'good'))
    expect(calls).toEqual(['anna:good', 'ben:good', 'anna:good'])
  })

  it('M-06 keeps `size` credentials, and drops the least recently used', async () => {
    const { basic, calls } = passwords({ size: 2 }, isLate)
    for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) await basic.evaluate(guess(name, 'good'))
    expect(calls.map((call) => call[0])).toEqual(['a', 'b', 'c', 'b'])
  })
})

describe('parallel requests', () => {
  it('M-02 with one credential share one call; with another one they do not', async () => {
    const { basic, calls } = passwords()
    const sent = ['anna', 'anna', 'ben', 'anna'].map((name) => Promise.resolve(basic.evaluate(guess(name, 'good'))))
    const all = await Promise.all(sent)
    expect(all.map((one) => E.isRight(one) && one.right.username)).toEqual(['anna', 'anna', 'ben', 'anna'])
    expect(all.map((one) => evidenceOf(one).isCached)).toEqual([false, true, false, true])
    expect(calls).toHaveLength(2)
  })

  it('M-05 forget: what is under way is not kept, and later requests share a call of their own', async () => {
    const settle: Array<(user: string) => void> = []
    const verify = (_request: unknown, _token: string) => new Promise<string>((resolve) => settle.push(resolve))
    const hook = cached(verify, { maxAge: 1000 })
    const ask = () => Promise.resolve(hook(mockRequest(), 't'))
    const first = ask()
    hook.forget('t')
    const second = ask()
    settle[0]?.('old')
    expect(await first).toStrictEqual(E.right('old'))
    const third = ask()
    settle[1]?.('new')
    expect(await Promise.all([second, third])).toStrictEqual([E.right('new'), E.right('new')])
    expect(settle).toHaveLength(2)
  })

  it('A-43 of calls that do not end, `size` are joined, and no more are kept', () => {
    const asked: string[] = []
    const never = (_request: unknown, token: string) => new Promise<never>(() => void asked.push(token))
    const bearer = httpBearer({ authenticate: cached(never, { maxAge: 60_000, size: 2 }) })
    for (const token of ['a', 'b', 'b', 'c', 'c', 'a']) void bearer.evaluate(bearing(token))
    expect(asked.join()).toBe('a,b,c,a')
  })

  it('M-02 a call that does not end is joined for as long as a decision may take, and not longer', async () => {
    let calls = 0
    const verify = (_request: unknown, _token: string) =>
      calls++ === 0 ? new Promise<never>(() => {}) : { user: 'anna' }
    const bearer = httpBearer({ authenticate: cached(verify, { maxAge: 60_000 }) })
    void bearer.evaluate(bearing())
    vi.advanceTimersByTime(9_999)
    void bearer.evaluate(bearing())
    expect(calls).toBe(1)
    vi.advanceTimersByTime(1)
    expect(await bearer.evaluate(bearing())).toStrictEqual(E.right({ user: 'anna' }))
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
    for (let at = 0; at < 2; at++) expect(await bearer.evaluate(bearing())).toMatchObject(E.right(principal))
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
    const { basic, calls } = passwords()
    let isAllowed = true
    const a = anyOf([apiKeyHeader({ authenticate: () => false }), authorize(() => isAllowed)(basic)])
    expect(E.isRight(await a.evaluate(guess('anna', 'good')))).toBe(true)
    isAllowed = false
    expect(await a.evaluate(guess('anna', 'good'))).toMatchObject({ left: { _tag: 'insufficient' } })
    expect(calls).toHaveLength(1)
  })

  it('M-08 is not what recoverUnavailable has decided, because its function may read the request', async () => {
    let calls = 0
    const down = httpBearer({ authenticate: () => E.left(AuthError.unavailable()) })
    const robust = recoverUnavailable(() => ({ user: `guest ${++calls}` }))(down)
    const hook = cached((request, _token: string) => robust(request), { maxAge: 1000 })
    expect(await hook(bearing(), 't')).toStrictEqual(E.right({ user: 'guest 1' }))
    expect(await hook(bearing(), 't')).toStrictEqual(E.right({ user: 'guest 2' }))
  })

  it('M-06 is at most 1000 credentials, if nothing else is said', async () => {
    const { calls, hook } = passwords({}, false)
    for (let at = 0; at <= 1000; at++) await hook(mockRequest(), `${at}`, 'good')
    await hook(mockRequest(), '0', 'good')
    expect(calls).toHaveLength(1002)
  })

  it('M-07 allows no more guesses under throttled: beyond the limit, the right password is refused, too', async () => {
    const { basic } = passwords()
    const a = throttled({ limiter: memory(2) })(basic)
    const sent = ['good', 'bad', 'bad', 'good'].map((password) => guess('anna', password))
    expect(await tagsOf(a, ...sent)).toBe('passed invalid invalid throttled')
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
