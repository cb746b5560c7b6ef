/**
 * Plans of layers: random programs of routes, guards, `also`, `then`, re-guarding and nested mounts. A model that knows
 * nothing of routers says what each operation requires, which levels decided it, and which middleware runs after it.
 */
import Router, { type RouterInstance } from '@koa/router'
import fc from 'fast-check'
import { option as O } from 'fp-ts'
import { also, authenticator, Challenge, withAuth, type Guard } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { challengesOf } from '../../src/core/Description.js'
import * as Requirement from '../../src/core/Requirement.js'
import { operationsOf } from '../../src/koa/operations.js'
import { planOf, writtenIn } from '../../src/koa/plan.js'
import { runs } from '../support/runs/samples.js'

// --- programs

/** What `withAuth` is given. */
interface Written {
  readonly kind: 'auth' | 'also' | 'null'
  readonly scheme: string
  /** How many functions run after it. */
  readonly then: number
}

type Step =
  | { readonly _tag: 'Route'; readonly own: Written | undefined; readonly ahead: boolean }
  | { readonly _tag: 'Level'; readonly written: Written }
  | { readonly _tag: 'Hook' }
  | { readonly _tag: 'Mount'; readonly steps: ReadonlyArray<Step> }

const schemes = ['a', 'b', 'c', 'd'] as const
const written: fc.Arbitrary<Written> = fc.record({
  kind: fc.constantFrom('auth', 'also', 'null'),
  scheme: fc.constantFrom(...schemes),
  then: fc.nat(2),
})
const maybeWritten = fc.option(written, { nil: undefined })
const { steps: programs } = fc.letrec<{ step: Step; steps: ReadonlyArray<Step> }>((tie) => ({
  step: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ _tag: fc.constant('Route' as const), own: maybeWritten, ahead: fc.boolean() }),
    fc.record({ _tag: fc.constant('Level' as const), written }),
    fc.record({ _tag: fc.constant('Hook' as const) }),
    fc.record({ _tag: fc.constant('Mount' as const), steps: tie('steps') }),
  ),
  steps: fc.array(tie('step'), { minLength: 1, maxLength: 7 }),
}))

// --- the model

interface Decided extends Written {
  readonly by: string
  readonly steps: ReadonlyArray<string>
}

/** What an operation shows of itself. */
interface Seen {
  readonly schemes: ReadonlyArray<string>
  readonly levels: ReadonlyArray<string>
  /** The functions after the guard, each with the number of authenticators that were added below its level. */
  readonly then: ReadonlyArray<readonly [name: string, above: number]>
}

/** The decisions around an operation, the outermost first. */
const seenOf = (decisions: ReadonlyArray<Decided>): Seen =>
  decisions.reduce<Seen>(
    (outer, { kind, scheme, by, steps }) => {
      const own = steps.map((name) => [name, 0] as const)
      if (kind === 'null') return { schemes: [], levels: [by], then: [] }
      if (kind === 'auth') return { schemes: [scheme], levels: [by], then: own }
      return {
        schemes: [...outer.schemes, scheme],
        levels: [...outer.levels, by],
        then: [...outer.then.map(([name, above]) => [name, above + 1] as const), ...own],
      }
    },
    { schemes: [], levels: [], then: [] },
  )

// --- both at once

interface Operation {
  readonly path: string
  readonly own: Decided | undefined
  readonly levels: ReadonlyArray<Decided>
}

interface Built {
  readonly router: RouterInstance
  readonly operations: ReadonlyArray<Operation>
}

const credentialOf = (scheme: string) =>
  authenticator({ challenge: Challenge.make(scheme), ambient: false, extract: () => O.none, authenticate: () => false })
const credentials = new Map(schemes.map((scheme) => [scheme as string, credentialOf(scheme)]))

const handle = (): void => {}
const named = (name: string) =>
  Object.defineProperty((_ctx: unknown, next: () => Promise<unknown>) => next(), 'name', { value: name })

