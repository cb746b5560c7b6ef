/**
 * The six levels at which a requirement can be decided, every order in which they can be built, and which one must win.
 */
import { Agent, request as send } from 'node:http'
import Koa, { type Next } from 'koa'
import Router, { type RouterInstance } from '@koa/router'
import { httpBearer, withAuth, type Guard } from 'koa-with-auth'

// -------------------------------------------------------------------------------------
// calls: a refused request whose handler ran is a breach, even if it got a 401
// -------------------------------------------------------------------------------------

// Each spec file finds it empty: sharedProcess.ts
const kept = Symbol.for('koa-with-auth/calls of a spec file')
// Safe: nothing else is kept under this symbol
const calls = (): Map<string, number> => ((globalThis as { [kept]?: Map<string, number> })[kept] ??= new Map())

export const count = (id: string): void => {
  calls().set(id, (calls().get(id) ?? 0) + 1)
}

/** How often `id` ran since the last call. */
export const callsOf = (id: string): number => {
  const seen = calls().get(id) ?? 0
  calls().delete(id)
  return seen
}

/** A handler that counts its calls, and answers with its name and the principal. */
export const handler =
  (id: string) =>
  (ctx: { request: object; body: unknown }): void => {
    count(id)
    ctx.body = { ran: id, auth: 'auth' in ctx.request ? (ctx.request.auth ?? null) : null }
  }

/** `withAuth` for arguments that the compiler refuses, or does not know. */
export const guardOf: (auth: unknown) => Guard<unknown> = withAuth as (auth: unknown) => Guard<unknown>

/** Adds an operation as a program could that changes the stack of a layer, so nothing is checked when it is written. */
export const addUnchecked = <R extends Router>(router: R, path: string, first: unknown, ...others: unknown[]): R => {
  // Safe, both: the router calls them as middleware
  router.get(path, first as never)
  router.stack.at(-1)?.stack.push(...(others as never[]))
  return router
}

/** A bearer authenticator for one token, with its own realm. */
export const bearerFor = (realm: string) =>
  httpBearer({ realm, authenticate: (_request, token) => token === tokenOf(realm) && realm })

export const tokenOf = (realm: string): string => `token-of-${realm}`

// -------------------------------------------------------------------------------------
// levels
// -------------------------------------------------------------------------------------

/** From the innermost to the outermost. */
export const levels = [
  'operation',
  'child-registration',
  'child-router',
  'parent-registration',
  'parent-router',
  'application',
] as const
export type Level = (typeof levels)[number]

export const decisions = ['unset', 'auth', 'null'] as const
export type Decision = (typeof decisions)[number]
export type Combination = Readonly<Record<Level, Decision>>

/** All 3^6. */
export const combinations: ReadonlyArray<Combination> = levels.reduce<ReadonlyArray<Combination>>(
  (some, level) => some.flatMap((combination) => decisions.map((decision) => ({ ...combination, [level]: decision }))),
  [{} as Combination],
)

/** The rule: the first decision of operation, child registration, ..., application counts. Undecided is public. */
export const winner = (combination: Combination): Level | undefined => {
  const level = levels.find((each) => combination[each] !== 'unset')
  return level !== undefined && combination[level] === 'auth' ? level : undefined
}

/** A level whose token must not pass where another level decides; one that decides itself, if there is any. */
export const neighbourOf = (combination: Combination, level: Level): Level => {
  const at = levels.indexOf(level)
  const others = [...levels.slice(at + 1), ...levels.slice(0, at)]
  return others.find((each) => combination[each] === 'auth') ?? others[0]!
}

/** Every level has its own authenticator, whose realm shows which one decided. */
const guards = new Map(levels.map((level) => [level, guardOf(bearerFor(level))]))
const open = guardOf(null)

const deciding = (combination: Combination, level: Level): Guard<unknown> =>
  combination[level] === 'auth' ? guards.get(level)! : open

const wrap = (combination: Combination, level: Level, router: RouterInstance): RouterInstance =>
  combination[level] === 'unset' ? router : deciding(combination, level)(router)

// -------------------------------------------------------------------------------------
// orders
// -------------------------------------------------------------------------------------

/** When something is added to a router: to the plain one, the wrapped one, the registered one, or after `routes()`. */
export const moments = ['plain', 'wrapped', 'registered', 'served'] as const
export type Moment = (typeof moments)[number]

/** When the operation is added to the child, the child to the parent, and the parent to the root. */
export interface Order {
  readonly operation: Moment
  readonly child: Moment
  readonly parent: Exclude<Moment, 'registered'>
}

