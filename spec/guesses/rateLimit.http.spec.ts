/** Accepted requests are counted by caller: the fields of each answer, 429 beyond the limit, and what counts nothing. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import Koa from 'koa'
import { also, anyOf, apiKeyHeader, AuthError, authorize, guardApp } from 'koa-with-auth'
import { httpBearer, optional, owned, rateLimit, withAuth } from 'koa-with-auth'
import { fromFunction, recoverUnavailable } from 'koa-with-auth/fp'
import { expectGuarded } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it, vi } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { pollute } from '../support/runs/pollute.js'
import { ask, listen } from '../support/servers/server.js'

interface User {
  readonly name: string
  readonly plan: 'small' | 'large'
}
const users: ReadonlyMap<string, User> = new Map([
  ['a', { name: 'anna', plan: 'small' }],
  ['b', { name: 'bert', plan: 'large' }],
])
const user = httpBearer({ authenticate: (_request, token) => users.get(token) })
const by = ({ name }: User) => name
const memory = (points: number, duration = 30) =>
  new RateLimiterMemory({ points, duration, keyPrefix: `${points} in ${duration}` })
const limited = (limiter: Parameters<typeof rateLimit<User>>[0]['limiter'], more: object = {}) =>
  rateLimit<User>({ limiter, by, ...more })

const site = async (limit: ReturnType<typeof limited>, ...others: ReadonlyArray<ReturnType<typeof limited>>) =>
  served(withAuth(others.reduce((a, condition) => condition(a), limit(user))))

const served = async (guard: unknown) => {
  let calls = 0
  const router = new Router().get('/x', guard as never, (ctx) => {
    calls += 1
    ctx.body = 'in'
  })
  const app = new Koa().use(router.routes())
  app.silent = true
  const { url } = await listen(app)
  const get = async (token: string | undefined, headers: Record<string, string> = {}) => {
    const before = calls
    const own = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await ask(`${url}/x`, { headers: { ...own, ...headers } })
    const field = (name: string) => answer.headers.get(name)
    return { ...answer, ran: calls - before, limit: field('ratelimit'), policy: field('ratelimit-policy') }
  }
  /** The status, and how often the operation ran. */
  const outcome = async (token: string) => {
    const { status, ran } = await get(token)
    return [status, ran]
  }
  return { app, router, get, outcome }
}

