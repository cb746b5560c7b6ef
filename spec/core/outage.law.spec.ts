/** `timeout` and `recoverUnavailable`: an outage stays an outage, and no other credential is tried by itself. */
import { either as E, option as O } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { anyOf, apiKeyCookie, AuthError } from 'koa-with-auth'
import { firstPresent, fromFunction, flatMap, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { make } from '../../src/core/Authenticator.js'
import { concludedInTime } from '../../src/core/outage.js'
import { useLevels } from '../support/servers/levelServer.js'
import { mockRequest } from 'koa-with-auth/testing'
import { tree } from '../support/models/trees.js'
import { leaf, run, withLeaves } from '../support/models/treeRuns.js'
import { row } from '../support/models/row.js'

const never = () => new Promise<string>(() => {})

describe('timeout', () => {
  it('does not change sync results, and stays sync', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const prompt = withLeaves(of, (each) => ({ ...each, late: false }))
        const limited = await run([prompt], (a) => timeout(1)(a))
        expect(limited).toStrictEqual(await run([prompt], (a) => a))
      }),
    )
    const request = mockRequest()
    const plain = fromFunction(() => 'anna')
    expect(timeout(1)(plain).evaluate(request)).toStrictEqual(plain.evaluate(request))
  })

  it('leaves no timer behind when a result is there', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    for (const answer of [() => Promise.resolve('anna'), () => Promise.reject(new Error('bug'))]) {
      await timeout(60_000)(fromFunction(answer)).evaluate(mockRequest())
      expect(vi.getTimerCount()).toBe(0)
    }
  })

  it('concludes once, although the result comes after the time limit; its timer does not hold the process', async () => {
    const timer = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => timer.mockRestore())
    let answer = (_result: E.Either<never, string>): void => {}
    const late = new Promise<E.Either<never, string>>((resolve) => (answer = resolve))
    const concluded: unknown[] = []
    await concludedInTime(late, 1, (result) => concluded.push(result._tag))
    // Safe: it is what it returns
    const made = timer.mock.results[timer.mock.calls.findIndex(([, ms]) => ms === 1)]?.value as NodeJS.Timeout
    expect(made.hasRef()).toBe(false)
    answer(E.right('anna'))
    await late
    await Promise.resolve()
    expect(concluded).toStrictEqual(['Left'])
  })

  it('does not change results in time', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        expect(await run([of], (a) => timeout(10_000)(a))).toStrictEqual(await run([of], (a) => a))
      }),
    )
  })

  it.each([
    ['anyOf', anyOf],
    ['firstPresent', firstPresent],
  ] as const)('makes slower results unavailable, and %s calls no later hook', async (_name, group) => {
    const { result, calls } = await run([leaf('slow'), leaf('weak')], (slow, weak) =>
      group([pipe(slow, flatMap(never), timeout(5)), weak]),
    )
    expect(result).toMatchObject(E.left({ _tag: 'unavailable' }))
    expect(calls).toStrictEqual(['slow'])
  })

  it('A-31 an evaluation that rejects is an exception, without waiting for the time limit', async () => {
    const error = new Error('bug')
    const rejecting = make(fromFunction(() => 'anna').description, () => Promise.reject(error))
    expect(await timeout(1000)(rejecting).evaluate(mockRequest())).toMatchObject(E.left({ _tag: 'raised', error }))
  })

  it('of two the shorter limit counts', async () => {
    await run([leaf('l0')], (a) => pipe(a, flatMap(never), timeout(20), timeout(600_000)))
    await run([leaf('l0')], (a) => pipe(a, flatMap(never), timeout(600_000), timeout(20)))
  })
})

describe('recoverUnavailable', () => {
  it('does not change other results, and in an outage f alone decides', async () => {
    const recovered = { yes: 0 }
    await fc.assert(
      fc.asyncProperty(tree, fc.boolean(), async (of, late) => {
        const asked: unknown[] = []
        // A plain function is refused for a write from another site
        const method = JSON.stringify(of).includes('"forged"') ? 'POST' : 'GET'
        const plain = await run([of], (a) => a, method)
        const robust = await run(
          [of],
          (a) =>
            recoverUnavailable((_request, error) => {
              asked.push(error)
              return late ? Promise.resolve('cached') : 'cached'
            })(a),
          method,
        )
        expect([robust.calls, robust.description]).toStrictEqual([plain.calls, plain.description])
        if (E.isRight(plain.result) || plain.result.left._tag !== 'unavailable') {
          expect(robust.result).toStrictEqual(plain.result)
          expect(asked).toStrictEqual([])
          return
        }
        recovered.yes++
        expect(asked).toStrictEqual([plain.result.left])
        // A write from another site, if browsers could send what was recovered
        expect(E.isRight(robust.result) ? robust.result.right : robust.result.left._tag).toBe(
          JSON.stringify(of).includes('"forged"') ? 'forged' : 'cached',
        )
      }),
      { numRuns: 500 },
    )
    expect(recovered.yes).toBeGreaterThan(10)
  })

  const down = leaf('l0', { outcome: 'unavailable' })
  it.each([
    row('false', () => false, 'invalid'),
    row('None', () => O.none, 'invalid'),
    row('a promise of null', async () => null, 'invalid'),
    row('a failure', () => E.left(AuthError.expired), 'expired'),
    row('another outage', () => E.left(AuthError.unavailable(9)), 'unavailable'),
    row('an exception', () => { throw new Error('cache') }, 'raised'), // prettier-ignore
    row('a rejection', () => Promise.reject(new Error('cache')), 'raised'),
  ])('f is judged like a hook: $description is $expected, with the challenge', async ({ input, expected }) => {
    const f: () => unknown = input
    const { result } = await run([down], (a) => recoverUnavailable(f)(a))
    expect(result).toMatchObject(E.left({ _tag: expected, challenge: { scheme: 'l0' } }))
  })

  it('calls f with the request itself; f may be another authenticator', async () => {
    const { result } = await run([down, leaf('cache')], (a, cache) => recoverUnavailable(cache)(a))
    expect(result).toStrictEqual(E.right('cache'))
    const request = mockRequest({ fields: [['Cookie', 'key=k']] })
    const asked: unknown[] = []
    const cookie = apiKeyCookie({ authenticate: () => E.left(AuthError.unavailable()) })
    void recoverUnavailable((by) => asked.push(by))(cookie).evaluate(request)
    expect(asked[0]).toBe(request)
  })

  it('does not recover from an outage of a function that is outside of it', async () => {
    const { result } = await run([leaf('l0')], (a) =>
      pipe(
        a,
        recoverUnavailable(() => 'cached'),
        flatMap(() => E.left(AuthError.unavailable())),
      ),
    )
    expect(result).toMatchObject(E.left({ _tag: 'unavailable' }))
  })
})

describe('the response to an outage', () => {
  const served = useLevels()
  const down = leaf('down', { outcome: 'unavailable' })

  it.each(['absent', 'invalid', 'expired', 'insufficient'] as const)(
    'decision "Failures" has no challenge, whatever failed before: %s',
    async (outcome) => {
      const sent = outcome === 'absent' ? 'nothing' : 'value'
      const before = leaf('before', { outcome, sent, ...(outcome === 'insufficient' && { scope: ['admin'] }) })
      const answer = await served.answerTo([{ require: { node: 'anyOf', members: [before, down] } }])
      expect(answer).toMatchObject({ status: 503, challenges: [], ran: 0 })
    },
  )
})
