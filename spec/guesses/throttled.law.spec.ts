/**
 * `throttled` lets at most as many guesses as the limit reach the hook, whatever runs in parallel and however hooks
 * settle.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { httpBasicAuth, throttled } from 'koa-with-auth'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { guess, memory } from '../support/models/guessing.js'
import { run } from '../support/models/treeRuns.js'
import { tree } from '../support/models/trees.js'
import { occurring, runs } from '../support/runs/samples.js'

const accounts = ['anna', 'ben'] as const
const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3'] as const

type Outcome = 'good' | 'wrong' | 'down' | 'bug'
interface Try {
  readonly account: (typeof accounts)[number]
  readonly address: (typeof addresses)[number]
  readonly outcome: Outcome
}
type Step = { readonly try: Try } | { readonly settle: number } | { readonly wait: number }

const tried = fc.record<Try>({
  account: fc.constantFrom(...accounts),
  address: fc.constantFrom(...addresses),
  outcome: fc.constantFrom('good', 'wrong', 'wrong', 'wrong', 'down', 'bug'),
})
const steps = fc.array(
  fc.oneof(
    { arbitrary: tried.map((one): Step => ({ try: one })), weight: 6 },
    { arbitrary: fc.nat(9).map((settle): Step => ({ settle })), weight: 4 },
    { arbitrary: fc.constantFrom(1000, 30_000, 60_000).map((wait): Step => ({ wait })), weight: 1 },
  ),
  { minLength: 10, maxLength: 120 },
)
const limits = fc.record({
  pair: fc.integer({ min: 1, max: 4 }),
  account: fc.option(fc.integer({ min: 3, max: 8 })),
  address: fc.option(fc.integer({ min: 2, max: 8 })),
})
type Limits = typeof limits extends fc.Arbitrary<infer L> ? L : never

const WINDOW = 60

const answers: Readonly<Record<Outcome, () => unknown>> = {
  good: () => 'in',
  wrong: () => false,
  down: () => Promise.reject(Object.assign(new Error('down'), { [Symbol.for('koa-with-auth/unavailable')]: true })),
  bug: () => Promise.reject(new Error('bug')),
}

const seen = { invalid: 0, throttled: 0, passed: 0, unavailable: 0, raised: 0 }

const requestOf = ({ account, address, outcome }: Try) => guess(account, outcome, address)

const play = async (all: ReadonlyArray<Step>, { pair, account, address }: Limits): Promise<void> => {
  const start = Date.now()
  const guesses: Array<Try & { readonly at: number }> = []
  const pending: Array<() => void> = []
  const basic = httpBasicAuth({
    authenticate: (request, user, outcome) => {
      const entry = { account: user, address: request.socket.remoteAddress, outcome } as Try
      if (outcome === 'wrong') guesses.push({ ...entry, at: Date.now() })
      return new Promise((resolve) => pending.push(() => resolve(answers[entry.outcome]())))
    },
  })
  const limiter = {
    accountAndAddress: memory(pair),
    ...(account !== null && { account: memory(account) }),
    ...(address !== null && { address: memory(address) }),
  }
  const a = throttled({ limiter })(basic)
  const asked: Array<Promise<unknown>> = []
  const settleAll = async () => {
    for (const settle of pending.splice(0)) settle()
    await vi.advanceTimersByTimeAsync(0)
  }
  for (const one of all) {
    if ('try' in one) {
      asked.push(
        Promise.resolve(a.evaluate(requestOf(one.try))).then((result) => {
          const tag = E.isLeft(result) ? result.left._tag : 'passed'
          // If the hook is called, the result is its own; otherwise it is throttled
          const expected = { good: 'passed', wrong: 'invalid', down: 'unavailable', bug: 'raised' }[one.try.outcome]
          expect([expected, 'throttled']).toContain(tag)
          seen[tag as keyof typeof seen]++
        }),
      )
      await vi.advanceTimersByTimeAsync(0)
    } else if ('settle' in one) {
      pending.splice(one.settle % Math.max(1, pending.length), 1)[0]?.()
      await vi.advanceTimersByTimeAsync(0)
    } else await vi.advanceTimersByTimeAsync(one.wait)
  }
  await settleAll()
  await Promise.all(asked)
  // The window of a key begins with its first count, so 60 s touch at most two windows
  const keyed = [
    { limit: pair, key: (g: Try) => `${g.account} ${g.address}` },
    ...(account === null ? [] : [{ limit: account, key: (g: Try) => g.account }]),
    ...(address === null ? [] : [{ limit: address, key: (g: Try) => g.address }]),
  ]
  for (const { limit, key } of keyed) {
    for (const first of guesses) {
      const inWindow = guesses.filter(
        (g) => key(g) === key(first) && g.at >= first.at && g.at < first.at + WINDOW * 1000,
      )
      expect(inWindow.length).toBeLessThanOrEqual(2 * limit)
    }
    // While no window has ended, the limit itself applies
    const before = guesses.filter(({ at }) => at < start + WINDOW * 1000)
    for (const first of before) {
      expect(before.filter((g) => key(g) === key(first)).length).toBeLessThanOrEqual(limit)
    }
  }
  // What was not a guess was given back, so two windows later all pass
  await vi.advanceTimersByTimeAsync(2 * WINDOW * 1000)
  const good = Promise.all(
    accounts.map(async (name) =>
      a.evaluate(requestOf({ account: name, address: '192.0.2.9' as never, outcome: 'good' })),
    ),
  )
  await vi.advanceTimersByTimeAsync(0)
  await settleAll()
  for (const result of await good) expect(result).toMatchObject(E.right('in'))
}

beforeEach(() => {
  vi.useFakeTimers({ now: 0 })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('throttled', () => {
  it('T-01 admits at most the limit of each of its limiters, in any parallel order', async () => {
    await fc.assert(fc.asyncProperty(steps, limits, play), { numRuns: runs(300) })
    // Each of these occurred often
    for (const [name, count] of Object.entries(seen)) expect(count, name).toBeGreaterThan(occurring(200))
  })

  it('calls no hook if the limit is 0, and a credential that was sent ends every list', async () => {
    vi.useRealTimers()
    const none = { limiter: memory(0) }
    let stopped = 0
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const { result, calls } = await run([of], (a) => throttled(none)(a))
        expect(calls).toStrictEqual([])
        if (E.isLeft(result) && result.left._tag === 'throttled') stopped++
        else if (E.isLeft(result)) expect(['absent', 'malformed', 'invalid', 'forged']).toContain(result.left._tag)
      }),
      { numRuns: runs(300) },
    )
    expect(stopped).toBeGreaterThan(occurring(100))
  })
})
