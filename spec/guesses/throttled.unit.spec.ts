/**
 * `throttled`: what counts as a guess, under which key, what is given back, and what happens beyond the limit or if the
 * store fails.
 */
import { createHash } from 'node:crypto'
import { runInNewContext } from 'node:vm'
import { either as E } from 'fp-ts'
import * as t from 'io-ts'
import {
  anyOf,
  apiKeyHeader,
  AuthError,
  authenticator,
  Challenge,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  throttled,
  UnavailableError,
  type Authenticator,
  type Limiter,
  type ThrottledOptions,
} from 'koa-with-auth'
import { type BasicCredentials } from 'koa-with-auth/fp'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'

const from = (address: string, ...fields: ReadonlyArray<readonly [string, string]>) => {
  const request = mockRequest({ fields })
  Object.defineProperty(request.req.socket, 'remoteAddress', { value: address, configurable: true })
  return request
}
const basicOf = (user: string, password: string) =>
  ['Authorization', `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`] as const
const guess = (user: string, password = 'wrong', address = '192.0.2.1') => from(address, basicOf(user, password))

const basicWith = (answer: (password: string, username: string) => unknown) => {
  const calls: string[] = []
  const basic = httpBasicAuth({
    authenticate: (_request, username, password) => {
      calls.push(`${username} ${password}`)
      return answer(password, username)
    },
  })
  return { basic, calls }
}
const passwords = () => basicWith((password, username) => password === 'good' && { username })
const memory = (points: number, duration = 60) => new RateLimiterMemory({ points, duration })
const tagOf = async (a: Authenticator<unknown>, request: Parameters<typeof a.evaluate>[0]) => {
  const result = await a.evaluate(request)
  return E.isLeft(result) ? result.left._tag : 'passed'
}
const tags = async (a: Authenticator<unknown>, ...requests: ReadonlyArray<Parameters<typeof a.evaluate>[0]>) => {
  const all: string[] = []
  for (const request of requests) all.push(await tagOf(a, request))
  return all.join(' ')
}
const times = <A>(count: number, of: (at: number) => A): A[] => Array.from({ length: count }, (_, at) => of(at))

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('guesses of throttled', () => {
  it('up to the limit reach the hook; beyond it no hook is called, and Retry-After has the time', async () => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: memory(3) })(basic)
    expect(await tags(a, ...times(3, () => guess('anna')))).toBe('invalid invalid invalid')
    vi.advanceTimersByTime(20_000)
    const result = await a.evaluate(guess('anna', 'good'))
    expect(result).toMatchObject(E.left({ _tag: 'throttled', retryAfter: 40 }))
    expect(calls).toHaveLength(3)
    vi.advanceTimersByTime(41_000)
    expect(await tagOf(a, guess('anna', 'good'))).toBe('passed')
  })

  it.each<[tag: string, answer: () => unknown]>([
    ['passed', () => 'anna'],
    ['absent', () => AuthError.absent],
    ['expired', () => AuthError.expired],
    ['insufficient', () => AuthError.insufficient()],
    ['unavailable', () => AuthError.unavailable()],
    ['unavailable', () => Promise.reject(new UnavailableError('down'))],
    ['raised', () => Promise.reject(new Error('bug'))],
    ['throttled', () => AuthError.throttled(1)],
  ])('are given back if the result is not a refusal: %s', async (tag, answer) => {
    const a = throttled({ limiter: memory(1) })(basicWith(answer).basic)
    expect(await tags(a, ...times(5, () => guess('anna')))).toBe(Array(5).fill(tag).join(' '))
  })

  it('T-12 are not counted for a write from another site, because it would lock out the visitor; the hook is not called', async () => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: memory(1) })(basic)
    const forged = (password: string) => {
      const request = mockRequest({
        method: 'POST',
        fields: [['Host', 'a.example'], ['Sec-Fetch-Site', 'cross-site'], basicOf('anna', password)], // prettier-ignore
      })
      return request
    }
    // A wrong and a good credential get the same response, so nothing is learned without a count
    expect(await tags(a, forged('wrong'), forged('good'), forged('wrong'))).toBe('forged forged forged')
    expect(calls).toStrictEqual([])
    expect(await tagOf(a, mockRequest({ fields: [basicOf('anna', 'good')] }))).toBe('passed')
  })

  it.each<[tag: string, answer: () => unknown]>([
    ['invalid', () => false],
    ['malformed', () => AuthError.malformed],
  ])('are counted if the hook returns %s', async (tag, answer) => {
    const a = throttled({ limiter: memory(1) })(basicWith(answer).basic)
    expect(await tags(a, guess('anna'), guess('anna'))).toBe(`${tag} throttled`)
  })

  it('are counted if one kind of a list refuses, even if the failure of another kind is stronger', async () => {
    const list = E.left({ ...AuthError.expired, branches: [AuthError.invalid, AuthError.expired] })
    const a = throttled({ limiter: memory(1) })(basicWith(() => list).basic)
    expect(await tags(a, guess('anna'), guess('anna'))).toBe('expired throttled')
  })

  it('T-02 are not reset by a success', async () => {
    const a = throttled({ limiter: memory(3) })(passwords().basic)
    expect(
      await tags(a, guess('anna'), guess('anna'), guess('anna', 'good'), guess('anna'), guess('anna', 'good')),
    ).toBe('invalid invalid passed invalid throttled')
  })

  it.each([
    ['back', 1],
    ['forward', 9e12],
  ])('are neither lost nor free if the system clock is set %s', async (_way, date) => {
    const rewarded: string[] = []
    const limiter = {
      consume: async () => ({ msBeforeNext: 60_000 }),
      reward: async (key: string) => void rewarded.push(key),
    }
    const settle: Array<(answer: unknown) => void> = []
    const { basic } = basicWith(() => new Promise((resolve) => settle.push(resolve)))
    const a = throttled({ limiter })(basic)
    const passing = async (wait: number) => {
      const slow = tagOf(a, guess('anna'))
      await vi.advanceTimersByTimeAsync(wait)
      vi.setSystemTime(date)
      settle.pop()!('anna')
      expect(await slow).toBe('passed')
      return rewarded.length
    }
    expect(await passing(59_949)).toBe(1)
    // in so little time, the limiter may begin the next window
    expect(await passing(59_950)).toBe(1)
  })

  it('that are given back after the window do not make one free in the next', async () => {
    const settle: Array<(answer: unknown) => void> = []
    const { basic } = basicWith((password) =>
      password === 'slow' ? new Promise((resolve) => settle.push(resolve)) : false,
    )
    const a = throttled({ limiter: memory(2) })(basic)
    const slow = tagOf(a, guess('anna', 'slow'))
    await vi.advanceTimersByTimeAsync(60_000)
    settle[0]!('anna')
    expect(await slow).toBe('passed')
    expect(await tags(a, ...times(3, () => guess('anna')))).toBe('invalid invalid throttled')
  })

  it('that are refused after the window do not make one free in the next', async () => {
    const reward = vi.fn(async () => undefined)
    const limiter: Limiter = {
      consume: () => new Promise((_, reject) => setTimeout(reject, 500, { consumedPoints: 3, msBeforeNext: 500 })),
      reward,
    }
    const asked = tagOf(throttled({ limiter })(passwords().basic), guess('anna'))
    await vi.advanceTimersByTimeAsync(500)
    expect(await asked).toBe('throttled')
    expect(reward).not.toHaveBeenCalled()
  })

  it('do not extend the end of a limiter that blocks', async () => {
    const a = throttled({ limiter: new RateLimiterMemory({ points: 1, duration: 60, blockDuration: 30 }) })(
      passwords().basic,
    )
    expect(await tags(a, ...times(3, () => guess('anna')))).toBe('invalid throttled throttled')
    vi.setSystemTime(1_020_000)
    expect(await a.evaluate(guess('anna'))).toMatchObject(E.left({ _tag: 'throttled', retryAfter: 10 }))
  })
})

