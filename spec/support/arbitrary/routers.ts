/**
 * Routers with levels as a fast-check arbitrary: nested, guarded at any level, each with what its operations demand.
 */
import Router, { type RouterInstance } from '@koa/router'
import fc, { type Arbitrary } from 'fast-check'
import { constantTimeEqual } from '../../../src/core/constantTimeEqual.js'
import { httpBearer } from '../../../src/authenticators/httpBearer.js'
import { withAuth } from '../../../src/koa/withAuth.js'

/** An operation of a router, and who must be let in. */
export interface PlannedOperation {
  readonly method: string
  /** The target, with all prefixes. */
  readonly path: string
  /** The bearer token that it demands; `undefined` where anyone may call. What it answers is that token, or `public`. */
  readonly token: string | undefined
}

/** A router, and its operations in order. */
export interface PlannedRouter {
  readonly router: RouterInstance
  readonly operations: ReadonlyArray<PlannedOperation>
}

// What a level decides: nothing, that anyone may call, or a token
type Decision = 'inherit' | 'public' | 'require'

interface OperationPlan {
  readonly method: 'get' | 'post' | 'delete'
  readonly decision: Decision
}

interface RouterPlan {
  readonly own: Decision
  readonly operations: ReadonlyArray<OperationPlan>
  readonly children: ReadonlyArray<{ readonly registration: Decision; readonly router: RouterPlan }>
}

const decision: Arbitrary<Decision> = fc.constantFrom('inherit', 'require', 'public')

const DEPTH = 2

const planOf = (depth: number): Arbitrary<RouterPlan> =>
  fc.record({
    own: decision,
    operations: fc.array(fc.record({ method: fc.constantFrom('get', 'post', 'delete'), decision }), {
      minLength: 1,
      maxLength: 3,
    }),
    children:
      depth === 0
        ? fc.constant([])
        : fc.array(fc.record({ registration: decision, router: planOf(depth - 1) }), { maxLength: 2 }),
  })

const guardOf = (token: string) =>
  withAuth(httpBearer({ authenticate: (_request, sent) => constantTimeEqual(sent, token) && { token } }))

const tokenAt = (place: string): string => `token-of-${place.replaceAll('/', '-')}`

// What a level makes of what is above it: `null` is public, `undefined` decides nothing
type Demand = string | null | undefined

const demandOf = (decided: Decision, place: string): Demand =>
  decided === 'inherit' ? undefined : decided === 'public' ? null : tokenAt(place)

const guarded = (demand: Demand, router: RouterInstance): RouterInstance =>
  demand === undefined ? router : demand === null ? withAuth(null)(router) : guardOf(demand)(router)

interface Demanding {
  readonly method: string
  readonly path: string
  readonly demand: Demand
}

const guardedOperation = (
  router: RouterInstance,
  { method, decision: decided }: OperationPlan,
  path: string,
): Demand => {
  const demand = demandOf(decided, `${router.opts.prefix ?? ''}${path}`)
  const answer = (ctx: { body: unknown; readonly request: object }): void => {
    ctx.body = tokenIn(Reflect.get(ctx.request, 'auth'))
  }
  if (demand === undefined) router[method](path, answer)
  else if (demand === null) router[method](path, withAuth(null), answer)
  else router[method](path, guardOf(demand), answer)
  return demand
}

const tokenIn = (auth: unknown): unknown =>
  typeof auth === 'object' && auth !== null && 'token' in auth ? auth.token : 'public'

// `registration` is what the call decides that mounts it; it overrides what the router says of itself
const built = (plan: RouterPlan, place: string, registration: Decision) => {
  const own = demandOf(plan.own, place)
  const registered = demandOf(registration, `${place}-registration`)
  const level = registered === undefined ? own : registered
  const router = guarded(own, new Router({ prefix: place }))
  const operations = plan.operations.map((operation, at): Demanding => {
    const path = `/o${at}`
    const demand = guardedOperation(router, operation, path)
    return { method: operation.method.toUpperCase(), path: `${place}${path}`, demand }
  })
  const inner = plan.children.flatMap((child, at): ReadonlyArray<Demanding> => {
    const made = built(child.router, `/c${at}`, child.registration)
    router.use(made.router.routes())
    return made.operations.map((one) => ({ ...one, path: `${place}${one.path}` }))
  })
  const settled = [...operations, ...inner].map((one) => ({
    ...one,
    demand: one.demand === undefined ? level : one.demand,
  }))
  return { router: guarded(registered, router), operations: settled }
}

/**
 * Routers with an operation or more, nested some levels deep, guarded at operations, routers and where they are mounted; each
 * with what its operations demand by the rule: the innermost decision wins, and nothing decided is public.
 */
export const routers = (): Arbitrary<PlannedRouter> =>
  fc.tuple(planOf(DEPTH), decision).map(([plan, registration]) => {
    const { router, operations } = built(plan, '/api', registration)
    return { router, operations: operations.map(({ demand, ...one }) => ({ ...one, token: demand ?? undefined })) }
  })
