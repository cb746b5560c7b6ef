/**
 * The whole interpreter compared with a truth table: the results of random trees and levels, in process and over HTTP.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { defaults } from '../../src/core/Settings.js'
import { guardHeadersOf } from '../../src/koa/responseHeaders.js'
import { respondFailure } from '../../src/koa/respond.js'
import { challengeLines, foldLevels, isMistake, outcomes, statusOf, verdictOf } from '../support/models/evaluator.js'
import type { Level, Log, Outcome, Verdict } from '../support/models/evaluator.js'
import { mockRequest } from 'koa-with-auth/testing'
import { anyTree, build, fieldsOf, levels, requirementOf, treesOf } from '../support/models/trees.js'
import { useLevels } from '../support/servers/levelServer.js'
import { hasAllCases, hasFewCases, samples } from '../support/runs/samples.js'

const TREES = samples(10_000, 1000)
const EACH_OUTCOME = TREES / 20
const EACH_VERDICT = TREES / 100
const OVER_HTTP = samples(1000, 100)
// A part of the cases is always the same, in which each outcome occurs
const part = hasAllCases ? {} : { seed: 7 }

const seen = () => Object.fromEntries(outcomes.map((outcome) => [outcome, 0])) as Record<Outcome, number>

/** What levels must result in: verdict, calls of hooks, and the response. */
const expectedOf = (of: ReadonlyArray<Level>) => {
  const log: Log = { calls: [], reached: [], late: false }
  const demanded = foldLevels(of)
  const verdict: Verdict = demanded === undefined ? { tag: 'pass', principal: undefined } : verdictOf(demanded, log)
  return { verdict, log, status: statusOf(verdict), challenges: challengeLines(verdict) }
}

const reported = ({ _tag, challenge }: AuthError) => ({ tag: _tag, scheme: challenge?.scheme })

describe('random requirement trees, 1,000 and in the slow tier 10,000', () => {
  it('verdict, principal, failure, branches, status, challenges, and calls of hooks agree with the table', async () => {
    const [reached, decided] = [seen(), seen()]
    await fc.assert(
      fc.asyncProperty(levels, async (of) => {
        const { verdict, log, status, challenges } = expectedOf(of)
        const calls: string[] = []
        const requirement = of.map((level) => requirementOf(level, calls)).reduce(Requirement.Monoid.concat)
        const request = mockRequest({ method: 'POST', fields: fieldsOf(treesOf(of)) })
        const authenticator = Requirement.effective(requirement)
        const evaluation = authenticator === undefined ? E.right(undefined) : authenticator.evaluate(request)
        expect(evaluation instanceof Promise).toBe(log.late)
        const result = await evaluation
        expect(calls).toStrictEqual(log.calls)
        if (verdict.tag === 'pass') expect(result).toStrictEqual(E.right(verdict.principal))
        else if (authenticator !== undefined && E.isLeft(result)) {
          expect(result.left._tag).toBe(verdict.tag)
          void respondFailure(request.ctx, result.left, defaults, guardHeadersOf(authenticator.description).whenRefused)
          expect(request.ctx.status).toBe(status)
          // A failure that ends a list has no branch for what was not tried. The response to an outage is in
          // outage.law.spec.ts.
          if (status !== 429 && status < 500) {
            expect(AuthError.branchesOf(result.left).map(reported)).toStrictEqual(
              verdict.branches.map(({ tag, scheme }) => ({ tag, scheme })),
            )
            expect([request.ctx.res.getHeader('WWW-Authenticate') ?? []].flat()).toStrictEqual(challenges)
          }
        } else expect.fail('passed')
        for (const outcome of log.reached) reached[outcome]++
        decided[verdict.tag]++
      }),
      { numRuns: TREES, ...part },
    )
    if (hasFewCases) return
    // Every outcome of a leaf and every verdict occurred
    for (const outcome of outcomes) {
      expect(reached[outcome], outcome).toBeGreaterThanOrEqual(EACH_OUTCOME)
      expect(decided[outcome], outcome).toBeGreaterThanOrEqual(EACH_VERDICT)
    }
  })

  it('a tree is refused when it is built exactly if an optional member is not last, or is demanded more of', () => {
    const refused = { yes: 0, no: 0 }
    fc.assert(
      fc.property(anyTree, (tree) => {
        const attempt = () => build(tree)
        if (isMistake(tree)) expect(attempt).toThrow(TypeError)
        else expect(attempt).not.toThrow()
        refused[isMistake(tree) ? 'yes' : 'no']++
      }),
      { numRuns: 2000 },
    )
    expect(refused.yes).toBeGreaterThan(200)
    expect(refused.no).toBeGreaterThan(200)
  })
})

const details: Readonly<Partial<Record<Outcome, string>>> = {
  forged: 'CSRF check Failed',
  insufficient: 'Forbidden',
  notFound: 'Not Found',
  throttled: 'Too Many Requests',
  unavailable: 'Service Unavailable',
}

describe('the same trees over HTTP, by routers in routers', () => {
  const served = useLevels()

  // and spec 5.5.3, 5.5.4: one table has all four
  it('5.5.1, 5.5.2 the answer, and the hooks and operations that run, agree with the table', async () => {
    const decided = seen()
    await fc.assert(
      fc.asyncProperty(levels, async (of) => {
        const { verdict, log, status, challenges } = expectedOf(of)
        const answer = await served.answerTo(of)
        expect(answer).toMatchObject({ status, calls: log.calls, ran: verdict.tag === 'pass' ? 1 : 0 })
        expect(answer.challenges).toStrictEqual(challenges)
        if (verdict.tag === 'pass') {
          expect(JSON.parse(answer.text)).toStrictEqual(JSON.parse(JSON.stringify({ auth: verdict.principal ?? null })))
        } else if (verdict.tag === 'raised') expect(answer.text).toBe('Internal Server Error')
        else expect(JSON.parse(answer.text)).toMatchObject({ status, detail: details[verdict.tag] ?? 'Unauthorized' })
        decided[verdict.tag]++
      }),
      { numRuns: OVER_HTTP, ...part },
    )
    if (hasFewCases) return
    for (const outcome of outcomes) expect(decided[outcome], outcome).toBeGreaterThan(OVER_HTTP / 200)
  })
})
