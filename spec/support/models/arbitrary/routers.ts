/**
 * Routers with levels as a fast-check arbitrary: nested, guarded at any level, each with the demands of its operations.
 */
import Router, { type RouterInstance } from '@koa/router'
import fc, { type Arbitrary } from 'fast-check'
import { constantTimeEqual } from '../../../../src/crypto/secrets.js'
import { httpBearer } from '../../../../src/kinds/http.js'
import { withAuth } from '../../../../src/koa/withAuth.js'

/** An operation of a router, and the token that it demands. */
export interface PlannedOperation {
  readonly method: string
  /** The target, with all prefixes. */
  readonly path: string
  /** The bearer token that it demands; `undefined` if anyone may call. It answers with this token, or with `public`. */
  readonly token: string | undefined
}

/** A router, and its operations in order. */
export interface PlannedRouter {
  readonly router: RouterInstance
  readonly operations: ReadonlyArray<PlannedOperation>
}

// The decision of a level: none, public, or a token
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

// The result of a level and the levels above it: `null` is public, `undefined` is undecided
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

// `registration` is the decision of the call that mounts it, which overrides that of the router
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
 * Routers with at least one operation, nested up to some levels, guarded at operations, at routers and at registration
 * calls. Each has the demands of its operations: the innermost decision wins, and undecided is public.
 */
export const routers = (): Arbitrary<PlannedRouter> =>
  fc.tuple(planOf(DEPTH), decision).map(([plan, registration]) => {
    const { router, operations } = built(plan, '/api', registration)
    return { router, operations: operations.map(({ demand, ...one }) => ({ ...one, token: demand ?? undefined })) }
  })