describe('keys of the counts', () => {
  it('account and address together: another account or another address has another count', async () => {
    const a = throttled({ limiter: memory(1) })(passwords().basic)
    expect(await tags(a, guess('anna'), guess('ben'), guess('anna', 'wrong', '192.0.2.2'), guess('anna'))).toBe(
      'invalid invalid invalid throttled',
    )
  })

  it.each<[string, string, string]>([
    ['another address of one /64 network', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9'],
    ['IPv4 as IPv6', '192.0.2.1', '::ffff:192.0.2.1'],
  ])('T-06 %s is the same address', async (_name, first, second) => {
    const a = throttled({ limiter: memory(1) })(passwords().basic)
    expect(await tags(a, guess('anna', 'wrong', first), guess('anna', 'wrong', second))).toBe('invalid throttled')
  })

  it("an address that keys returns is shortened like the client's own, if it is an address", async () => {
    const address = ['2001:db8::1', '[2001:db8::2]:443', 'tenant:7', 'tenant:8', '', '192.0.2.1:5']
    const a = throttled({ limiter: memory(1), keys: () => ({ account: 'anna', address: address.shift() }) })(
      passwords().basic,
    )
    expect(await tags(a, ...times(6, () => guess('anna')))).toBe('invalid throttled invalid invalid invalid throttled')
  })

  it('T-10 a client that has disconnected before its address was read is refused, because its guesses would have no count', async () => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: memory(1) })(basic)
    const hungUp = () => {
      const request = guess('anna', 'good')
      Object.defineProperty(request.req.socket, 'remoteAddress', { value: undefined })
      Object.defineProperty(request.req.socket, 'destroyed', { value: true })
      return request
    }
    expect(await tags(a, hungUp(), hungUp())).toBe('throttled throttled')
    expect(calls).toStrictEqual([])
    // It was not counted without an address either, as the clients of a Unix socket are
    const local = guess('anna', 'good')
    Object.defineProperty(local.req.socket, 'remoteAddress', { value: undefined })
    expect(await tagOf(a, local)).toBe('passed')
  })

  it('T-08 a malformed credential counts only by its address, and does not lock out its owner', async () => {
    const a = throttled({ limiter: memory(2) })(passwords().basic)
    const malformed = () => from('192.0.2.1', ['Authorization', 'Basic ?'])
    expect(await tags(a, malformed(), malformed(), malformed())).toBe('malformed malformed throttled')
    expect(await tagOf(a, guess('anna', 'good'))).toBe('passed')
    expect(await tagOf(a, from('192.0.2.2', ['Authorization', 'Basic ?']))).toBe('malformed')
  })

  it('T-08 a key or token names no account, so guesses at it count by address', async () => {
    let calls = 0
    const a = throttled({ limiter: memory(2) })(httpBearer({ authenticate: () => (calls++, false) }))
    const token = (at: number, address = '192.0.2.1') => from(address, ['Authorization', `Bearer t${at}`])
    expect(await tags(a, token(1), token(2), token(3), token(4, '192.0.2.2'))).toBe('invalid invalid throttled invalid')
    expect(calls).toBe(3)
  })

  it('keys: the option decides, for credentials that are not malformed', async () => {
    const asked: unknown[] = []
    const keys = (_request: unknown, credentials: BasicCredentials) => {
      asked.push(credentials)
      return { account: credentials.username.split('@')[0], address: 'everywhere' }
    }
    const a = throttled({ limiter: memory(1), keys })(passwords().basic)
    expect(await tags(a, guess('anna@a'), guess('anna@b', 'x', '192.0.2.2'))).toBe('invalid throttled')
    await tagOf(a, from('192.0.2.9', ['Authorization', 'Basic ?']))
    expect(asked).toStrictEqual([
      { username: 'anna@a', password: 'wrong' },
      { username: 'anna@b', password: 'x' },
    ])
  })

  it('T-11 limiters get digests: no account, no address, no credential', async () => {
    const seen: string[] = []
    const limiter: Limiter = { consume: async (key) => seen.push(key), reward: async (key) => seen.push(key) }
    const options: ThrottledOptions<unknown> = {
      limiter: { accountAndAddress: limiter, account: limiter, address: limiter },
    }
    await tagOf(throttled(options)(passwords().basic), guess('anna', 'good'))
    expect(seen).toHaveLength(6)
    expect(new Set(seen).size).toBe(3)
    for (const key of seen) expect(key).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(seen).not.toContain(createHash('sha256').update('anna').digest('base64url'))
  })

  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /the result of throttled\({ keys }\) takes an object/],
    ['a promise', Promise.resolve({}), /must be sync/],
    ['an account that is not a string', { account: 7 }, /account } }\) must be a string/],
    ['a name that does not exist', { user: 'anna' }, /no option "user"; there are account, address/],
  ])('keys that returns %s is a 500, and the hook is not called', async (_name, answer, expected) => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: memory(1), keys: () => answer as never })(basic)
    const result = await a.evaluate(guess('anna', 'good'))
    expect(result).toMatchObject(E.left({ _tag: 'raised', error: expect.any(TypeError) }))
    expect(E.isLeft(result) && result.left._tag === 'raised' && String(result.left.error)).toMatch(expected)
    expect(calls).toStrictEqual([])
  })
})

