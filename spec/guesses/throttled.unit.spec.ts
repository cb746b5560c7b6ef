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
  httpBearer,
  throttled,
  UnavailableError,
  type Authenticator,
  type Limiter,
} from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { type BasicCredentials } from 'koa-with-auth/fp'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { basicOf, basicWith, from, guess, guessing, memory, tagsOf, times } from '../support/models/guessing.js'

const withoutAddress = (field: readonly [string, string], isClosed = false) => {
  const request = from(undefined, [field])
  if (isClosed) request.socket.destroy()
  return request
}
const down = (reason: unknown = new Error('down')): Limiter => ({
  consume: () => Promise.reject(reason),
  reward: () => Promise.reject(reason),
})

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('guesses of throttled', () => {
  it('up to the limit reach the hook; beyond it no hook is called, and Retry-After has the time', async () => {
    const { a, calls, tags } = guessing(3)
    expect(await tags(...times(3, () => guess('anna')))).toBe('invalid invalid invalid')
    vi.advanceTimersByTime(20_000)
    expect(await a.evaluate(guess('anna', 'good'))).toMatchObject(E.left({ _tag: 'throttled', retryAfter: 40 }))
    expect(calls).toHaveLength(3)
    vi.advanceTimersByTime(41_000)
    expect(await tags(guess('anna', 'good'))).toBe('passed')
  })

  const ofTwo = E.left({ ...AuthError.expired, branches: [AuthError.invalid, AuthError.expired] })
  it.each<[tag: string, answer: () => unknown, isGuess?: true]>([
    ['passed', () => 'anna'],
    ['absent', () => AuthError.absent],
    ['expired', () => AuthError.expired],
    ['insufficient', () => AuthError.insufficient()],
    ['unavailable', () => AuthError.unavailable()],
    ['unavailable', () => Promise.reject(new UnavailableError('down'))],
    ['raised', () => Promise.reject(new Error('bug'))],
    ['throttled', () => AuthError.throttled(1)],
    ['invalid', () => false, true],
    ['malformed', () => AuthError.malformed, true],
    // one kind of a list refuses, even if the failure of another kind is stronger
    ['expired', () => ofTwo, true],
  ])('are given back if the result is no refusal: %s', async (tag, answer, isGuess) => {
    const { tags } = guessing(1, { answer })
    expect(await tags(...times(3, () => guess('anna')))).toBe(
      isGuess ? `${tag} throttled throttled` : `${tag} ${tag} ${tag}`,
    )
  })

  it('T-12 are not counted for a write from another site, because it would lock out the visitor; the hook is not called', async () => {
    const { calls, tags } = guessing(1)
    const forged = (password: string) =>
      from('192.0.2.1', [['Sec-Fetch-Site', 'cross-site'], basicOf('anna', password)], { method: 'POST' })
    // A wrong and a good credential get the same response, so nothing is learned without a count
    expect(await tags(forged('wrong'), forged('good'), forged('wrong'))).toBe('forged forged forged')
    expect(calls).toStrictEqual([])
    expect(await tags(guess('anna', 'good'))).toBe('passed')
  })

  it('T-02 are not reset by a success', async () => {
    const sent = [guess('anna'), guess('anna'), guess('anna', 'good'), guess('anna'), guess('anna', 'good')]
    expect(await guessing(3).tags(...sent)).toBe('invalid invalid passed invalid throttled')
  })

  it.each([
    ['back', 1],
    ['forward', 9e12],
  ])('are neither lost nor free if the system clock is set %s', async (_way, date) => {
    const reward = vi.fn(async () => undefined)
    const settle: Array<(answer: unknown) => void> = []
    const answer = () => new Promise((resolve) => settle.push(resolve))
    const { tags } = guessing({ consume: async () => ({ msBeforeNext: 60_000 }), reward }, { answer })
    // in so little time as after the second, the limiter may begin the next window
    for (const wait of [59_949, 59_950]) {
      const slow = tags(guess('anna'))
      await vi.advanceTimersByTimeAsync(wait)
      vi.setSystemTime(date)
      settle.pop()!('anna')
      expect(await slow).toBe('passed')
      expect(reward).toHaveBeenCalledTimes(1)
    }
  })

  it('that are given back after the window do not make one free in the next', async () => {
    let settle = (_answer: unknown): void => {}
    const answer = (password: string) => password === 'slow' && new Promise((resolve) => (settle = resolve))
    const { tags } = guessing(2, { answer })
    const slow = tags(guess('anna', 'slow'))
    await vi.advanceTimersByTimeAsync(60_000)
    settle('anna')
    expect(await slow).toBe('passed')
    expect(await tags(...times(3, () => guess('anna')))).toBe('invalid invalid throttled')
  })

  it('that are refused after the window do not make one free in the next', async () => {
    const reward = vi.fn(async () => undefined)
    const consume = () => new Promise((_, reject) => setTimeout(reject, 500, { consumedPoints: 3, msBeforeNext: 500 }))
    const asked = guessing({ consume, reward }).tags(guess('anna'))
    await vi.advanceTimersByTimeAsync(500)
    expect(await asked).toBe('throttled')
    expect(reward).not.toHaveBeenCalled()
  })

  it('do not extend the end of a limiter that blocks', async () => {
    const { a, tags } = guessing(new RateLimiterMemory({ points: 1, duration: 60, blockDuration: 30 }))
    expect(await tags(...times(3, () => guess('anna')))).toBe('invalid throttled throttled')
    vi.setSystemTime(1_020_000)
    expect(await a.evaluate(guess('anna'))).toMatchObject(E.left({ _tag: 'throttled', retryAfter: 10 }))
  })
})