const build = (program: ReadonlyArray<Step>): Built => {
  let made = 0
  const decided = ({ kind, scheme, then }: Written, by: string): [Guard<unknown>, Decided] => {
    const steps = kind === 'null' ? [] : Array.from({ length: then }, () => `step ${made++}`)
    const member = credentials.get(scheme)!
    const guard =
      kind === 'null'
        ? withAuth(null)
        : withAuth((kind === 'also' ? also(member) : member) as typeof member, { then: steps.map(named) })
    return [guard as Guard<unknown>, { kind, scheme, then, by, steps }]
  }
  const built = (steps: ReadonlyArray<Step>): Built => {
    const prefix = `/r${made++}`
    let router: RouterInstance = new Router({ prefix })
    let operations: Operation[] = []
    let level: Decided | undefined
    for (const step of steps) {
      const around = level === undefined ? [] : [level]
      switch (step._tag) {
        case 'Route': {
          const path = `/o${made++}/:p`
          const [guard, own] = step.own === undefined ? [] : decided(step.own, 'operation')
          const functions = [...(step.ahead ? [named('ahead')] : []), ...(guard === undefined ? [] : [guard]), handle]
          router.get(path, ...(functions as never[]))
          operations.push({ path: `${prefix}${path}`, own, levels: around })
          break
        }
        case 'Level': {
          const previous = level
          const [guard, mine] = decided(step.written, `router ${prefix}`)
          router = guard(router)
          level = mine
          const above = (levels: Operation['levels']) => [mine, ...levels.filter((each) => each !== previous)]
          operations = operations.map((one) => ({ ...one, levels: above(one.levels) }))
          break
        }
        case 'Hook':
          router.param('p', (_value, _ctx, next) => next())
          break
        case 'Mount': {
          const child = built(step.steps)
          router.use(child.router.routes())
          for (const { path, own, levels } of child.operations)
            operations.push({ path: `${prefix}${path}`, own, levels: [...around, ...levels] })
        }
      }
    }
    return { router, operations }
  }
  return built(program)
}

const shownBy = ({ router }: Built): ReadonlyArray<Seen & { readonly path: unknown }> =>
  operationsOf(router).map(({ path, requirement, levels, guard }) => {
    const description = Requirement.effective(requirement)?.description
    return {
      path,
      schemes: description === undefined ? [] : challengesOf(description).map(({ scheme }) => scheme),
      levels,
      then: (guard?.then ?? []).map(({ run, above }) => [run.name, above] as const),
    }
  })

const numRuns = runs(1500)

describe('plans of layers', () => {
  test('what is enforced is the fold of the levels and of the operation, in every program', () => {
    fc.assert(
      fc.property(programs, (program) => {
        const both = build(program)
        const expected = both.operations.map(({ path, own, levels }) => ({
          path,
          ...seenOf(own === undefined ? levels : [...levels, own]),
        }))
        // all schemes of one list are offered once each
        const once = ({ schemes: all, ...rest }: Seen) => ({ ...rest, schemes: [...new Set(all)] })
        expect(shownBy(both).map(once)).toEqual(expected.map(once))
      }),
      { numRuns },
    )
  })

  test('the functions of a layer are those of its plan: one guard, hooks after it, the handler last', () => {
    fc.assert(
      fc.property(programs, (program) => {
        for (const layer of build(program).router.stack) {
          const plan = planOf(layer)
          const functions = writtenIn(plan)
          expect(layer.stack).toEqual(plan.functions)
          expect(functions.filter((f) => f === plan.guard)).toHaveLength(plan.guard === undefined ? 0 : 1)
          expect(functions.at(-1)).toBe(handle)
          const hooks = functions.flatMap((f, at) => (typeof Reflect.get(f, 'param') === 'string' ? [at] : []))
          const isArranged = plan.levels.length > 0
          if (isArranged) for (const at of hooks) expect(at).toBeGreaterThan(functions.indexOf(plan.guard!))
        }
      }),
      { numRuns: numRuns / 5 },
    )
  })
})