describe('several limiters', () => {
  const limits = (pair: number, account: number, address: number) => ({
    accountAndAddress: memory(pair),
    account: memory(account),
    address: memory(address),
  })
  const at = (index: number) => `192.0.2.${index}`

  it('of an account counts guesses from many addresses together', async () => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: limits(2, 10, 100) })(basic)
    expect(await tags(a, ...times(10, (index) => guess('anna', 'wrong', at(index))))).not.toContain('throttled')
    expect(await tagOf(a, guess('anna', 'good', at(11)))).toBe('throttled')
    expect(await tagOf(a, guess('ben', 'good', at(11)))).toBe('passed')
    expect(calls).toHaveLength(11)
  })

  it('T-05 a patient stranger locks no user out: for ten windows of every limiter, the owner passes in each second', async () => {
    const a = throttled({
      limiter: { accountAndAddress: memory(5, 7), account: memory(9, 60), address: memory(50, 40) },
    })(passwords().basic)
    for (let second = 0; second < 600; second++) {
      await vi.advanceTimersByTimeAsync(1000)
      for (const _ of [1, 2]) await tagOf(a, guess('anna'))
      expect(await tagOf(a, guess('anna', 'good', at(2))), `second ${second}`).toBe('passed')
    }
  })

  it('what the narrow limiter refuses is not counted by the others', async () => {
    const limiter = limits(1, 10, 10)
    const spy = vi.spyOn(limiter.account, 'consume')
    const a = throttled({ limiter })(passwords().basic)
    await tags(a, ...times(5, () => guess('anna')))
    expect(spy).toHaveBeenCalledTimes(1)
  })
})