describe('keys of the counts', () => {
  const bad = (address = '192.0.2.1') => from(address, [['Authorization', 'Basic ?']])

  it.each<[rule: string, sent: ReadonlyArray<ReturnType<typeof from>>, expected: string]>([
    [
      'account and address together: another account or another address has another count',
      [guess('anna'), guess('ben'), guess('anna', 'wrong', '192.0.2.2'), guess('anna')],
      'invalid invalid invalid throttled',
    ],
    [
      'T-08 a malformed credential counts only by its address, and does not lock out its owner',
      [bad(), bad(), guess('anna', 'good'), bad('192.0.2.2')],
      'malformed throttled passed malformed',
    ],
    // as the clients of a Unix socket are
    ['T-10 a client without an address passes', [withoutAddress(basicOf('anna', 'good'))], 'passed'],
  ])('%s', async (_rule, sent, expected) => {
    expect(await guessing(1).tags(...sent)).toBe(expected)
  })

  it("an address that keys returns is shortened like the client's own, if it is an address", async () => {
    const address = ['2001:db8::1', '[2001:db8::2]:443', 'tenant:7', 'tenant:8', '', '192.0.2.1:5']
    const { tags } = guessing(1, { keys: () => ({ account: 'anna', address: address.shift() }) })
    expect(await tags(...times(6, () => guess('anna')))).toBe('invalid throttled invalid invalid invalid throttled')
  })

  it('T-10 a client that has disconnected before its address was read is refused, because its guesses would have no count', async () => {
    const { calls, tags } = guessing(1)
    const hungUp = () => withoutAddress(basicOf('anna', 'good'), true)
    expect(await tags(hungUp(), hungUp())).toBe('throttled throttled')
    expect(calls).toStrictEqual([])
    // whose address is known is counted as usual
    const known = guess('ben')
    known.socket.destroy()
    expect(await tags(known, guess('ben', 'good'))).toBe('invalid throttled')
    expect(calls).toHaveLength(1)
    // It was not counted without an address either
    expect(await tags(withoutAddress(basicOf('anna', 'good')))).toBe('passed')
  })

  it('T-08 a key or token names no account, so guesses at it count by address', async () => {
    const authenticate = vi.fn(() => false)
    const a = throttled({ limiter: memory(2) })(httpBearer({ authenticate }))
    const token = (at: number, address = '192.0.2.1') => from(address, [['Authorization', `Bearer t${at}`]])
    expect(await tagsOf(a, token(1), token(2), token(3), token(4, '192.0.2.2'))).toBe(
      'invalid invalid throttled invalid',
    )
    expect(authenticate).toHaveBeenCalledTimes(3)
  })

  it('keys: the option decides, for credentials that are not malformed', async () => {
    const keys = vi.fn((_request: unknown, { username }: BasicCredentials) => ({
      account: username.split('@')[0],
      address: 'everywhere',
    }))
    const { tags } = guessing(1, { keys })
    expect(await tags(guess('anna@a'), guess('anna@b', 'x', '192.0.2.2'), bad())).toBe('invalid throttled malformed')
    expect(keys.mock.calls.map(([, credentials]) => credentials)).toStrictEqual([
      { username: 'anna@a', password: 'wrong' },
      { username: 'anna@b', password: 'x' },
    ])
  })

  it('T-11 limiters get digests: no account, no address, no credential', async () => {
    const seen: string[] = []
    const limiter: Limiter = { consume: async (key) => seen.push(key), reward: async (key) => seen.push(key) }
    await guessing({ accountAndAddress: limiter, account: limiter, address: limiter }).tags(guess('anna', 'good'))
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
    const { a, calls } = guessing(1, { keys: () => answer as never })
    expect(await a.evaluate(guess('anna', 'good'))).toMatchObject(
      E.left({ _tag: 'raised', error: { name: 'TypeError', message: expect.stringMatching(expected) } }),
    )
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

  it('of an account counts guesses from many addresses together, and the record names its count', async () => {
    const records: string[] = []
    onTestFinished(on('guess-limit', ({ event, under }) => records.push(`${event} ${under}`)))
    const { calls, tags } = guessing(limits(2, 10, 100))
    expect(await tags(...times(10, (index) => guess('anna', 'wrong', at(index))))).not.toContain('throttled')
    expect(await tags(guess('anna', 'good', at(11)), guess('ben', 'good', at(11)))).toBe('throttled passed')
    expect(calls).toHaveLength(11)
    expect(records).toStrictEqual(['reached account'])
  })

  it('T-05 a patient stranger locks no user out: for ten windows of every limiter, the owner passes in each second', async () => {
    const { tags } = guessing({ accountAndAddress: memory(5, 7), account: memory(9, 60), address: memory(50, 40) })
    for (let second = 0; second < 600; second++) {
      await vi.advanceTimersByTimeAsync(1000)
      await tags(guess('anna'), guess('anna'))
      expect(await tags(guess('anna', 'good', at(2))), `second ${second}`).toBe('passed')
    }
  })

  it('what the narrow limiter refuses is not counted by the others', async () => {
    const limiter = limits(1, 10, 10)
    const others = [vi.spyOn(limiter.account, 'consume'), vi.spyOn(limiter.address, 'consume')]
    await guessing(limiter).tags(...times(5, () => guess('anna')))
    for (const spy of others) expect(spy).toHaveBeenCalledTimes(1)
  })
})

describe('T-04 a store that fails', () => {
  it.each([
    new Error('down'),
    new TypeError('bug'),
    Object.assign(new Error('down'), { code: 'ECONNREFUSED' }),
    runInNewContext('new Error("down in another realm")'),
  ])('is unavailable, and the hook is not called: %s', async (error) => {
    const consume = () => {
      throw error
    }
    // it may throw instead of rejecting
    for (const limiter of [down(error), { ...down(error), consume }]) {
      const { calls, tags } = guessing(limiter)
      expect(await tags(guess('anna', 'good'))).toBe('unavailable')
      expect(calls).toStrictEqual([])
    }
  })

  it("with onStoreError: 'unthrottled' the hook is called, and other limiters count", async () => {
    const limiter = { accountAndAddress: down(), account: memory(100), address: memory(1) }
    const { tags } = guessing(limiter, { onStoreError: 'unthrottled' })
    expect(await tags(guess('anna', 'good'), guess('anna'), guess('anna'))).toBe('passed invalid throttled')
  })

  it('gets back what other limiters counted before', async () => {
    const narrow = memory(1)
    await guessing({ accountAndAddress: narrow, account: down() }).tags(...times(5, () => guess('anna', 'good')))
    expect(await guessing(narrow).tags(guess('anna', 'good'))).toBe('passed')
  })

  it('that cannot take a guess back does not change the result', async () => {
    const limiter = { ...down(), consume: async () => ({}) }
    expect(await guessing(limiter).tags(guess('anna', 'good'))).toBe('passed')
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
  ])('is not one that rejects with something else than an Error, which means too many: %o', async (reason, seconds) => {
    const reward = vi.fn(async () => undefined)
    const { a } = guessing({ consume: () => Promise.reject(reason), reward }, { onStoreError: 'unthrottled' })
    const result = await a.evaluate(guess('anna', 'good'))
    expect(E.isLeft(result) && result.left).toMatchObject({ _tag: 'throttled' })
    expect(E.isLeft(result) && Reflect.get(result.left, 'retryAfter')).toBe(seconds)
    // Nothing is given back to a limiter that did not say that it counted
    expect(reward).not.toHaveBeenCalled()
  })
})

describe('throttled in a tree', () => {
  it('around a list: a valid key beside each guess gives none of them back', async () => {
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, value) => value === 'k1' && 'key' })
    const { basic, calls } = basicWith()
    const a = throttled({ limiter: memory(3) })(anyOf([basic, key]))
    const both = () => from('192.0.2.1', [basicOf('anna', 'wrong'), ['X-Key', 'k1']])
    expect(await tagsOf(a, ...times(5, both))).toBe('passed passed passed throttled throttled')
    expect(calls).toHaveLength(3)
  })

  describe('T-09 throttled around kinds that read one credential', () => {
    const known = (name: string) => basicWith((password, username) => username === name && password === 'good' && name)
    const lists: ReadonlyArray<
      readonly [string, (list: readonly [Authenticator<unknown>, Authenticator<unknown>]) => Authenticator<unknown>]
    > = [
      ['around the list', (list) => throttled({ limiter: memory(2) })(anyOf(list))],
      [
        'around each, with one limiter',
        ([first, second]) => {
          const around = throttled({ limiter: memory(2) })
          return anyOf([around(first), around(second)])
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
      expect(await tagsOf(a, ...times(9, () => guess('ben', 'good')))).toBe(Array(9).fill('passed').join(' '))
    })

    it.each(lists)('a guess is counted once, not once for each kind: %s', async (_name, wrap) => {
      const [first, second] = [known('anna'), known('ben')]
      const a = wrap([first.basic, second.basic])
      expect(await tagsOf(a, ...times(4, () => guess('anna')))).toBe('invalid invalid throttled throttled')
      expect([first.calls.length, second.calls.length]).toStrictEqual([2, 2])
    })

    const said = [AuthError.expired, AuthError.forged, AuthError.insufficient(), AuthError.notFound]
    it.each<[AuthError, string]>([
      [AuthError.unavailable(), 'unavailable unavailable throttled'],
      ...said.map((one): [AuthError, string] => [one, `${one._tag} ${one._tag} ${one._tag}`]),
    ])('a guess for the first kind is given back only if the second knows it: %o', async (answer, expected) => {
      const a = throttled({ limiter: memory(2) })(anyOf([known('anna').basic, basicWith(() => answer).basic]))
      expect(await tagsOf(a, ...times(3, () => guess('ben')))).toBe(expected)
    })

    it('a guess that the limiter could not count for the first kind is counted for the second', async () => {
      const limiter = memory(1)
      vi.spyOn(limiter, 'consume').mockRejectedValueOnce(new Error('down'))
      const around = throttled({ limiter, onStoreError: 'unthrottled' })
      const a = anyOf([around(known('anna').basic), around(known('ben').basic)])
      expect(await tagsOf(a, guess('anna'), guess('anna'))).toBe('invalid throttled')
    })
  })

  it('is a TypeError with the fix for a plain function', () => {
    // Safe: the types refuse the function
    const attempt = (): unknown => throttled({ limiter: memory(1) })((() => true) as unknown as Authenticator<unknown>)
    expect(attempt).toThrow(
      new TypeError(
        'throttled(...)(a): a is a plain function, whose credential is unknown; put throttled(...) around kinds, such as httpBasicAuth or authenticator({ extract, ... })',
      ),
    )
  })
})

