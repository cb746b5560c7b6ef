/** Quotas at each level, in one process and in several: what counts, what the fields say, and what a store that fails does. */
import Router from '@koa/router'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { apiApp, authSettings, guardApp, httpBearer, optional, rateLimit, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { linesOf, lineText } from '../../src/audit/policy.js'
import { recordsOf } from '../support/runs/eventRecords.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { ask, listen } from '../support/servers/server.js'

interface User {
  readonly name: string
}
const users = new Map(['anna', 'bert'].map((name) => [name, { name }]))
const user = httpBearer({ authenticate: (_request, token) => users.get(token) })
const by = ({ name }: User) => name

type Make = (points: number) => RateLimiterMemory | RateLimiterRedis
// No window ends during a test
const HOUR = 3600
let prefix = 0
const inMemory: Make = (points) => new RateLimiterMemory({ points, duration: HOUR, keyPrefix: `m${prefix++}` })

const served = async <S, C>(app: Koa<S, C>) => {
  const { url } = await listen(app)
  return async (path: string, token?: string) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const { status, headers: fields, text } = await ask(url + path, { headers })
    return { status, text, left: /r=(\d+)/.exec(fields.get('ratelimit') ?? '')?.[1], after: fields.get('retry-after') }
  }
}
const ok = (ctx: { body: unknown }) => void (ctx.body = 'ok')

const holds = (make: Make): void => {
  it('of an application, a router and an operation: the nearest level counts, and each counts its own', async () => {
    const [whole, team, report] = [make(10), make(3), make(1)]
    const api = apiApp({ title: 'x', version: '1', auth: rateLimit<User>({ limiter: whole, by })(user) })
    api.get('/a', ok).get('/b', ok)
    const router = withAuth(user, rateLimit({ limiter: team, by }))(new Router({ prefix: '/team' }))
    router.get('/c', ok).get('/d', ok)
    router.get('/e', withAuth(user, rateLimit({ limiter: report, by })), ok)
    router.get('/public', withAuth(null), ok)
    api.use(router.routes())
    const get = await served(new Koa().use(api.routes()))
    const asked: ReadonlyArray<readonly [string, number, string | undefined]> = [
      ['/a', 200, '9'],
      ['/b', 200, '8'],
      ['/team/c', 200, '2'],
      ['/team/d', 200, '1'],
      ['/team/e', 200, '0'],
      ['/team/e', 429, '0'],
      ['/team/public', 200, undefined],
      ['/team/c', 200, '0'],
      ['/team/d', 429, '0'],
      ['/a', 200, '7'],
    ]
    for (const [path, status, left] of asked) {
      const answer = await get(path, 'anna')
      expect([path, answer.status, answer.left]).toEqual([path, status, left])
    }
    expect((await get('/team/d', 'bert')).left).toBe('2')
  })

  it('of guardApp: of parallel requests exactly the limit is served', async () => {
    let ran = 0
    const app = guardApp(user, rateLimit({ limiter: make(5), by }))(new Koa())
    app.use((ctx) => {
      ran += 1
      ok(ctx)
    })
    const get = await served(app)
    const answers = await Promise.all(Array.from({ length: 20 }, () => get('/x', 'anna')))
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array<number>(5).fill(200), ...Array<number>(15).fill(429)])
    expect(ran).toBe(5)
    for (const { status, after } of answers) expect(after !== null).toBe(status === 429)
  })

  it('strangers count nothing, and guests behind optional have no rate limit', async () => {
    const router = new Router()
    router.get('/x', withAuth(optional(rateLimit<User>({ limiter: make(1), by })(user))), ok)
    const get = await served(new Koa().use(router.routes()))
    for (let n = 0; n < 3; n++) expect(await get('/x')).toMatchObject({ status: 200, left: undefined })
    for (let n = 0; n < 3; n++) expect(await get('/x', 'wrong')).toMatchObject({ status: 401, left: undefined })
    expect(await get('/x', 'anna')).toMatchObject({ status: 200, left: '0' })
    expect(await get('/x', 'anna')).toMatchObject({ status: 429, left: '0' })
  })
}

