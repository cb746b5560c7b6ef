/** Outages as the answers of a store say: begun and over take turns, and what was asked before a change changes nothing. */
import fc from 'fast-check'
import { onStoreOutage } from 'koa-with-auth/events'
import { describe, expect, it } from 'vitest'
import { outagesOf, type Asked } from '../../src/stores/outages.js'

// Questions are asked in order; their answers come in any order
const step = fc.oneof(
  fc.constant('ask' as const),
  fc.record({ which: fc.nat(7), what: fc.constantFrom('answered', 'failed', 'silent') }),
)

describe('outagesOf', () => {
  it('laws: begun and over take turns; each is proven by a question that was asked after the last change', () => {
    let seen = 0
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const events: string[] = []
        const end = onStoreOutage(({ event }) => events.push(event))
        const ask = outagesOf('api-keys')
        const open: { readonly asked: Asked; readonly at: number }[] = []
        // the same, said once more: what a change needs
        const expected: string[] = []
        let changedAt = -1
        steps.forEach((one, at) => {
          if (one === 'ask') return void open.push({ asked: ask(), at })
          const [question] = open.splice(one.which % (open.length || 1), 1)
          if (question === undefined) return
          if (one.what === 'answered') question.asked.answered()
          else question.asked.failed(one.what === 'failed' ? 'failed' : 'silent')
          const isDown = expected.at(-1) === 'begun'
          if (question.at > changedAt && isDown === (one.what === 'answered')) {
            expected.push(isDown ? 'over' : 'begun')
            changedAt = at
          }
        })
        end()
        seen = Math.max(seen, events.length)
        expect(events).toStrictEqual(expected)
      }),
      { numRuns: 1000 },
    )
    expect(seen).toBeGreaterThan(2)
  })

  it('an answer that comes too late, after the silence was noted, is none', () => {
    const events: string[] = []
    const end = onStoreOutage(({ event }) => events.push(event))
    const ask = outagesOf('api-keys')
    ask().failed('silent')
    const late = ask()
    late.failed('silent')
    late.answered()
    end()
    expect(events).toStrictEqual(['begun'])
  })
})
