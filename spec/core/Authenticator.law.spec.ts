/** Alternatives: `alt` is a semigroup of authenticators. The first one that passes wins (spec 5.5). */
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { anyOf, type Authenticator } from 'koa-with-auth'
import { alt } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { build, folded, observe, plan, request, shape, type Plan } from '../support/models/arbitraries.js'
import { runs } from '../support/runs/samples.js'

const plans = fc.array(plan, { minLength: 1, maxLength: 5 })

describe('alt', () => {
  it('is associative: verdict, principal, failure, branches, challenges, calls and description', async () => {
    await fc.assert(
      fc.asyncProperty(shape, shape, shape, request, async (a, b, c, by) => {
        const left = (calls: string[]) =>
          pipe(
            build(a, calls),
            alt(() => build(b, calls)),
            alt(() => build(c, calls)),
          )
        const right = (calls: string[]) =>
          pipe(
            build(a, calls),
            alt(() =>
              pipe(
                build(b, calls),
                alt(() => build(c, calls)),
              ),
            ),
          )
        expect(await observe(left, by)).toStrictEqual(await observe(right, by))
      }),
      { numRuns: runs(500) },
    )
  })
})

const membersOf = (list: ReadonlyArray<Plan>, calls: string[]) =>
  // Safe: the arbitraries make no empty list
  list.map((one) => build(one, calls)) as unknown as readonly [Authenticator<string>, ...Authenticator<string>[]]

describe('anyOf', () => {
  it('5.5.1 of a list is the fold of alt', async () => {
    await fc.assert(
      fc.asyncProperty(plans, request, async (list, by) => {
        const listed = await observe((into) => anyOf(membersOf(list, into)), by)
        expect(listed).toStrictEqual(await observe((into) => folded(membersOf(list, into)), by))
      }),
    )
  })
})
