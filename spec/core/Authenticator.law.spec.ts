/** Alternatives: `alt` is a semigroup of authenticators. The first one that passes wins (spec 5.5). */
import { either as E } from 'fp-ts'
import { pipe } from 'fp-ts/lib/function.js'
import fc from 'fast-check'
import { anyOf, AuthError, type Authenticator } from 'koa-with-auth'
import { alt } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { isForged } from '../../src/core/CrossOrigin.js'
import { defaults } from '../../src/core/Settings.js'
import { build, folded, observe, plan, plansOf, request, shape, type Plan } from '../support/models/arbitraries.js'
import type { Request } from 'koa'
import { runs } from '../support/runs/samples.js'

const plans = fc.array(plan, { minLength: 1, maxLength: 5 })

// The rule as a loop: which hooks are called, and who passes
const byHand = (members: ReadonlyArray<Plan>, by: Request) => {
  const calls: string[] = []
  for (const { name, sent, answer, ambient } of members) {
    if (!sent) continue
    calls.push(name)
    if ('throws' in answer) return { calls, passed: undefined, last: 'raised' }
    if (E.isRight(answer)) {
      if (ambient && isForged(by, defaults)) continue
      return { calls, passed: answer.right, last: undefined }
    }
    if (AuthError.stops(answer.left)) return { calls, passed: undefined, last: answer.left._tag }
  }
  return { calls, passed: undefined, last: undefined }
}

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

  it('5.5.2 the first that passes wins, and no later hook is called; unavailable and raised are final', async () => {
    await fc.assert(
      fc.asyncProperty(shape, shape, request, async (a, b, by) => {
        const { result, calls } = await observe(
          (into) =>
            pipe(
              build(a, into),
              alt(() => build(b, into)),
            ),
          by,
        )
        const expected = byHand([...plansOf(a), ...plansOf(b)], by)
        expect(calls).toStrictEqual(expected.calls)
        expect(E.isRight(result)).toBe(expected.passed !== undefined)
        if (E.isLeft(result) && expected.last !== undefined) expect(result.left._tag).toBe(expected.last)
      }),
      { numRuns: runs(500) },
    )
  })

  it('keeps the failure of every alternative that was tried, in order, each with its own challenge (B-06)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(plan, { selector: ({ name }) => name, minLength: 2 }),
        request,
        async (list, by) => {
          const { result } = await observe((into) => folded(membersOf(list, into)), by)
          fc.pre(E.isLeft(result) && !AuthError.stops(result.left))
          if (E.isRight(result)) return
          const branches = AuthError.branchesOf(result.left)
          expect(branches.map(({ challenge }) => challenge?.scheme)).toStrictEqual(list.map(({ name }) => name))
          for (const { challenge, _tag } of branches) expect(challenge?.parameters).toStrictEqual({ error: _tag })
          // of equals the first one: `insufficient` and `notFound` are equal
          const strongest = branches.find((one) => branches.every((other) => AuthError.Ord.compare(one, other) >= 0))
          expect(result.left._tag).toBe(strongest?._tag)
        },
      ),
    )
  })

  it('an alternative that is added at the end never changes a pass', async () => {
    await fc.assert(
      fc.asyncProperty(shape, shape, request, async (a, b, by) => {
        const alone = await build(a).evaluate(by)
        fc.pre(E.isRight(alone))
        expect(await alt(() => build(b))(build(a)).evaluate(by)).toStrictEqual(alone)
      }),
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

  it('of an object is anyOf of the list, and reports who passed', async () => {
    await fc.assert(
      fc.asyncProperty(plans, request, async (list, by) => {
        const record = Object.fromEntries(list.map((one, at) => [`m${at}`, one]))
        const tagged = await observe(
          (into) => anyOf(Object.fromEntries(Object.entries(record).map(([key, one]) => [key, build(one, into)]))),
          by,
        )
        const listed = await observe((into) => anyOf(membersOf(list, into)), by)
        expect(tagged.calls).toStrictEqual(listed.calls)
        expect(tagged.description).toStrictEqual(listed.description)
        if (E.isLeft(listed.result)) {
          expect(tagged.result).toStrictEqual(listed.result)
          return
        }
        const via = Object.keys(record).find((key) => record[key]?.name === listed.calls.at(-1))
        expect(tagged.result).toMatchObject(E.right({ principal: listed.result.right }))
        if (new Set(list.map(({ name }) => name)).size === list.length) {
          expect(tagged.result).toStrictEqual(E.right({ via, principal: listed.result.right }))
        }
      }),
    )
  })
})
