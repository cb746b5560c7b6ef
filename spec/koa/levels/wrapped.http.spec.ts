/**
 * Spec 5.6 if something wraps the functions of layers (R06). A tracer that keeps their properties changes nothing. A
 * tracer that drops them closes operations whose level is unknown, and the error says so. Two copies of the package
 * behave like one.
 */
import Router from '@koa/router'
import fc from 'fast-check'
import Koa, { type Context, type Next } from 'koa'
import { also, apiKeyHeader, withAuth, type Guard } from 'koa-with-auth'
import { describe, expect, test, vi } from 'vitest'
import { addUnchecked, callsOf, get, guardOf, handler } from '../../support/models/levels.js'
import { serve } from '../../support/servers/server.js'
import { noTracer, plans, routerOf, tracers, type Step, type Tracer } from '../../support/models/wrapping.js'

const keyOf = (name: string) =>
  apiKeyHeader({ paramName: `X-${name}`, authenticate: (_request, sent) => sent === name && name })
const membersOf = { a: keyOf('a'), b: keyOf('b'), c: keyOf('c') }
type Factory = (auth: unknown) => Guard<unknown>
const guardsMadeBy = (make: Factory, adding: typeof also): ReadonlyArray<Guard<unknown>> => [
  make(null),
  make(membersOf.a),
  make(membersOf.b),
  make(adding(membersOf.b)),
  make(adding(membersOf.c)),
]
const guards = guardsMadeBy(guardOf, also)
const guardAt = (at: number): Guard<unknown> => guards[at]!

const served = serve(() => new Koa().use((ctx: Context, next: Next) => current(ctx, next)))
let current: (ctx: Context, next: Next) => unknown = (_ctx, next) => next()

/** The responses of each operation of a router to every set of keys; none if the router cannot be built. */
const answersOf = async (make: () => Router): Promise<ReadonlyArray<ReadonlyArray<string>>> => {
  let router: Router
  try {
    router = make()
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return []
  }
  current = router.routes() as never
  const paths = router.stack.filter(({ methods }) => methods.length > 0).map(({ path }) => String(path))
  return Promise.all(
    paths.map((path) =>
      Promise.all(
        [[], ['a'], ['b'], ['a', 'b'], ['a', 'b', 'c']].map(async (sent) => {
          const headers = Object.fromEntries(sent.map((name) => [`x-${name}`, name]))
          const { status, text } = await get(served.port, path.replaceAll(':p', '1'), undefined, { headers })
          return `${status} ${status === 200 ? text : ''}`
        }),
      ),
    ),
  )
}

const tracedRoot =
  (plan: ReadonlyArray<Step>, tracer: Tracer, at = guardAt) =>
  (): Router => {
    const root = new Router().use('/root', routerOf(plan, 'wrapped', tracer, at).routes())
    // Before it is mounted in the application, and again after that
    tracer.trace(root)
    return root
  }

const numRuns = 60

describe('R06 a tracer that copies properties changes nothing', () => {
  for (const [name, tracer] of Object.entries(tracers).filter(([does]) => does.startsWith('copies'))) {
    test(name, () =>
      fc.assert(
        fc.asyncProperty(plans(guards.length), async (plan) => {
          const expected = await answersOf(tracedRoot(plan, noTracer))
          expect(await answersOf(tracedRoot(plan, tracer))).toEqual(expected)
        }),
        { numRuns },
      ),
    )
  }
})