describe('T-04 a store that fails', () => {
  const down = (reason: unknown): Limiter => ({
    consume: () => Promise.reject(reason),
    reward: () => Promise.reject(reason),
  })

  it.each([
    new Error('down'),
    new TypeError('bug'),
    Object.assign(new Error('down'), { code: 'ECONNREFUSED' }),
    runInNewContext('new Error("down in another realm")'),
  ])('is unavailable, and the hook is not called: %s', async (error) => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: down(error) })(basic)
    expect(await tagOf(a, guess('anna', 'good'))).toBe('unavailable')
    expect(calls).toStrictEqual([])
  })

  it('may throw instead of rejecting', async () => {
    const limiter: Limiter = {
      consume: () => {
        throw new Error('down')
      },
      reward: async () => undefined,
    }
    expect(await tagOf(throttled({ limiter })(passwords().basic), guess('anna', 'good'))).toBe('unavailable')
  })

  it("with onStoreError: 'unthrottled' the hook is called, and other limiters count", async () => {
    const limiter = { accountAndAddress: down(new Error('down')), account: memory(100), address: memory(1) }
    const a = throttled({ limiter, onStoreError: 'unthrottled' })(passwords().basic)
    expect(await tags(a, guess('anna', 'good'), guess('anna'), guess('anna'))).toBe('passed invalid throttled')
  })

  it('gets back what other limiters counted before', async () => {
    const narrow = memory(1)
    const limiter = { accountAndAddress: narrow, account: down(new Error('down')) }
    await tags(throttled({ limiter })(passwords().basic), ...times(5, () => guess('anna', 'good')))
    expect(await tagOf(throttled({ limiter: narrow })(passwords().basic), guess('anna', 'good'))).toBe('passed')
  })

  it('that cannot take a guess back does not change the result', async () => {
    const limiter: Limiter = { consume: async () => ({}), reward: () => Promise.reject(new Error('down')) }
    expect(await tagOf(throttled({ limiter })(passwords().basic), guess('anna', 'good'))).toBe('passed')
  })

  it.each<[unknown, number | undefined]>([
    [undefined, undefined],
    [null, undefined],
    ['over', undefined],
    [{}, undefined],
    [{ msBeforeNext: -1 }, undefined],
    [{ msBeforeNext: 0 }, 0],
    [{ msBeforeNext: NaN, consumedPoints: '1' }, undefined],
    [{ msBeforeNext: 1500 }, 1.5],
    [Object.assign(new Error('over'), { msBeforeNext: 1500 }), 1.5],
  ])(
    'is not one that rejects with something else than an Error, which means too many: %o',
    async (reason, retryAfter) => {
      const rewarded = vi.fn(async () => undefined)
      const limiter: Limiter = { consume: () => Promise.reject(reason), reward: rewarded }
      const a = throttled({ limiter, onStoreError: 'unthrottled' })(passwords().basic)
      const result = await a.evaluate(guess('anna', 'good'))
      expect(E.isLeft(result) && result.left._tag === 'throttled' && { seconds: result.left.retryAfter }).toStrictEqual(
        {
          seconds: retryAfter,
        },
      )
      // Nothing is given back to a limiter that did not say that it counted
      expect(rewarded).not.toHaveBeenCalled()
    },
  )
})

