/**
 * Spec 5.6 and `also`: six levels, each undecided, decided, public or added to. A fold that knows nothing of routers
 * computes what is demanded; real routers must agree over HTTP.
 */
import fc from 'fast-check'
import Koa, { type Context, type Next } from 'koa'
import { describe, expect, test } from 'vitest'
import { callsOf, canonical, get, levels, orders, pathOf, type Order } from '../../support/models/levels.js'
import { addings, buildAdding, demandedBy, keysOf, offerOf, type Adding } from '../../support/models/levelsAlso.js'
import { serve } from '../../support/servers/server.js'

const builds = new Map<string, ReturnType<typeof buildAdding>>()

const served = serve(() => {
  const app = new Koa()
  app.use((ctx: Context, next: Next): unknown => {
    const routes = builds.get(ctx.path.split('/')[1] ?? '')
    // Safe: the router makes its own context of this one
    return routes === undefined ? next() : routes(ctx as never, next)
  })
  return app
})

let made = 0

type Ask = 'bare' | 'all' | 'others' | 'missing' | 'wrong'
const every: ReadonlyArray<Ask> = ['bare', 'all', 'others', 'missing', 'wrong']

const check = async (adding: Adding, order: Order, asks: ReadonlyArray<Ask> = every): Promise<void> => {
  const id = `a${made++}`
  builds.set(id, buildAdding(id, adding, order))
  const { keys, principal } = demandedBy(adding)
  const others = levels.filter((level) => !keys.includes(level))
  const reported = JSON.stringify({ adding, order })

  const expectAnswer = async (ask: Ask, headers: Record<string, string>, failing: number) => {
    const { status, challenge, text } = await get(served.port, pathOf(id), undefined, { headers })
    const offered = failing < 0 ? undefined : keys.slice(failing).map(offerOf).join(', ')
    const admitted = JSON.stringify({ ran: id, auth: principal ?? null })
    expect({ status, challenge, calls: callsOf(id) }, `${ask} ${failing} ${reported}`).toEqual({
      status: failing < 0 ? 200 : 401,
      challenge: offered,
      calls: failing < 0 ? 1 : 0,
    })
    if (failing < 0) expect(text, `${ask} ${reported}`).toBe(admitted)
    else expect(text).toContain('"detail":"Unauthorized"')
  }

  const first = keys.length === 0 ? -1 : 0
  if (asks.includes('bare')) await expectAnswer('bare', {}, first)
  if (asks.includes('all')) await expectAnswer('all', keysOf(keys, others), -1)
  if (asks.includes('others')) await expectAnswer('others', keysOf(others), first)
  for (const [at, key] of keys.entries()) {
    const rest = levels.filter((level) => level !== key)
    if (asks.includes('missing')) await expectAnswer('missing', keysOf(rest), at)
    if (asks.includes('wrong')) await expectAnswer('wrong', keysOf(rest, [key]), at)
  }
  builds.delete(id)
}

/** Runs a few at a time, so that the server is never idle. */
const checkAll = async (cases: ReadonlyArray<readonly [Adding, Order]>, asks?: ReadonlyArray<Ask>): Promise<void> => {
  const left = [...cases]
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await check(...next, asks)
  }
  await Promise.all([work(), work(), work(), work()])
}

describe('spec 5.6 and `also`: a level adds to what it inherits', () => {
  test('4096 combinations are tried, which demand up to four keys', () => {
    expect(new Set(addings.map((adding) => JSON.stringify(adding))).size).toBe(4096)
    const counts = new Set(addings.map((adding) => demandedBy(adding).keys.length))
    expect([...counts].toSorted()).toEqual([0, 1, 2, 3, 4])
  })

  test('all combinations in the canonical order: all keys, none, one missing, and only other keys', () =>
    checkAll(
      addings.map((adding) => [adding, canonical]),
      ['bare', 'all', 'others', 'missing'],
    ))

  test('all combinations, if routers get routes after they were wrapped and served', () =>
    checkAll(
      addings.map((adding) => [adding, { operation: 'registered', child: 'served', parent: 'served' }]),
      ['bare', 'all'],
    ))

  test('every order, with levels that add: one level, and all levels', () => {
    const unset = Object.fromEntries(levels.map((level) => [level, 'unset'])) as Adding
    const all = Object.fromEntries(levels.map((level) => [level, 'also'])) as Adding
    const each: ReadonlyArray<Adding> = [
      all,
      { ...all, application: 'auth' },
      ...levels.flatMap((level): Adding[] => [
        { ...unset, application: 'auth', [level]: 'also' },
        { ...all, [level]: 'null' },
        { ...all, [level]: 'auth' },
      ]),
    ]
    return checkAll(orders.flatMap((order) => each.map((adding) => [adding, order] as const)))
  })

  test('any combination in any order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...addings), fc.constantFrom(...orders), (adding, order) =>
        check(adding, order),
      ),
      { seed: 20_562, numRuns: 1500 },
    )
  })
})