describe('R06 a tracer that drops properties opens nothing', () => {
  for (const [name, tracer] of Object.entries(tracers).filter(([does]) => does.startsWith('drops'))) {
    test(name, async () => {
      let same = 0
      await fc.assert(
        fc.asyncProperty(plans(guards.length), async (plan) => {
          const expected = await answersOf(tracedRoot(plan, noTracer))
          callsOf('wrapped')
          served.errors.length = 0
          const answers = await answersOf(tracedRoot(plan, tracer))
          const admitted = answers.flat().filter((answer) => answer.startsWith('200')).length
          expect(callsOf('wrapped')).toBe(admitted)
          for (const [operation, each] of answers.entries()) {
            for (const [at, answer] of each.entries()) {
              const without = expected[operation]?.[at]
              if (answer === without) same++
              // An operation that admits no request first demands what a level around it demands
              else expect(answer, `operation ${operation}, keys ${at}, else ${without}`).toMatch(/^(?:500|401)/)
            }
          }
          for (const error of served.errors) expect(String(error)).toContain('Symbol.for("koa-with-auth/guard")')
        }),
        { numRuns },
      )
      expect(same).toBeGreaterThan(0)
    })
  }

  test('if a level has arranged the layers, nothing changes, because it remembers their functions', () => {
    const levelFirst = plans(guards.length).map((plan): ReadonlyArray<Step> => {
      const leveled = (steps: ReadonlyArray<Step>): ReadonlyArray<Step> => [
        { _tag: 'Level', guard: 0 },
        ...steps
          // If a hook of a parent is wrapped, too, its function is unknown, and the level is refused
          .filter(({ _tag }) => _tag !== 'Hook')
          .map((step): Step => (step._tag === 'Mount' ? { ...step, steps: leveled(step.steps) } : step)),
      ]
      return leveled(plan)
    })
    return fc.assert(
      fc.asyncProperty(levelFirst, async (plan) => {
        const expected = await answersOf(tracedRoot(plan, noTracer))
        for (const name of ['drops properties, in place', 'drops properties, into other arrays']) {
          expect(await answersOf(tracedRoot(plan, tracers[name]!)), name).toEqual(expected)
        }
      }),
      { numRuns },
    )
  })

  test('the guard of a level stays, if a `param` hook is added later', async () => {
    const passed = '200 {"ran":"x","auth":"a"}'
    const level = guardAt(1)(new Router()) as Router
    level.get('/:p', handler('x'))
    tracers['drops properties, in place']!.trace(level)
    level.param('p', (_p, _ctx, next) => next())
    const answers = await answersOf(() => (guardAt(2)(new Router()) as Router).use('/root', level.routes()))
    expect(answers).toEqual([['401 ', passed, '401 ', passed, passed]])
  })
})

describe('R06 two copies of the package are one', () => {
  test('levels, guards and `also` work the same, whichever copy made them', async () => {
    vi.resetModules()
    const other = await import('koa-with-auth')
    expect(other.withAuth).not.toBe(withAuth)
    const theirs = guardsMadeBy(other.withAuth as Factory, other.also)
    const named = fc.constantFrom(...Object.keys(tracers).slice(0, 3))
    await fc.assert(
      fc.asyncProperty(plans(guards.length), named, async (plan, name) => {
        const expected = await answersOf(tracedRoot(plan, noTracer))
        let turn = 0
        const alternating = (at: number): Guard<unknown> => (turn++ % 2 === 0 ? guards : theirs)[at]!
        expect(await answersOf(tracedRoot(plan, noTracer, alternating))).toEqual(expected)
        turn = 1
        expect(await answersOf(tracedRoot(plan, tracers[name]!, alternating))).toEqual(expected)
      }),
      { numRuns },
    )
  })

  test('guards of both copies in one operation are a mistake that is seen when it is written, and admits no request', async () => {
    vi.resetModules()
    const other = await import('koa-with-auth')
    const both = [guards[1] as never, (other.withAuth as Factory)(null) as never] as const
    expect(() => new Router().get('/x/:p', ...both, () => {})).toThrow('GET /x/:p: withAuth(...) is in it twice')
    const twice = addUnchecked(new Router(), '/x/:p', ...both, () => {})
    const answers = await answersOf(() => twice)
    expect(answers).toEqual([['401 ', '500 ', '401 ', '500 ', '500 ']])
  })
})
