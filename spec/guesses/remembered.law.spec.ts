/**
 * `remembered(options)(a)` decides like `a`, whatever happens meanwhile and in whatever order hooks settle. The test
 * sets the clock.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { httpBearer, remembered, type Authenticator } from 'koa-with-auth'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { mockRequest } from 'koa-with-auth/testing'
import { run } from '../support/models/treeRuns.js'
import { tree } from '../support/models/trees.js'
import { occurring, runs } from '../support/runs/samples.js'

const MAX_AGE = 1000

type Step =
  | { readonly do: 'ask'; readonly token: string }
  | { readonly do: 'settle'; readonly which: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'toggle'; readonly token: string }
  | { readonly do: 'forget'; readonly token: string }

const token = fc.constantFrom('a', 'b')
const steps: fc.Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.oneof(
    { arbitrary: token.map((one): Step => ({ do: 'ask', token: one })), weight: 5 },
    { arbitrary: fc.nat(5).map((which): Step => ({ do: 'settle', which })), weight: 4 },
    { arbitrary: fc.constantFrom(1, 400, 999, 1000).map((ms): Step => ({ do: 'wait', ms })), weight: 2 },
    { arbitrary: token.map((one): Step => ({ do: 'toggle', token: one })), weight: 1 },
    { arbitrary: token.map((one): Step => ({ do: 'forget', token: one })), weight: 1 },
  ),
  { minLength: 5, maxLength: 60 },
)

/** One call of the hook, and the state of the world at that time. */
interface Call {
  readonly token: string
  readonly at: number
  readonly step: number
  readonly answer: { readonly token: string; readonly call: number; readonly expiresAt: number } | false
  readonly settle: () => void
}

beforeEach(() => {
  vi.useFakeTimers({ now: 0, toFake: ['Date', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const seen = { served: 0, joined: 0, refused: 0, forgotten: 0 }

const play = async (all: ReadonlyArray<Step>, late: boolean): Promise<void> => {
  vi.setSystemTime(0)
  const good = new Map([['a', true], ['b', true]]) // prettier-ignore
  const calls: Call[] = []
  const pending: Call[] = []
  const forgotten: Array<{ readonly step: number; readonly ended: (call: Call) => boolean }> = []
  const asked: Array<Promise<void>> = []
  let now = 0
  let step = 0
  const bearer = httpBearer({
    authenticate: (_request, sent) => {
      const answer = good.get(sent) === true && { token: sent, call: calls.length, expiresAt: now + 1500 }
      let settle = () => {}
      const settled = new Promise<typeof answer>((resolve) => (settle = () => resolve(answer)))
      const call: Call = { token: sent, at: now, step, answer, settle }
      calls.push(call)
      if (!late) return answer
      pending.push(call)
      return settled
    },
  })
  const cache = remembered<{ token: string }>({ maxAge: MAX_AGE })
  const a = cache(bearer)
  const ask = async (sent: string): Promise<void> => {
    const begun = { step, at: now, calls: calls.length }
    const result = await a.evaluate(mockRequest({ fields: [['Authorization', `Bearer ${sent}`]] }))
    const own = calls[begun.calls]
    if (E.isLeft(result)) {
      // A refusal is the state of this credential while this request was under way
      seen.refused++
      expect(result.left._tag).toBe('invalid')
      const refusing = calls.filter((call) => call.token === sent && call.answer === false)
      expect(refusing.some((call) => call === own || late)).toBe(true)
      return
    }
    const principal = result.right as { token: string; call: number }
    const call = calls[principal.call]!
    // Never the result of another credential
    expect([principal.token, call.token]).toStrictEqual([sent, sent])
    // Never older than the window, nor than the principal's own end
    expect(begun.at - call.at).toBeLessThan(MAX_AGE)
    // Never from before it was forgotten
    const before = forgotten.filter((one) => one.step <= begun.step && one.step > call.step && one.ended(call))
    expect(before).toStrictEqual([])
    if (call.step < begun.step) seen.served++
    if (forgotten.length > 0) seen.forgotten++
  }
  for (const one of all) {
    step++
    if (one.do === 'ask') {
      const before = pending.filter((call) => call.token === one.token).length
      asked.push(ask(one.token))
      const behind = pending.filter((call) => call.token === one.token)
      const open = behind
        .filter(({ step: since }) => !forgotten.some((past) => past.step > since))
        .filter(({ at }) => now - at < MAX_AGE)
      // Single flight
      expect(open.length).toBeLessThanOrEqual(1)
      if (before > 0 && behind.length === before) seen.joined++
    } else if (one.do === 'settle' && pending.length > 0) {
      pending.splice(one.which % pending.length, 1)[0]?.settle()
      await new Promise(setImmediate)
    } else if (one.do === 'wait') {
      now += one.ms
      vi.advanceTimersByTime(one.ms)
    } else if (one.do === 'toggle') good.set(one.token, good.get(one.token) !== true)
    else if (one.do === 'forget') {
      // Forgets what was kept of this token, and what was under way
      const underWay = new Set(pending)
      forgotten.push({ step, ended: (call) => call.token === one.token || underWay.has(call) })
      cache.forget((principal) => principal.token === one.token)
    }
  }
  for (const call of pending) call.settle()
  await Promise.all(asked)
}

describe('remembered', () => {
  it('M-01 admits only what the hook accepted for this credential, within the window, and not forgotten since', async () => {
    await fc.assert(
      fc.asyncProperty(steps, fc.boolean(), (all, late) => play(all, late)),
      { numRuns: runs(1000) },
    )
    // Each of these occurred often
    for (const [name, count] of Object.entries(seen)) expect(count, name).toBeGreaterThan(occurring(200))
  })

  it('decides like the tree itself, the first and the second time, for any tree', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const plain = await run([of], (a) => a)
        const first = await run([of], (a) => remembered({ maxAge: MAX_AGE })(a))
        expect(first).toStrictEqual(plain)
        const cache = remembered({ maxAge: MAX_AGE })
        const second = await run([of], (a) => twice(cache(a)))
        expect(second.result).toStrictEqual(plain.result)
        // No other hook is called
        expect(new Set(second.calls)).toStrictEqual(new Set(plain.calls))
      }),
      { numRuns: runs(500) },
    )
  })
})

// Evaluated twice; the second result counts
const twice = (a: Authenticator<unknown>): Authenticator<unknown> =>
  Object.assign((request: Parameters<typeof a>[0]) => a(request), {
    description: a.description,
    evaluate: async (request: Parameters<typeof a>[0]) => {
      await a.evaluate(request)
      return a.evaluate(request)
    },
  })
