/**
 * Trees with every combinator compared with a model, for several requests: what is counted, late, over or never
 * settles.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { mockRequest } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { defaults } from '../../src/core/Settings.js'
import { guardHeadersOf } from '../../src/koa/responseHeaders.js'
import { respondFailure } from '../../src/koa/respond.js'
import { challengeLines, statusOf, type Log, type Tree } from '../support/models/evaluator.js'
import { keepingTree, steps, type Step } from '../support/models/aroundTrees.js'
import { stoppedClock, stoppedTimers, type Clock } from '../support/runs/clock.js'
import { repeated } from '../support/models/repeatedRuns.js'
import { fieldsOf } from '../support/models/trees.js'
import { occurring, runs } from '../support/runs/samples.js'

const TREES = runs(1500)

const seen = { passed: 0, throttled: 0, forged: 0, late: 0, sync: 0, recovered: 0 }

type Settled = ReturnType<typeof stoppedTimers>

const play = async (clock: Clock, settled: Settled, tree: Tree, all: ReadonlyArray<Step>): Promise<void> => {
  const { authenticator, calls, next } = repeated(tree, clock)
  for (const [at, step] of all.entries()) {
    const { verdict, log, tree: met } = next(step, at)
    const request = mockRequest({
      method: 'POST',
      remoteAddress: step.address,
      fields: fieldsOf([met], step.crossSite),
    })
    const evaluation = authenticator.evaluate(request)
    expect(evaluation instanceof Promise).toBe(log.late)
    const result = await settled(evaluation)
    expect(calls).toStrictEqual(log.calls)
    if (verdict.tag === 'pass') expect(result).toStrictEqual(E.right(verdict.principal))
    else if (E.isLeft(result)) {
      expect(result.left._tag).toBe(verdict.tag)
      void respondFailure(request.ctx, result.left, defaults, guardHeadersOf(authenticator.description).whenRefused)
      expect(request.ctx.status).toBe(statusOf(verdict))
      if (request.ctx.status < 429) {
        expect([request.ctx.res.getHeader('WWW-Authenticate') ?? []].flat()).toStrictEqual(challengeLines(verdict))
      }
    } else expect.fail(`passed, where it is ${verdict.tag}`)
    count(verdict.tag, log)
  }
}

const count = (tag: string, log: Log): void => {
  if (tag === 'pass') seen.passed++
  if (tag === 'throttled' || tag === 'forged') seen[tag]++
  seen[log.late ? 'late' : 'sync']++
  if (log.world?.recovered === true) seen.recovered++
}

describe('random trees with state, and requests one after the other', () => {
  it('verdict, principal, failure, status, challenges, and calls of hooks agree with the model', async () => {
    const clock = stoppedClock()
    const settled = stoppedTimers()
    await fc.assert(
      fc.asyncProperty(keepingTree, steps, (tree, all) => play(clock, settled, tree, all)),
      { numRuns: TREES },
    )
    // Each of these occurred often
    for (const [name, times] of Object.entries(seen)) expect(times, name).toBeGreaterThan(occurring(5))
  })
})
