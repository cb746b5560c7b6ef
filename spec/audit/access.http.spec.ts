/**
 * A request without credentials gets in to exactly those operations that the audit calls public, optional or undecided.
 */
import fc from 'fast-check'
import type { RouterInstance } from '@koa/router'
import Koa from 'koa'
import { audit, seal, type AuditedOperation } from 'koa-with-auth/audit'
import { describe, expect, it } from 'vitest'
import { pathPattern } from '../../src/audit/paths.js'
import { grow, tree, type Tree } from '../support/models/auditTrees.js'
import { callsOf, get } from '../support/models/levels.js'
import { serve } from '../support/servers/server.js'

let current: RouterInstance | undefined
const served = serve(() => new Koa().use((ctx, next) => current!.routes()(ctx as never, next)))

/** Sends a request without credentials. Returns the status, and which operations ran. */
const bare = async (router: RouterInstance, method: string, path: string) => {
  current = router
  const ids = [...router.stack.keys()].map(String)
  ids.forEach(callsOf)
  const { status, headers } = await get(served.port, path, undefined, { method })
  return { status, by: headers['x-by'], ran: ids.filter((id) => callsOf(id) > 0) }
}

const methodOf = ({ method }: AuditedOperation) => (method === 'ALL' ? 'PUT' : method)

// Random trees have few of these
const narrower: Tree = {
  prefix: '',
  mountedAt: '',
  level: 'unset',
  call: 'unset',
  isFilledLate: false,
  content: [
    { method: 'get', path: '/x', decision: 'public' },
    { method: 'get', path: '/:id', decision: 'bearer' },
  ],
}

describe('the audit agrees with the router', () => {
  it('law: the first operation that matches a request without credentials answers, and it runs if it is not guarded', async () => {
    const seen = { guarded: 0, optional: 0, public: 0, undecided: 0, shadowed: 0, narrower: 0 }
    await fc.assert(
      fc.asyncProperty(tree, async (one) => {
        const router = grow(one)
        const { operations } = audit(router)
        // One method a layer, so each line of the audit is one layer
        expect(operations).toHaveLength(router.stack.length)
        for (const [at, operation] of operations.entries()) {
          const request = pathPattern(operation.path, {})!.samples[at % 2 === 0 ? 0 : 1]!
          const method = methodOf(operation)
          const first = router.stack.findIndex((layer) => layer.methods.includes(method) && layer.match(request))
          const { access } = operations[first]!
          const answer = await bare(router, method, request)
          const expected =
            access === 'guarded'
              ? { status: 401, by: undefined, ran: [] }
              : { status: 200, by: `${first}`, ran: [`${first}`] }
          expect([request, answer]).toEqual([request, expected])
          seen[access]++
          if (first !== at) seen.shadowed++
          // The audit names the operation that answered instead, unless it is the narrower one
          const isNamed = operation.shadowedBy.some((shadow) => shadow.operation === operations[first]!.operation)
          if (first !== at && !isNamed) {
            seen.narrower++
            const [narrow, wide] = [router.stack[first]!, router.stack[at]!]
            const own = pathPattern(operations[first]!.path, {})!.samples.filter((sample) => narrow.match(sample))
            expect(own.filter((sample) => !wide.match(sample))).toEqual([])
            expect(narrow.methods.filter((each) => !wide.methods.includes(each))).toEqual([])
          }
        }
      }),
      { numRuns: 200, examples: Array.from({ length: 16 }, (): [Tree] => [narrower]) },
    )
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(15)
  })

  it('law: a sealed router admits requests without credentials to what was listed, and to nothing else', async () => {
    const seen = { sealed: 0, refused: 0, in: 0, out: 0 }
    await fc.assert(
      fc.asyncProperty(tree, fc.infiniteStream(fc.boolean()), async (one, coins) => {
        const router = grow(one)
        const { operations } = audit(router)
        const open = operations.filter(({ access }) => access === 'public' || access === 'optional')
        const listed = open.map(({ operation }) => operation).filter(() => !coins.next().value || !coins.next().value)
        try {
          seal(router, { public: listed })
          seen.sealed++
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError)
          seen.refused++
          return
        }
        for (const operation of operations) {
          for (const request of pathPattern(operation.path, {})!.samples) {
            const method = methodOf(operation)
            const { by, ran } = await bare(router, method, request)
            if (by === undefined) {
              expect(ran).toEqual([])
              seen.out++
              continue
            }
            seen.in++
            expect(listed).toContain(operations[Number(by)]!.operation)
            // No guarded operation should answer, unless the listed one has the narrower path
            expect(operations[Number(by)]!.access).not.toBe('undecided')
          }
        }
      }),
      { numRuns: 200 },
    )
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(15)
  })
})
