/** Listeners change no decision, and a record says what was decided. */
import * as E from 'fp-ts/lib/Either.js'
import fc from 'fast-check'
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { exchangeOfResponse } from '../../src/core/Exchange.js'
import { leaves } from '../../src/core/Description.js'
import { make, type Authenticator } from '../../src/core/Authenticator.js'
import type { Decision } from '../../src/core/events.js'
import { decisionRecorder } from '../../src/koa/watching.js'
import { build, tree } from '../support/models/trees.js'
import { requestOf, run } from '../support/models/treeRuns.js'
import { hasFewCases, runs } from '../support/runs/samples.js'

/** It decides as a guard with a listener does. */
const watched = (a: Authenticator<unknown>) => {
  const recorder = decisionRecorder(a, [])
  return make(a.description, (attempt) => recorder.evaluate({ attempt, at: 0 }))
}

describe('a witnessed authenticator', () => {
  it('decides like the plain one, calls the same hooks, and demands the same', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        expect(await run([of], watched)).toStrictEqual(await run([of], (a) => a))
      }),
      { numRuns: runs(1000) },
    )
  })
})

describe('a record', () => {
  it('has the failure and the branches of the result, in order, or the schemes that passed', async () => {
    const outcomes = new Set<string>()
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const a = build(of)
        const recorder = decisionRecorder(a, [])
        const { ctx } = requestOf([of])
        const begun = recorder.begin(ctx)
        const result = await recorder.evaluate(begun)
        recorder.settled(ctx, begun, result)
        // Safe: it is decided, and not published before the response
        const record = exchangeOfResponse(ctx).decision as Decision
        outcomes.add(String(record.outcome))
        if (E.isRight(result)) {
          expect(record).not.toHaveProperty('failure')
          expect(['accepted', 'anonymous']).toContain(record.outcome)
        } else {
          // of a group whose credentials did not all come, none was wrong
          expect(record.failure).toBe(result.left.why === 'partial' ? 'absent' : result.left._tag)
          const expected = AuthError.branchesOf(result.left).map(({ _tag, skipped }) => ({ _tag, skipped }))
          const branches = record.branches?.map(({ failure: _tag, skipped }) => ({ _tag, skipped }))
          if (leaves(a.description).length > 1) expect(branches).toStrictEqual(expected)
        }
        // A decision of its own notes nothing here
        const { attempt } = begun
        const passed = attempt.notes?.passed.length
        await watched(a).evaluate(ctx.request)
        expect(attempt.notes?.passed.length).toBe(passed)
      }),
      { numRuns: runs(1000) },
    )
    if (hasFewCases) return
    const expected = ['accepted', 'anonymous', 'forbidden', 'raised', 'refused', 'throttled', 'unavailable']
    expect([...outcomes].sort()).toStrictEqual(expected)
  })
})
