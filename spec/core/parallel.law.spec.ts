/**
 * Trees with every combinator, and parallel requests: hooks settle in any order, time passes, and clients disconnect. No caller gets a
 * principal of another credential or of another request.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import type { Request } from 'koa'
import type { AuthError } from 'koa-with-auth'
import { mockRequest } from 'koa-with-auth/testing'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { keepingTree } from '../support/models/aroundTrees.js'
import { leavesOf, type Tree } from '../support/models/evaluator.js'
import {
  buildParallel,
  isDue,
  type Answer,
  type Call,
  type Raised,
  type Visit,
} from '../support/models/parallelRuns.js'
import { hasFewCases, samples } from '../support/runs/samples.js'

const TREES = samples(1500)

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'] })
})
afterEach(() => {
  vi.useRealTimers()
})

type Event =
  | {
      readonly do: 'visit'
      readonly values: ReadonlyArray<string>
      readonly crossSite: boolean
      readonly address: string
    }
  | { readonly do: 'settle'; readonly which: number }
  | { readonly do: 'leave'; readonly which: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'set'; readonly ms: number }

const visit = fc.record({
  do: fc.constant('visit' as const),
  // To each leaf in turn
  values: fc.array(fc.constantFrom('v0', 'v0', 'v1', 'v2', ''), { minLength: 3, maxLength: 3 }),
  crossSite: fc.constantFrom(false, false, false, true),
  address: fc.constantFrom('192.0.2.1', '192.0.2.1', '192.0.2.2'),
})
const events: fc.Arbitrary<ReadonlyArray<Event>> = fc.array(
  fc.oneof(
    { arbitrary: visit, weight: 8 },
    { arbitrary: fc.record({ do: fc.constant('settle' as const), which: fc.nat(9) }), weight: 6 },
    { arbitrary: fc.record({ do: fc.constant('leave' as const), which: fc.nat(9) }), weight: 1 },
    {
      arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(1, 300, 999, 1000, 20_000) }),
      weight: 2,
    },
    { arbitrary: fc.record({ do: fc.constant('set' as const), ms: fc.constantFrom(-60_000, 60_000) }), weight: 1 },
  ),
  { minLength: 5, maxLength: 40 },
)
const answers: fc.Arbitrary<ReadonlyArray<Answer>> = fc.array(
  fc.record({
    outcome: fc.oneof(
      { arbitrary: fc.constant('pass' as const), weight: 3 },
      { arbitrary: fc.constant('unavailable' as const), weight: 2 },
      fc.constantFrom('invalid' as const, 'expired' as const, 'raised' as const),
    ),
    late: fc.constantFrom(true, true, false),
  }),
  { minLength: 1, maxLength: 12 },
)

const seen = { passed: 0, recovered: 0, refused: 0, throttled: 0, unavailable: 0, raised: 0 }

const turns = async (): Promise<void> => {
  await new Promise(setImmediate)
}

const play = async (tree: Tree, all: ReadonlyArray<Event>, said: ReadonlyArray<Answer>): Promise<void> => {
  const visits = new Map<Request, Visit>()
  const ids = leavesOf(tree).map(({ id }) => id)
  let asked = 0
  const { authenticator, calls } = buildParallel(
    tree,
    (request) => visits.get(request)!,
    () => said[asked++ % said.length]!,
  )
  const under: Array<Promise<void>> = []
  const open = new Set<Call>()

  const judge = (own: Visit, result: E.Either<AuthError, unknown>): void => {
    if (E.isLeft(result)) {
      const { left } = result
      const tag = left._tag
      // An exception comes from a hook, for this credential
      if (left._tag === 'raised') expect([...own.sent.values()]).toContain((left.error as Raised).value)
      seen[tag === 'throttled' || tag === 'unavailable' || tag === 'raised' ? tag : 'refused']++
      return
    }
    expect(isDue(tree, result.right, { visit: own, calls })).toBe(true)
    const text = JSON.stringify(result.right) ?? ''
    seen.passed++
    if (text.includes('"recovered"')) seen.recovered++
  }

  const enter = (one: Extract<Event, { readonly do: 'visit' }>): void => {
    const sent = new Map(ids.map((id, at) => [id, one.values[at % 3]!] as const).filter(([, value]) => value !== ''))
    const request = mockRequest({
      method: 'POST',
      fields: [
        ['Host', 'api.example'],
        ['Sec-Fetch-Site', one.crossSite ? 'cross-site' : 'same-origin'],
        ...[...sent].map(([id, value]) => [`x-${id}`, value] as const),
      ],
    })
    Object.defineProperty(request.socket, 'remoteAddress', { value: one.address, configurable: true })
    const own: Visit = { at: performance.now(), sent, crossSite: one.crossSite }
    visits.set(request, own)
    under.push(Promise.resolve(authenticator.evaluate(request)).then((result) => judge(own, result)))
  }

  for (const one of all) {
    if (one.do === 'visit') enter(one)
    else if (one.do === 'wait') vi.advanceTimersByTime(one.ms)
    else if (one.do === 'set') vi.setSystemTime(Date.now() + one.ms)
    else if (one.do === 'leave') {
      const gone = [...visits.keys()][one.which]
      gone?.socket.destroy()
      if (gone !== undefined) Object.defineProperty(gone.socket, 'remoteAddress', { value: undefined })
    } else {
      const waiting = calls.filter((call) => call.late && !open.has(call))
      const call = waiting[one.which % Math.max(1, waiting.length)]
      if (call !== undefined) open.add(call)
      call?.settle()
    }
    await turns()
  }
  // Every request gets a result in the end
  for (let at = 0; at < calls.length; at++) {
    calls[at]!.settle()
    await turns()
  }
  await Promise.all(under)
}

describe('parallel requests', () => {
  it('get only what their own credentials were accepted for, in time, and each gets a result', async () => {
    await fc.assert(fc.asyncProperty(keepingTree, events, answers, play), { numRuns: TREES })
    // Each of these occurred often
    if (hasFewCases) return
    for (const [name, times] of Object.entries(seen)) expect(times, name).toBeGreaterThan(10)
  })
})