describe('rateLimit', () => {
  it('counts by user, says what is left in each answer, and refuses beyond with Retry-After', async () => {
    stoppedClock()
    const { get } = await site(limited(memory(3)))
    for (const left of [2, 1, 0]) {
      const answer = await get('a')
      expect([answer.status, answer.ran]).toEqual([200, 1])
      expect(answer.limit).toBe(`"default";r=${left};t=30`)
      expect(answer.policy).toBe('"default";q=3;w=30')
    }
    const over = await get('a')
    expect([over.status, over.ran, over.challenge]).toEqual([429, 0, null])
    expect([over.headers.get('retry-after'), over.limit]).toEqual(['30', '"default";r=0;t=30'])
    expect(JSON.parse(over.text)).toMatchObject({ status: 429 })
    expect((await get('b')).status).toBe(200)
  })

  it('R09 a merge that writes to all objects adds no field to an answer', async () => {
    const { get } = await site(limited(memory(3)))
    pollute({ 'x-merged': 'yes' })
    const answer = await get('a')
    expect([answer.status, answer.limit, answer.headers.get('x-merged')]).toEqual([200, '"default";r=2;t=30', null])
  })

  it.each<[string, object, string, string | null]>([
    ['a second and a half', { msBeforeNext: 1500 }, '2', '"default";r=0;t=2'],
    ['a part of a second', { msBeforeNext: 200 }, '1', '"default";r=0;t=1'],
    ['nothing, because the window has just ended', { msBeforeNext: 0 }, '0', '"default";r=0;t=0'],
    ['a time that is over', { msBeforeNext: -1 }, '5', '"default";r=0;t=0'],
    ['no time', { msBeforeNext: undefined }, '5', null],
  ])('Retry-After is in whole seconds, for a limiter that says %s', async (_what, said, retryAfter, limit) => {
    const limiter = { points: 3, duration: 30, consume: () => Promise.reject({ remainingPoints: 0, ...said }) }
    const { get } = await site(limited(limiter))
    const over = await get('a')
    expect([over.status, over.ran, over.headers.get('retry-after'), over.limit]).toEqual([429, 0, retryAfter, limit])
  })

  it('R25 counts once all conditions of all levels have let in: what a condition after it or below it refuses costs nothing', async () => {
    const limit = limited(memory(2))
    let isAllowed = false
    const may = authorize(() => isAllowed)
    const note = owned('note', { param: 'id', find: (id: string) => id === '1' && { id } })
    const router = new Router()
    router.get('/after/:id', withAuth(user, limit, may), (ctx) => void (ctx.body = ''))
    router.get('/owned/:id', withAuth(user, limit, note), (ctx) => void (ctx.body = ''))
    const outer = withAuth(user, limit)(new Router())
    outer.get(
      '/below/:id',
      withAuth(also(apiKeyHeader({ authenticate: () => isAllowed && 'k' }))),
      (ctx) => void (ctx.body = ''),
    )
    const { url } = await listen(new Koa().use(router.routes()).use(outer.routes()))
    const get = async (path: string) =>
      (await fetch(url + path, { headers: { Authorization: 'Bearer a', key: 'k' } })).status
    for (let round = 0; round < 3; round++) {
      expect([await get('/after/1'), await get('/owned/2'), await get('/below/1')]).toEqual([403, 404, 401])
    }
    isAllowed = true
    expect([await get('/after/1'), await get('/owned/1'), await get('/below/1')]).toEqual([200, 200, 429])
  })

  it('R25 costs nothing if a guard below guardApp refuses', async () => {
    const limiter = memory(1)
    let isAllowed = false
    const inner = withAuth(
      user,
      authorize(() => isAllowed),
    )
    const router = new Router().get('/x', inner, (ctx) => void (ctx.body = 'in'))
    const { url } = await listen(guardApp(user, limited(limiter))(new Koa()).use(router.routes()))
    const get = async () => (await ask(`${url}/x`, { headers: { authorization: 'Bearer a' } })).status
    expect([await get(), await get(), (await limiter.get('anna'))?.consumedPoints]).toEqual([403, 403, 0])
    isAllowed = true
    expect([await get(), await get()]).toEqual([200, 429])
  })

  it.each<[string, (one: ReturnType<ReturnType<typeof limited>>) => unknown]>([
    ['a hook asks it', (one) => httpBearer({ authenticate: (request) => one(request) })],
    ['it recovers an outage', (one) => recoverUnavailable(one)(fromFunction(() => E.left(AuthError.unavailable())))],
    ['fp-ts maps it', (one) => RTE.map(({ name }: User) => ({ name }))(one)],
  ])('R25 counts once if %s', async (_case, around) => {
    const { outcome } = await served(withAuth(around(limited(memory(2))(user)) as never))
    expect([await outcome('a'), await outcome('a'), await outcome('a')]).toEqual([[200, 1], [200, 1], [429, 0]]) // prettier-ignore
  })

  it('gives back its price if a second limit refuses, which keeps its own', async () => {
    const [first, second] = [memory(9), memory(1)]
    const { outcome } = await site(limited(first, { points: 2 }), limited(second))
    expect([await outcome('a'), await outcome('a'), await outcome('a')]).toEqual([[200, 1], [429, 0], [429, 0]]) // prettier-ignore
    const kept = [await first.get('anna'), await second.get('anna')]
    expect(kept.map((one) => one?.consumedPoints)).toEqual([2, 3])
  })

  it('gives back its price if a second limit refuses a call of the authenticator, whose caller lets in', async () => {
    const [first, second] = [memory(9), memory(1)]
    const both = limited(second)(limited(first, { points: 2 })(user))
    const { outcome } = await served(
      withAuth(httpBearer({ authenticate: async (request, token) => [await both(request)(), token] })),
    )
    expect([await outcome('a'), await outcome('a')]).toEqual([[200, 1], [200, 1]]) // prettier-ignore
    expect((await first.get('anna'))?.consumedPoints).toBe(2)
  })

  it('a limiter of each plan, a price of each request, and conditions on both sides', async () => {
    const plans = { small: memory(2), large: memory(100) }
    const points = ({ plan }: User) => (plan === 'large' ? 10 : 2)
    const limit = limited(({ plan }) => plans[plan], { points })
    const { get } = await served(
      withAuth(
        limit(user),
        authorize(({ name }) => name !== 'carla'),
      ),
    )
    expect([(await get('a')).status, (await get('a')).status]).toEqual([200, 429])
    expect((await get('b')).limit).toMatch(/r=90/)
  })

  it('two rate limits: the answer says the one of which less is left, and of equals the first', async () => {
    for (const inDays of [true, false]) {
      const [day, minute] = [limited(memory(1000, 86_400)), limited(memory(5, 60))]
      const { get } = await (inDays ? site(day, minute) : site(minute, day))
      expect((await get('a')).policy).toBe('"default";q=5;w=60')
    }
    const equal = await site(limited(memory(5, 60)), limited(memory(5, 90)))
    expect((await equal.get('a')).policy).toBe('"default";q=5;w=60')
  })

  it('a limiter that fails is a 503, or lets in if the application says so', async () => {
    const down = { points: 3, duration: 30, consume: () => Promise.reject(new Error('down')) }
    expect(await (await site(limited(down))).outcome('a')).toEqual([503, 0])
    expect(await (await site(limited(down, { onStoreError: 'unthrottled' }))).outcome('a')).toEqual([200, 1])
  })

  it.each<[string, object]>([
    ['an empty id', { by: () => '' }],
    ['an id that is no string', { by: () => 5 }],
    ['no limiter for a plan', { limiter: () => undefined }],
    ['a negative price', { points: () => -1 }],
  ])('a function that returns %s is a 500, and the operation does not run', async (_case, wrong) => {
    const { outcome } = await site(limited(memory(3), wrong))
    expect(await outcome('a')).toEqual([500, 0])
  })

  it('in a list, only its own member is counted, and 429 ends the list', async () => {
    const key = apiKeyHeader({
      paramName: 'X-Key',
      authenticate: (_request, one) => one === 'k' && { name: 'key', plan: 'small' as const },
    })
    const { get } = await served(withAuth([limited(memory(1))(user), key]))
    expect((await get(undefined, { 'x-key': 'k' })).limit).toBeNull()
    expect((await get('a')).status).toBe(200)
    expect((await get('a', { 'x-key': 'k' })).status).toBe(429)
  })

  it('expectGuarded counts nothing', async () => {
    const limiter = memory(3)
    const consume = vi.spyOn(limiter, 'consume')
    const { app, router } = await site(limited(limiter))
    await expectGuarded(app, router)
    expect(consume).not.toHaveBeenCalled()
  })

  it('expectGuarded counts nothing of a guard that lets everybody in', async () => {
    const limiter = memory(3)
    const consume = vi.spyOn(limiter, 'consume')
    const { app, router } = await served(withAuth(limited(limiter)(fromFunction(() => users.get('a')))))
    await expect(expectGuarded(app, router)).rejects.toThrow('/x')
    expect(consume).not.toHaveBeenCalled()
  })

  it('what cannot work is a TypeError when it is written', () => {
    const limiter = memory(3)
    for (const wrong of [
      {},
      { limiter },
      { by },
      { limiter: {}, by },
      { limiter, by, points: 0 },
      { limiter, by, x: 1 },
    ])
      expect(() => rateLimit(wrong as never)).toThrow(TypeError)
    expect(() => limited(limiter)(optional(user) as never)).toThrow(/write optional\(rateLimit/)
    expect(() => limited(limiter)(anyOf({ user }) as never)).not.toThrow()
  })
})
