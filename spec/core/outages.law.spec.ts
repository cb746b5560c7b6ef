/**
 * Outages that are derived from the answers of a store: `begun` and `over` alternate, and an answer to a question that
 * was asked before a change is ignored.
 */
import fc from 'fast-check'
import { on } from 'koa-with-auth/events'
import { describe, expect, it } from 'vitest'
import { watchOutages } from '../../src/core/memory.js'
import { within } from '../../src/stores/within.js'

// Questions are asked in order; their answers come in any order
const step = fc.oneof(
  fc.constant('ask' as const),
  fc.record({ which: fc.nat(7), what: fc.constantFrom('answered', 'failed', 'silent') }),
)

describe('the outages of a store', () => {
  it('law: `begun` and `over` alternate, and each follows from a question that was asked after the last change', () => {
    let seen = 0
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const events: string[] = []
        const {
          ask: asked,
          answered,
          failed,
        } = watchOutages<'failed' | 'silent'>(
          () => events.push('begun'),
          () => events.push('over'),
        )
        const open: { readonly number: number; readonly at: number }[] = []
        // A model of the same rule
        const expected: string[] = []
        let changedAt = -1
        steps.forEach((one, at) => {
          if (one === 'ask') return void open.push({ number: asked(), at })
          const [question] = open.splice(one.which % (open.length || 1), 1)
          if (question === undefined) return
          if (one.what === 'answered') answered(question.number)
          else failed(question.number, one.what === 'failed' ? 'failed' : 'silent')
          const isDown = expected.at(-1) === 'begun'
          if (question.at > changedAt && isDown === (one.what === 'answered')) {
            expected.push(isDown ? 'over' : 'begun')
            changedAt = at
          }
        })
        seen = Math.max(seen, events.length)
        expect(events).toStrictEqual(expected)
      }),
      { numRuns: 1000 },
    )
    expect(seen).toBeGreaterThan(2)
  })

  it.each([
    ['an answer', (): unknown => 'late'],
    [
      'a failure',
      (): never => {
        throw new Error('late')
      },
    ],
  ])('%s that comes after the silence was reported is ignored', async (_name, late) => {
    const events: string[] = []
    const end = on('store-outage', ({ event, ...rest }) =>
      events.push('reason' in rest ? `${event}: ${rest.reason}` : event),
    )
    const timed = within('api-keys', 20)
    let answer = (): void => {}
    const waiting = new Promise<void>((resolve) => (answer = resolve)).then(late)
    await expect(timed(() => new Promise(() => {}))).rejects.toThrow('did not answer')
    await expect(timed(() => waiting)).rejects.toThrow('did not answer')
    answer()
    await waiting.catch(() => {})
    expect(events).toStrictEqual(['begun: silent'])
    await timed(() => Promise.resolve())
    end()
    expect(events).toStrictEqual(['begun: silent', 'over'])
  })
})
