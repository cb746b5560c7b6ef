/** The ways in which tracers change the functions of a router's layers, and routers that are built meanwhile. */
import Router from '@koa/router'
import fc, { type Arbitrary } from 'fast-check'
import type { Guard } from 'koa-with-auth'
import { handler } from './levels.js'

type AnyFunction = (...args: unknown[]) => unknown

/** A wrapper with the properties of the function, like that of dd-trace. */
export const copying = (f: Function): AnyFunction => {
  const wrapper = bare(f)
  for (const key of Reflect.ownKeys(f)) {
    Object.defineProperty(wrapper, key, Object.getOwnPropertyDescriptor(f, key)!)
  }
  return wrapper
}

/** A wrapper without properties, like that of OpenTelemetry, but around every function. */
const bare =
  (f: Function): AnyFunction =>
  (...args) =>
    Reflect.apply(f, undefined, args)

/** How functions are added to a router, and what a tracer does to those that exist. */
export interface Tracer {
  readonly register: (f: Function) => Function
  readonly trace: (router: Router) => void
}

const asItIs = <F extends Function>(f: F): F => f
const nothing = (): void => {}

/** No tracer, for the comparison with all others. */
export const noTracer: Tracer = { register: asItIs, trace: nothing }

/** Replaces functions in the same arrays. */
const inPlace =
  (wrap: (f: Function) => Function) =>
  (router: Router): void => {
    for (const { stack } of router.stack) for (const [at, f] of stack.entries()) stack[at] = wrap(f) as never
  }

/** Replaces the arrays. */
const anew =
  (wrap: (f: Function) => Function) =>
  (router: Router): void => {
    for (const layer of router.stack) layer.stack = layer.stack.map((f) => wrap(f)) as never
  }

/** Tracers, by what they do. */
export const tracers: Readonly<Record<string, Tracer>> = {
  'copies properties, in place': { register: asItIs, trace: inPlace(copying) },
  'copies properties, into other arrays': { register: asItIs, trace: anew(copying) },
  'copies properties, as functions come in': { register: copying, trace: nothing },
  'drops properties, in place': { register: asItIs, trace: inPlace(bare) },
  'drops properties, into other arrays': { register: asItIs, trace: anew(bare) },
  'drops properties, as functions come in': { register: bare, trace: nothing },
}

// --- plans

/** One thing that is done to a router. Guards are named by their index. */
export type Step =
  | { readonly _tag: 'Route'; readonly guard: number | undefined }
  | { readonly _tag: 'Level'; readonly guard: number }
  | { readonly _tag: 'Trace' }
  | { readonly _tag: 'Hook' }
  | { readonly _tag: 'Mount'; readonly steps: ReadonlyArray<Step> }

/** Plans of routers, with this many guards. */
export const plans = (guards: number): Arbitrary<ReadonlyArray<Step>> =>
  fc.letrec<{ step: Step; steps: ReadonlyArray<Step> }>((tie) => ({
    step: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.record({
        _tag: fc.constant('Route' as const),
        guard: fc.option(fc.nat(guards - 1), { nil: undefined, freq: 2 }),
      }),
      fc.record({ _tag: fc.constant('Level' as const), guard: fc.nat(guards - 1) }),
      fc.record({ _tag: fc.constant('Trace' as const) }),
      fc.record({ _tag: fc.constant('Hook' as const) }),
      fc.record({ _tag: fc.constant('Mount' as const), steps: tie('steps') }),
    ),
    steps: fc.array(tie('step'), { minLength: 2, maxLength: 6 }),
  })).steps

/** The router of a plan. Its operations answer with the principal. `guardAt` is called at each use. */
export const routerOf = (
  plan: ReadonlyArray<Step>,
  id: string,
  { register, trace }: Tracer,
  guardAt: (at: number) => Guard<unknown>,
): Router => {
  let made = 0
  const build = (steps: ReadonlyArray<Step>): Router => {
    let router = new Router()
    for (const step of steps) {
      switch (step._tag) {
        case 'Route': {
          const functions = [...(step.guard === undefined ? [] : [guardAt(step.guard)]), handler(id)].map(register)
          router.get(`/r${made++}/:p`, ...(functions as never[]))
          break
        }
        case 'Level':
          router = guardAt(step.guard)(router)
          break
        case 'Trace':
          trace(router)
          break
        case 'Hook':
          router.param('p', (_value, _ctx, next) => next())
          break
        case 'Mount':
          router.use(`/m${made++}`, build(step.steps).routes())
      }
    }
    return router
  }
  return build(plan)
}