describe('throttled reads a credential once', () => {
  const header = { challenge: Challenge.make('ApiKey'), ambient: false, extract: fromHeader('X-Key') }
  const isAny = <A>(_u: unknown): _u is A => true
  const decoding = <A>(read: (sent: string) => t.Validation<A>) =>
    new t.Type<A, A, unknown>('Key', isAny, (u) => read(String(u)), t.identity)
  const counting = () => {
    const decode = vi.fn((sent: string) => t.success(sent))
    const authenticate = (_request: unknown, key: string) => key === 'good' && { key }
    return { kind: authenticator({ ...header, credentials: decoding(decode), authenticate }), decode }
  }
  const keyed = (key: string) => from('192.0.2.1', [['X-Key', key]])

  it('the kind uses what was decoded to count the guess', async () => {
    const { kind, decode } = counting()
    expect(await tagsOf(throttled({ limiter: memory(5) })(kind), keyed('good'), keyed('bad'))).toBe('passed invalid')
    expect(decode).toHaveBeenCalledTimes(2)
  })
  it('what was decoded of one credential is never used for another', async () => {
    const request = keyed('good')
    const limiter = { consume: () => Promise.resolve(), reward: () => Promise.resolve() }
    const waiting = throttled({ limiter })(counting().kind).evaluate(request)
    // Middleware replaces the header while the limiter runs
    request.req.headers['x-key'] = 'bad'
    expect(E.isLeft(await waiting)).toBe(true)
  })
  const numbered = authenticator({
    ...header,
    credentials: decoding((sent) => (/^\d+$/.test(sent) ? t.success(Number(sent)) : t.failure(sent, []))),
    authenticate: (_request, id) => ({ id }),
  })
  it('a kind with another codec, which the hook calls, decodes the same value itself', async () => {
    const asking = authenticator({ ...header, authenticate: (request) => numbered(request) })
    const guarded = throttled({ limiter: memory(5) })(asking)
    expect(await guarded.evaluate(keyed('7'))).toStrictEqual(E.right({ id: 7 }))
    expect(await tagsOf(guarded, keyed('good'))).toBe('malformed')
  })
  it('a kind with another codec, behind it in a list, is counted by what its own codec decodes', async () => {
    const keys = vi.fn(() => ({ account: 'anna' }))
    const limiter = memory(5)
    const a = anyOf([throttled({ limiter })(numbered), throttled({ limiter, keys })(counting().kind)])
    expect(await tagsOf(a, keyed('good'))).toBe('passed')
    expect(keys).toHaveBeenCalledWith(expect.anything(), 'good')
  })
  it.each(['good', 'bad', 'refused', 'thrown', 'reset'])('T-11 the request keeps no credential: %s', async (key) => {
    const request = key === 'reset' ? withoutAddress(['X-Key', key], true) : keyed(key)
    const limiter = key === 'refused' ? down({ msBeforeNext: 1 }) : memory(5)
    const keys = () => {
      if (key === 'thrown') throw new Error('keys cannot say')
      return {}
    }
    await throttled({ limiter, keys })(counting().kind).evaluate(request)
    const left = Object.getOwnPropertySymbols(request).map((mark) => Reflect.get(request, mark))
    expect(JSON.stringify(left.filter((one) => !Array.isArray(one)))).not.toContain(key)
  })
})