describe('rate limits in memory', () => {
  holds(inMemory)

  it('are in the document, the audit, the policy file and the records', async () => {
    const guards = [5, 6].map((points) => withAuth(user, rateLimit({ limiter: inMemory(points), by })))
    const lines = guards.map((guard) => lineText(linesOf(audit(new Router().get('/x', guard, ok)))[0]!))
    expect(lines[0]).toContain(`rate limit 5/${HOUR} s by by`)
    expect(lines[0]).not.toBe(lines[1])
    const router = new Router().get('/recorded', withAuth(user, rateLimit({ limiter: inMemory(1), by })), ok)
    const document = openApi(router, { title: 'x', version: '1' })
    expect(document.paths?.['/recorded']?.get?.responses).toMatchObject({
      429: { $ref: '#/components/responses/TooManyRequests' },
    })
    expect(JSON.stringify(document.components?.responses)).toContain('Retry-After')
    const records = recordsOf('decision', ({ route }) => route === '/recorded')
    const get = await served(new Koa().use(router.routes()))
    await get('/recorded', 'anna')
    await get('/recorded', 'anna')
    await expect.poll(() => records.length).toBe(2)
    expect(records.map(({ outcome, status, failure }) => [outcome, status, failure])).toEqual([
      ['accepted', 200, undefined],
      ['throttled', 429, 'throttled'],
    ])
    expect(JSON.stringify(records)).not.toContain('anna')
  })

  it.each([
    ['a hook that answers at once', user],
    ['an async hook', httpBearer({ authenticate: async (_request, token) => users.get(token) })],
  ])('a limiter that never answers is a 503 after the time limit: %s', async (_hook, auth) => {
    const limiter = { points: 5, duration: HOUR, consume: () => new Promise(() => {}) }
    let count = 0
    const router = new Router().get('/x', withAuth(auth, rateLimit({ limiter, by })), () => void count++)
    const get = await served(new Koa().use(authSettings({ timeout: 20 })).use(router.routes()))
    expect((await get('/x', 'anna')).status).toBe(503)
    expect(count).toBe(0)
  })

  it('a hook that answers after the time limit has cost nothing', async () => {
    let answer = (_user: User): void => {}
    const authenticate = () => new Promise<User>((resolve) => (answer = resolve))
    const consumed: unknown[] = []
    const limiter = { points: 5, duration: HOUR, consume: async (key: unknown) => consumed.push(key) }
    const late = httpBearer({ authenticate })
    const router = new Router().get('/x', withAuth(late, rateLimit({ limiter, by })), ok)
    const get = await served(new Koa().use(authSettings({ timeout: 20 })).use(router.routes()))
    expect((await get('/x', 'anna')).status).toBe(503)
    answer({ name: 'anna' })
    await new Promise(setImmediate)
    expect(consumed).toEqual([])
  })
})

describeWithRedis('rate limits in Redis', () => {
  const redis = redisServer()
  const connected = async () => {
    const client = new Redis(redis().url, {
      maxRetriesPerRequest: 1,
      enableOfflineQueue: false,
      retryStrategy: () => 50,
    })
    client.on('error', () => {})
    await new Promise((resolve) => client.once('ready', resolve))
    onTestFinished(() => client.disconnect())
    return client
  }
  const late: { client?: Redis } = {}
  const make: Make = (points) =>
    new RateLimiterRedis({ storeClient: late.client, points, duration: HOUR, keyPrefix: `r${prefix++}` })
  describe('as in memory', () => {
    holds((points) => {
      // the client connects when the first command is sent
      late.client ??= new Redis(redis().url)
      return make(points)
    })
    afterAll(() => late.client?.disconnect())
  })

  it('two processes count together; while Redis is down it is a 503, or as the application says', async () => {
    const [one, two] = await Promise.all([connected(), connected()])
    const of = (storeClient: Redis) =>
      new RateLimiterRedis({ storeClient, points: 3, duration: HOUR, keyPrefix: 'both' })
    const site = async (client: Redis, options: { onStoreError?: 'unthrottled' } = {}) => {
      const guard = withAuth(user, rateLimit({ limiter: of(client), by, ...options }))
      return served(new Koa().use(new Router().get('/x', guard, ok).routes()))
    }
    const [first, second, loose] = await Promise.all([site(one), site(two), site(one, { onStoreError: 'unthrottled' })])
    expect([(await first('/x', 'anna')).left, (await second('/x', 'anna')).left]).toEqual(['2', '1'])
    one.disconnect()
    expect(await first('/x', 'anna')).toMatchObject({ status: 503, left: undefined })
    expect(await loose('/x', 'anna')).toMatchObject({ status: 200, left: undefined })
    expect((await second('/x', 'anna')).left).toBe('0')
    expect((await second('/x', 'anna')).status).toBe(429)
  })
})
