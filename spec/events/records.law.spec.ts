/** Listeners change no decision, and a record says what was decided. */
import * as E from 'fp-ts/lib/Either.js'
import fc from 'fast-check'
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { Attempt } from '../../src/core/Exchange.js'
import { leaves } from '../../src/core/Description.js'
import { resultWriter, recordingLeaves, type Draft } from '../../src/koa/watching.js'
import { build, tree } from '../support/models/trees.js'
import { requestOf, run } from '../support/models/treeRuns.js'

describe('a witnessed authenticator', () => {
  it('decides like the plain one, calls the same hooks, and demands the same', async () => {
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        expect(await run([of], recordingLeaves)).toStrictEqual(await run([of], (a) => a))
      }),
      { numRuns: 1000 },
    )
  })
})

describe('a record', () => {
  it('has the failure and the branches of the result, in order, or the schemes that passed', async () => {
    const outcomes = new Set<string>()
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const a = recordingLeaves(build(of))
        const request = requestOf([of])
        const attempt = new Attempt(request)
        const result = await a.evaluate(request, attempt)
        const record: Partial<Draft> = {}
        resultWriter(a.description)(record as Draft, result, attempt.passed ?? [], request)
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
        const passed = attempt.passed?.length
        await a.evaluate(request)
        expect(attempt.passed?.length).toBe(passed)
      }),
      { numRuns: 1000 },
    )
    const expected = ['accepted', 'anonymous', 'forbidden', 'raised', 'refused', 'throttled', 'unavailable']
    expect([...outcomes].sort()).toStrictEqual(expected)
  })
})