describe('throttled in a tree', () => {
  const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, value) => value === 'k1' && 'key' })
  const both = (password: string, value: string, user = 'anna') =>
    from('192.0.2.1', basicOf(user, password), ['X-Key', value])

  it('around a list: a valid key beside each guess gives none of them back', async () => {
    const { basic, calls } = passwords()
    const a = throttled({ limiter: memory(3) })(anyOf([basic, key]))
    expect(await tags(a, ...times(5, () => both('wrong', 'k1')))).toBe('passed passed passed throttled throttled')
    expect(calls).toHaveLength(3)
  })

  describe('T-09 throttled around kinds that read one credential', () => {
    const known = (name: string) =>
      basicWith((password, username) => username === name && password === 'good' && { name })
    const lists: ReadonlyArray<
      readonly [string, (list: readonly [Authenticator<unknown>, Authenticator<unknown>]) => Authenticator<unknown>]
    > = [
      ['around the list', (list) => throttled({ limiter: memory(2) })(anyOf(list))],
      [
        'around each, with one limiter',
        ([first, second]) => {
          const limiter = memory(2)
          return anyOf([throttled({ limiter })(first), throttled({ limiter })(second)])
        },
      ],
      [
        'around each, with two limiters',
        ([first, second]) =>
          anyOf([throttled({ limiter: memory(2) })(first), throttled({ limiter: memory(2) })(second)]),
      ],
    ]
    it.each(lists)('a user whom only the second kind knows uses up nothing: %s', async (_name, wrap) => {
      const a = wrap([known('anna').basic, known('ben').basic])
      expect(await tags(a, ...times(9, () => guess('ben', 'good')))).toBe(Array(9).fill('passed').join(' '))
    })

    it.each(lists)('a guess is counted once, not once for each kind: %s', async (_name, wrap) => {
      const [first, second] = [known('anna'), known('ben')]
      const a = wrap([first.basic, second.basic])
      expect(await tags(a, ...times(4, () => guess('anna')))).toBe('invalid invalid throttled throttled')
      expect([first.calls.length, second.calls.length]).toStrictEqual([2, 2])
    })

    it('a guess that the limiter could not count for the first kind is counted for the second', async () => {
      const limiter = memory(1)
      vi.spyOn(limiter, 'consume').mockRejectedValueOnce(new Error('down'))
      const around = throttled({ limiter, onStoreError: 'unthrottled' })
      const a = anyOf([around(known('anna').basic), around(known('ben').basic)])
      expect(await tags(a, guess('anna'), guess('anna'))).toBe('invalid throttled')
    })
  })

  it('is a TypeError with the fix for a plain function', () => {
    // Safe: the types refuse the function
    const attempt = (): unknown => throttled({ limiter: memory(1) })((() => true) as unknown as Authenticator<unknown>)
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(
      /^throttled\(\.\.\.\)\(a\): a is a plain function, whose credential is unknown; put throttled\(\.\.\.\) around kinds, such as httpBasicAuth or authenticator\({ extract, \.\.\. }\)$/,
    )
  })
})