export const orders: ReadonlyArray<Order> = moments.flatMap((operation) =>
  moments.flatMap((child) =>
    (['plain', 'wrapped', 'served'] as const).map((parent): Order => ({ operation, child, parent })),
  ),
)

export const canonical: Order = { operation: 'plain', child: 'plain', parent: 'plain' }

export type Middleware = ReturnType<RouterInstance['routes']>

/** A router that is wrapped and registered, and gets its contents at one moment of that. */
const building = (
  base: RouterInstance,
  wraps: ReadonlyArray<readonly [Moment, Wrapping]>,
  moment: Moment,
  fill: (router: RouterInstance) => void,
): Middleware => {
  if (moment === 'plain') fill(base)
  const built = wraps.reduce((router, [reached, next]) => {
    const derived = next(router)
    if (moment === reached) fill(derived)
    return derived
  }, base)
  const routes = built.routes()
  if (moment === 'served') fill(built)
  return routes
}

type Wrapping = (router: RouterInstance) => RouterInstance

/** Three nested routers, under `/<id>`. Each level wraps one, and `register` adds an operation to the innermost. */
export const nested = (
  id: string,
  order: Order,
  at: (level: Level) => Wrapping,
  register: (router: RouterInstance) => void,
): Middleware => {
  const child = building(
    new Router(),
    [
      ['wrapped', at('child-router')],
      ['registered', at('child-registration')],
    ],
    order.operation,
    register,
  )
  const parent = building(
    new Router(),
    [
      ['wrapped', at('parent-router')],
      ['registered', at('parent-registration')],
    ],
    order.child,
    (router) => router.use('/c', child),
  )
  return building(new Router({ prefix: `/${id}` }), [['wrapped', at('application')]], order.parent, (router) =>
    router.use('/p', parent),
  )
}

/** An application of three routers, under `/<id>`, with one operation whose calls are counted under `id`. */
export const build = (id: string, combination: Combination, order: Order): Middleware =>
  nested(
    id,
    order,
    (level) => (router) => wrap(combination, level, router),
    (router) =>
      combination.operation === 'unset'
        ? router.get('/o', handler(id))
        : router.get('/o', deciding(combination, 'operation'), handler(id)),
  )

/** The method and the path of the operation of `build`. */
export const pathOf = (id: string): string => `/${id}/p/c/o`

// -------------------------------------------------------------------------------------
// requests
// -------------------------------------------------------------------------------------

export interface Answer {
  readonly status: number
  readonly challenge: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

const agent = new Agent({ keepAlive: true, maxSockets: 8 })

/** A request on a connection that is kept, which sends its target unchanged. */
export const get = (
  port: number,
  path: string,
  token?: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) }
    const request = send({ agent, host: '127.0.0.1', port, path, method, headers: sent }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          challenge: response.headers['www-authenticate'],
          headers: response.headers,
          text: Buffer.concat(chunks).toString(),
        }),
      )
    })
    request.on('error', reject)
    request.end()
  })

/** The outcome of a request, and how often the handler `id` ran for it. */
export const outcome = async (
  port: number,
  path: string,
  id: string,
  token?: string,
  options?: { method?: string; headers?: Record<string, string> },
) => {
  callsOf(id)
  const { status, challenge, text } = await get(port, path, token, options)
  return { status, challenge, says: saidIn(text), calls: callsOf(id) }
}

// Our handlers answer with the principal, the layer with the detail of a problem, and Koa with plain text
const saidIn = (text: string): unknown => {
  if (!text.startsWith('{')) return text
  const body = JSON.parse(text) as Record<string, unknown>
  return 'ran' in body ? body['auth'] : body['detail']
}

/** The outcome if `bearerFor(realm)` decides and nothing was sent. */
export const denied = (realm: string, error = '') => ({
  status: 401,
  challenge: `Bearer realm="${realm}"${error}`,
  says: 'Unauthorized',
  calls: 0,
})

/** The outcome if the handler runs, with the principal of `bearerFor`, or with `null`. */
export const admitted = (auth: string | null) => ({ status: 200, challenge: undefined, says: auth, calls: 1 })

export const notFound = { status: 404, challenge: undefined, says: 'Not Found', calls: 0 }

/** An application of middleware and routers' `routes()`. */
export const appOf = (...middleware: ReadonlyArray<(ctx: never, next: Next) => unknown>): Koa => {
  const app = new Koa()
  // Safe: Koa calls each with its context, of which a router makes its own
  for (const each of middleware) app.use(each as Koa.Middleware)
  return app
}
