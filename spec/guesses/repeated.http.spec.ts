/**
 * Random trees that keep state, over HTTP: one authenticator guards an operation and a router, and both get requests in
 * turn.
 */
import Router from '@koa/router'
import fc from 'fast-check'
import type { Context } from 'koa'
import { withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { keepingTree, steps, type Step } from '../support/models/aroundTrees.js'
import { stoppedClock, type Clock } from '../support/runs/clock.js'
import { challengeLines, statusOf, type Tree } from '../support/models/evaluator.js'
import { authOf } from '../support/sites/guardedApp.js'
import { useRoutes } from '../support/servers/levelServer.js'
import { repeated } from '../support/models/repeatedRuns.js'
import { fieldsOf } from '../support/models/trees.js'

const served = useRoutes()

const seen = new Map<number, number>()

const play = async (clock: Clock, tree: Tree, all: ReadonlyArray<Step>): Promise<void> => {
  const { authenticator, calls, next } = repeated(tree, clock)
  let ran = 0
  const answer = (ctx: Context): void => {
    ran++
    ctx.body = { auth: authOf(ctx) ?? null }
  }
  // Safe: a router calls its functions with a Koa context
  const handle = answer as never
  const guard = withAuth(authenticator)
  const router = new Router()
  router.post('/operation', guard, handle)
  const level = guard(new Router()).post('/o', handle)
  router.use('/one', level.routes()).use('/two', level.routes())
  served.mount(router)
  for (const [at, given] of all.entries()) {
    const step = { ...given, address: '127.0.0.1' }
    const { verdict, log, tree: met } = next(step, at)
    ran = 0
    const path = ['/one/o', '/operation', '/two/o'][at % 3]!
    const answered = await served.post(path, fieldsOf([met], step.crossSite).flat())
    expect(calls).toStrictEqual(log.calls)
    const status = statusOf(verdict)
    expect([answered.status, ran]).toStrictEqual([status, verdict.tag === 'pass' ? 1 : 0])
    expect(answered.challenges).toStrictEqual(status < 429 ? challengeLines(verdict) : [])
    if (verdict.tag === 'pass') {
      expect(JSON.parse(answered.text)).toStrictEqual(JSON.parse(JSON.stringify({ auth: verdict.principal ?? null })))
    }
    seen.set(status, (seen.get(status) ?? 0) + 1)
  }
}

describe('one authenticator in several places, for several requests', () => {
  it('decides like separate ones: status, challenges, principal, hooks that are called, and whether the operation runs', async () => {
    const clock = stoppedClock()
    await fc.assert(
      fc.asyncProperty(keepingTree, steps, (tree, all) => play(clock, tree, all)),
      { numRuns: 150 },
    )
    // Each of these statuses occurred
    for (const status of [200, 401, 403, 429, 500, 503]) expect(seen.get(status), `${status}`).toBeGreaterThan(5)
  })
})
