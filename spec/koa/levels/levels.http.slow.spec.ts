/**
 * Spec 5.6: the innermost decision wins, whatever else was decided and in whatever order the routers were built.
 *
 * Many applications share one server: the first path segment of a request selects one.
 */
import fc from 'fast-check'
import Koa, { type Context, type Next } from 'koa'
import { describe, expect, test } from 'vitest'
import {
  build,
  callsOf,
  canonical,
  combinations,
  get,
  levels,
  neighbourOf,
  orders,
  pathOf,
  tokenOf,
  winner,
  type Combination,
  type Decision,
  type Order,
} from '../../support/models/levels.js'
import { serve } from '../../support/servers/server.js'

const builds = new Map<string, ReturnType<typeof build>>()

const dispatch = (ctx: Context, next: Next): unknown => {
  const routes = builds.get(ctx.path.split('/')[1] ?? '')
  // Safe: the router makes its own context of this one
  return routes === undefined ? next() : routes(ctx as never, next)
}
const served = serve(() => {
  const app = new Koa()
  app.use(dispatch)
  return app
})

const reported = (combination: Combination, order: Order): string =>
  [...Object.entries(combination), ...Object.entries(order)].map(([key, value]) => `${key}: ${value}`).join(', ')

const verdict = async (path: string, token?: string) => {
  const { status, challenge, text } = await get(served.port, path, token)
  return { status, challenge, text }
}

const rejected = (level: string, error = '') => ({
  status: 401,
  challenge: `Bearer realm="${level}"${error}`,
  text: expect.stringContaining('"detail":"Unauthorized"') as string,
  calls: 0,
})

let made = 0

type Ask = 'bare' | 'right' | 'neighbour'
const all: ReadonlyArray<Ask> = ['bare', 'right', 'neighbour']

/** Sends no credential, the right one, and one of another level. */
const check = async (combination: Combination, order: Order, asks: ReadonlyArray<Ask> = all): Promise<void> => {
  const id = `b${made++}`
  builds.set(id, build(id, combination, order))
  const level = winner(combination)
  const right = level ?? 'operation'
  const tokens = { bare: undefined, right: tokenOf(right), neighbour: tokenOf(neighbourOf(combination, right)) }
  const accepted = {
    status: 200,
    challenge: undefined,
    text: JSON.stringify({ ran: id, auth: level ?? null }),
    calls: 1,
  }
  const expected = {
    bare: level === undefined ? accepted : rejected(level),
    right: accepted,
    neighbour: level === undefined ? accepted : rejected(level, ', error="invalid_token"'),
  }
  for (const ask of asks) {
    const seen = { ...(await verdict(pathOf(id), tokens[ask])), calls: callsOf(id) }
    expect(seen, `${ask} with ${reported(combination, order)}`).toEqual(expected[ask])
  }
  builds.delete(id)
}

/** Runs a few at a time, so that the server is never idle. */
const checkAll = async (
  cases: ReadonlyArray<readonly [Combination, Order]>,
  asks?: ReadonlyArray<Ask>,
): Promise<void> => {
  const left = [...cases]
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await check(...next, asks)
  }
  await Promise.all([work(), work(), work(), work()])
}

const unset = Object.fromEntries(levels.map((level) => [level, 'unset'])) as Combination

describe('spec 5.6: the innermost decision of operation, registrations, routers and application wins', () => {
  test('729 combinations and 48 orders are tried', () => {
    expect(new Set(combinations.map((combination) => JSON.stringify(combination))).size).toBe(729)
    expect(new Set(orders.map((order) => JSON.stringify(order))).size).toBe(48)
  })

  test('5.6.1 to 5.6.5 all combinations, routers filled before they are wrapped', () =>
    checkAll(combinations.map((combination) => [combination, canonical])))

  test('5.6.1 to 5.6.5 all combinations, routers filled after they were wrapped and served', () =>
    checkAll(
      combinations.map((combination) => [combination, { operation: 'registered', child: 'served', parent: 'served' }]),
    ))

  test('5.6 every order, with one level decided, and with one level made public below the application', () => {
    const some: ReadonlyArray<Combination> = levels.flatMap((level) => [
      { ...unset, [level]: 'auth' },
      { ...unset, application: 'auth', [level]: 'null' },
    ])
    return checkAll(orders.flatMap((order) => some.map((combination) => [combination, order] as const)))
  })

  test('5.6 every order, with all levels decided', () => {
    const alike = (decision: Decision) => Object.fromEntries(levels.map((level) => [level, decision])) as Combination
    const some: ReadonlyArray<Combination> = [
      alike('auth'),
      alike('null'),
      { ...alike('auth'), operation: 'unset' },
      { ...alike('null'), operation: 'unset', 'child-registration': 'unset', 'child-router': 'auth' },
    ]
    return checkAll(orders.flatMap((order) => some.map((combination) => [combination, order] as const)))
  })

  test('5.6 any combination in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...combinations), fc.constantFrom(...orders), (combination, order) =>
        check(combination, order),
      ),
      { seed: 20_561, numRuns: 1000 },
    )
  })

  // These are 34,992. For other versions of the peers it is every seventh: each combination in seven orders, and each order in
  // a hundred combinations.
  const step = process.env['KOA_ROUTER'] === undefined ? 1 : 7
  test('5.6 all combinations in all orders, without a credential', () =>
    checkAll(
      combinations
        .flatMap((combination) => orders.map((order) => [combination, order] as const))
        .filter((_, at) => at % step === 0),
      ['bare'],
    ))
})
