/** A law of levels: `withAuth(b)(withAuth(a)(r))` behaves like `withAuth(b)(r)`, whatever `r` contains. */
import Router, { type RouterInstance } from '@koa/router'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { appOf, bearerFor, callsOf, count, get, guardOf, handler, tokenOf } from '../../support/models/levels.js'
import { listen } from '../../support/servers/server.js'

const realms = ['a', 'b', 'c', 'd'] as const
const guards = [guardOf(null), ...realms.map((realm) => guardOf(bearerFor(realm)))]

/** One thing that is added to a router. */
type Step =
  | { readonly _tag: 'Route'; readonly path: string; readonly guard: number | undefined }
  | { readonly _tag: 'Paths' }
  | { readonly _tag: 'Use' }
  | { readonly _tag: 'Param' }
  | {
      readonly _tag: 'Mount'
      readonly at: string
      readonly guard: number | undefined
      readonly steps: ReadonlyArray<Step>
    }

const guard = fc.option(fc.nat(guards.length - 1), { nil: undefined })
const { steps } = fc.letrec<{ step: Step; steps: ReadonlyArray<Step> }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ _tag: fc.constant('Route' as const), path: fc.constantFrom('/x', '/y/:id', '/:id'), guard }),
    fc.record({ _tag: fc.constant('Paths' as const) }),
    fc.record({ _tag: fc.constant('Use' as const) }),
    fc.record({ _tag: fc.constant('Param' as const) }),
    fc.record({
      _tag: fc.constant('Mount' as const),
      at: fc.constantFrom('/m', '/m/:m'),
      guard,
      steps: tie('steps'),
    }),
  ),
  steps: fc.array(tie('step'), { maxLength: 5 }),
}))

const fill = (router: RouterInstance, todo: ReadonlyArray<Step>): RouterInstance => {
  for (const step of todo) {
    switch (step._tag) {
      case 'Route':
        if (step.guard === undefined) router.get(step.path, handler('law'))
        else router.get(step.path, guards[step.guard]!, handler('law'))
        break
      case 'Paths':
        // One parameter only: the layers of an array share one stack, so hooks of one layer run in the others
        router.all(['/y/:id', '/z/:id'], handler('law'))
        break
      case 'Use':
        // With a path, because a router without one cannot be mounted below a prefix with parameters
        router.use('/y', (_ctx, next) => next())
        break
      case 'Param':
        router.param('id', (_id, _ctx, next) => {
          count('hook')
          return next()
        })
        break
      case 'Mount': {
        const child = fill(new Router(), step.steps)
        router.use(step.at, (step.guard === undefined ? child : guards[step.guard]!(child)).routes())
      }
    }
  }
  return router
}

const targets = ['/x', '/y/1', '/z/1', '/1', '/m/x', '/m/1/x', '/m/y/1', '/m/1/m/1/x', '/m/1/y/1', '/none']

// Before version 15, the layers of an array of paths share their functions: a plain router runs one hook twice, a
// guarded one once
const countsHooks = !/-1[234]$/.test(process.env['KOA_ROUTER'] ?? '')

const behaviour = async (port: number, at: string) => {
  const seen: unknown[] = []
  for (const target of targets) {
    for (const token of [undefined, ...realms.map(tokenOf)]) {
      const { status, challenge, text } = await get(port, `${at}${target}`, token)
      const ran = { ran: callsOf('law'), ...(countsHooks && { hooks: callsOf('hook') }) }
      seen.push({ target, token, status, challenge, text, ...ran })
    }
  }
  return seen
}

interface Case {
  readonly before: ReadonlyArray<Step>
  readonly between: ReadonlyArray<Step>
  readonly after: ReadonlyArray<Step>
  readonly first: number
  readonly second: number
}

const cases: fc.Arbitrary<Case> = fc.record({
  before: steps,
  between: steps,
  after: steps,
  first: fc.nat(guards.length - 1),
  second: fc.nat(guards.length - 1),
})

describe('laws of levels', () => {
  test('put-put: a second withAuth replaces the first, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ before, between, after, first, second }) => {
        const twice = fill(guards[second]!(fill(guards[first]!(fill(new Router(), before)), between)), after)
        const once = fill(guards[second]!(fill(fill(new Router(), before), between)), after)
        const root = new Router()
        root.use('/twice', twice.routes())
        root.use('/once', once.routes())
        const served = await listen(appOf(root.routes()))
        try {
          expect(await behaviour(served.port, '/twice')).toEqual(await behaviour(served.port, '/once'))
        } finally {
          await served.close()
        }
      }),
      { seed: 7, numRuns: 60 },
    )
  })

  test('put-get: an undecided operation has the last requirement of its router', async () => {
    const root = new Router()
    for (const [at, each] of guards.entries())
      root.use(`/g${at}`, each(fill(new Router(), [{ _tag: 'Paths' }])).routes())
    const served = await listen(appOf(root.routes()))
    for (const at of guards.keys()) {
      const { challenge } = await get(served.port, `/g${at}/z/1`)
      expect(challenge).toBe(at === 0 ? undefined : `Bearer realm="${realms[at - 1]}"`)
      expect(callsOf('law')).toBe(at === 0 ? 1 : 0)
    }
    await served.close()
  })
})