describe('throttled reads a credential once', () => {
  const NumberFromString = new t.Type<number, string, unknown>(
    'NumberFromString',
    t.number.is,
    (u, context) => (/^\d+$/.test(String(u)) ? t.success(Number(u)) : t.failure(u, context)),
    String,
  )
  const counting = () => {
    let decoded = 0
    const kind = authenticator({
      scheme: { type: 'apiKey', in: 'header', name: 'X-Key' },
      challenge: Challenge.make('ApiKey'),
      ambient: false,
      extract: fromHeader('X-Key'),
      credentials: new t.Type<string, string, unknown>(
        'Counted',
        (u): u is string => typeof u === 'string',
        (u) => (decoded++, t.success(String(u))),
        String,
      ),
      authenticate: (_request, key) => key === 'good' && { key },
    })
    return { kind, decodings: () => decoded }
  }
  const keyed = (key: string) => from('192.0.2.1', ['X-Key', key])

  it('the kind uses what was decoded to count the guess', async () => {
    const { kind, decodings } = counting()
    const guarded = throttled({ limiter: memory(5) })(kind)
    expect(await tags(guarded, keyed('good'), keyed('bad'))).toBe('passed invalid')
    expect(decodings()).toBe(2)
  })
  it('what was decoded of one credential is never used for another', async () => {
    const { kind } = counting()
    const request = keyed('good')
    const limiter = { consume: () => Promise.resolve(), reward: () => Promise.resolve() }
    const guarded = throttled({ limiter })(kind)
    const waiting = guarded.evaluate(request)
    // Middleware replaces the header while the limiter runs
    request.req.headers['x-key'] = 'bad'
    expect(E.isLeft(await waiting)).toBe(true)
  })
  it('a kind with another codec, which the hook calls, decodes the same value itself', async () => {
    const header = { challenge: Challenge.make('ApiKey'), ambient: false, extract: fromHeader('X-Key') }
    const numbered = authenticator({
      ...header,
      credentials: NumberFromString,
      authenticate: (_request, id) => ({ id }),
    })
    const asking = authenticator({ ...header, authenticate: (request) => numbered(request) })
    const guarded = throttled({ limiter: memory(5) })(asking)
    expect(await guarded.evaluate(keyed('7'))).toStrictEqual(E.right({ id: 7 }))
    expect(await tagOf(guarded, keyed('good'))).toBe('malformed')
  })
  it.each(['good', 'bad', 'refused', 'thrown', 'reset'])(
    'T-11 no credential is left on the request: %s',
    async (key) => {
      const { kind } = counting()
      const request = keyed(key)
      const limiter = { consume: () => (key === 'refused' ? Promise.reject({ msBeforeNext: 1 }) : Promise.resolve()), reward: () => Promise.resolve() } // prettier-ignore
      const keys = () => {
        if (key === 'thrown') throw new Error('keys cannot say')
        return {}
      }
      if (key === 'reset') {
        Object.defineProperty(request.req.socket, 'remoteAddress', { value: undefined, configurable: true })
        request.req.socket.destroy()
      }
      await throttled({ limiter, keys })(kind).evaluate(request)
      const left = Object.getOwnPropertySymbols(request).map((mark) => Reflect.get(request, mark))
      expect(JSON.stringify(left.filter((one) => !Array.isArray(one)))).not.toContain(key)
    },
  )
})

describe('options of throttled', () => {
  const limiter = memory(1)
  it.each<[string, unknown, RegExp]>([
    [
      'no limiter',
      {},
      /throttled\({ limiter }\) must be a limiter, an object with the methods consume and reward, or an object \{/,
    ],
    ['a class', { limiter: RateLimiterMemory }, /throttled\({ limiter }\) must be a limiter/],
    ['a limiter without reward', { limiter: { consume: () => 1 } }, /throttled\({ limiter }\) must be a limiter/],
    ['a limiter that is null', { limiter: { accountAndAddress: null } }, /must have the methods consume and reward/],
    [
      'an object without accountAndAddress',
      { limiter: { account: limiter } },
      /{ accountAndAddress, account, address }/,
    ],
    [
      'an object without limiters',
      { limiter: { accountAndAddress: limiter, account: 5 } },
      /limiter: { account } }\) must have the methods/,
    ],
    ['keys that is not a function', { limiter, keys: 'username' }, /throttled\({ keys }\) must be a function/],
    [
      'an unknown onStoreError',
      { limiter, onStoreError: 'open' },
      /throttled\({ onStoreError }\) must be 'unavailable' or 'unthrottled'/,
    ],
  ])('are a TypeError that names the place for %s', (_name, input, expected) => {
    const attempt = (): unknown => Reflect.apply(throttled, undefined, [input])
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(expected)
  })
})