describe('options of throttled', () => {
  const limiter = memory(1)
  it.each<[string, unknown, RegExp]>([
    ['no limiter', {}, /throttled\({ limiter }\) must be a limiter, an object with the methods consume and reward/],
    ['a class', { limiter: RateLimiterMemory }, /throttled\({ limiter }\) must be a limiter/],
    ['a limiter without reward', { limiter: { consume: () => 1 } }, /throttled\({ limiter }\) must be a limiter/],
    ['a limiter that is null', { limiter: { accountAndAddress: null } }, /must have the methods consume and reward/],
    ['no accountAndAddress', { limiter: { account: limiter } }, /{ accountAndAddress, account, address }/],
    ['a number', { limiter: { accountAndAddress: limiter, account: 5 } }, /account } }\) must have the methods/],
    ['keys that is not a function', { limiter, keys: 'username' }, /throttled\({ keys }\) must be a function/],
    ['an unknown word', { limiter, onStoreError: 'open' }, /onStoreError }\) must be 'unavailable' or 'unthrottled'/],
  ])('are a TypeError that names the place for %s', (_name, input, expected) => {
    const attempt = (): unknown => Reflect.apply(throttled, undefined, [input])
    expect(attempt).toThrow(TypeError)
    expect(attempt).toThrow(expected)
  })
})
