/** `throttled` over HTTP, on the stores of real applications: memory, a real redis-server, a real SQLite file. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Router from '@koa/router'
import { Redis } from 'ioredis'
import Koa from 'koa'
import Database from 'libsql'
import {
  apiKeyHeader,
  authSettings,
  httpBasicAuth,
  throttled,
  withAuth,
  type Authenticator,
  type Limiter,
  type ThrottledOptions,
} from 'koa-with-auth'
import { RateLimiterMemory, RateLimiterRedis, RateLimiterSQLite } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ask as get, listen } from '../support/servers/server.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'

const basicOf = (user: string, password: string) => ({
  Authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})

/** One operation behind Basic, whose hook takes a moment. No store is as slow as the time limit, however busy the machine is. */
const site = async <C>(
  options: ThrottledOptions<C>,
  wrap = (a: Authenticator<unknown>): unknown => a,
  timeout = 100_000,
) => {
  const ran = { hook: 0, operation: 0 }
  const basic = httpBasicAuth({
    authenticate: async (_request, username, password) => {
      ran.hook++
      await new Promise((resolve) => setTimeout(resolve, 5))
      return password === 'good' && { username }
    },
  })
  const router = new Router()
  router.get('/x', withAuth(wrap(throttled(options)(basic)) as Authenticator<unknown>), (ctx) => {
    ran.operation++
    ctx.body = 'in'
  })
  const { url, errors } = await listen(new Koa().use(authSettings({ timeout })).use(router.routes()))
  onTestFinished(() => expect(errors).toStrictEqual([]))
  return { ask: (headers: Record<string, string> = {}) => get(`${url}/x`, { headers }), ran }
}

const statuses = (answers: ReadonlyArray<{ readonly status: number }>) => answers.map(({ status }) => status).sort()
const times = <A>(count: number, of: (at: number) => A): A[] => Array.from({ length: count }, (_, at) => of(at))
const memory = (points: number) => new RateLimiterMemory({ points, duration: 900 })
const wrong = basicOf('anna', 'wrong')
const good = basicOf('anna', 'good')

/** Tests that run on every store. */
const holds = (limiterOf: (points: number) => Limiter): void => {
  it('T-01 ten wrong passwords in parallel, limit five: five reach the hook, and five are 429', async () => {
    const { ask, ran } = await site({ limiter: limiterOf(5) })
    const answers = await Promise.all(times(10, () => ask(wrong)))
    expect(statuses(answers)).toStrictEqual([...times(5, () => 401), ...times(5, () => 429)])
    expect(ran).toStrictEqual({ hook: 5, operation: 0 })
    expect((await ask(good)).status).toBe(429)
  })

  it('twenty valid requests, one after the other and three at a time, use up no guess', async () => {
    const { ask, ran } = await site({ limiter: limiterOf(5) })
    for (let at = 0; at < 10; at++) expect((await ask(good)).status).toBe(200)
    for (let at = 0; at < 4; at++) expect(statuses(await Promise.all(times(3, () => ask(good))))).toContain(200)
    expect((await ask(good)).status).toBe(200)
    expect(ran.operation).toBeGreaterThanOrEqual(15)
  })
}

describe('in memory', () => {
  holds(memory)

  it('T-03 a 429 has Retry-After and problem details, no challenge, is not stored, and runs no operation', async () => {
    const { ask, ran } = await site({ limiter: memory(1) })
    await ask(wrong)
    const { status, headers, text } = await ask(wrong)
    expect(status).toBe(429)
    expect(JSON.parse(text)).toStrictEqual({
      type: 'about:blank',
      title: 'Too Many Requests',
      status: 429,
      detail: 'Too Many Requests',
    })
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(890)
    expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(900)
    expect(headers.get('www-authenticate')).toBeNull()
    expect(headers.get('cache-control')).toMatch(/no-store/)
    expect(ran).toStrictEqual({ hook: 1, operation: 0 })
  })

  it('T-03 a valid key of a later member does not avoid the 429', async () => {
    const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, value) => value === 'k1' && 'key' })
    const { ask } = await site({ limiter: memory(1) }, (a) => [a, key])
    expect((await ask({ 'X-Key': 'k1' })).status).toBe(200)
    await ask(wrong)
    expect((await ask({ ...wrong, 'X-Key': 'k1' })).status).toBe(429)
    expect((await ask({ 'X-Key': 'k1' })).status).toBe(200)
  })
})

describe('in SQLite', () => {
  let folder: string
  let db: InstanceType<typeof Database>
  let tables = 0
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-guesses-'))
    db = new Database(join(folder, 'guesses.db'))
  })
  afterAll(() => {
    db.close()
    rmSync(folder, { recursive: true, force: true })
  })
  holds((points) => {
    const tableName = `guesses${tables++}`
    db.exec(`CREATE TABLE ${tableName} (key TEXT PRIMARY KEY, points INTEGER NOT NULL DEFAULT 0, expire INTEGER)`)
    return new RateLimiterSQLite({
      storeClient: db,
      storeType: 'better-sqlite3',
      tableName,
      tableCreated: true,
      points,
      duration: 900,
    })
  })
})

describeWithRedis('in Redis', () => {
  const redis = redisServer()
  const clients: Redis[] = []
  let prefix = 0
  const connect = async () => {
    const client = new Redis(redis().url, {
      maxRetriesPerRequest: 1,
      enableOfflineQueue: false,
      retryStrategy: () => 50,
    })
    client.on('error', () => {})
    clients.push(client)
    await new Promise((resolve) => client.once('ready', resolve))
    return client
  }
  let shared: Redis
  beforeAll(async () => {
    shared = await connect()
  })
  afterAll(() => {
    for (const client of clients) client.disconnect()
  })
  const limiterOf = (points: number, storeClient: unknown = shared) =>
    new RateLimiterRedis({ storeClient, keyPrefix: `t${prefix++}`, points, duration: 900 })
  holds(limiterOf)

  it('with the client of node-redis, it counts the same, also from two processes', async () => {
    const client = createClient({ url: redis().url })
    await client.connect()
    const keyPrefix = `t${prefix++}`
    const options = { keyPrefix, points: 5, duration: 900 }
    const one = new RateLimiterRedis({ ...options, storeClient: client, useRedisPackage: true })
    const two = new RateLimiterRedis({ ...options, storeClient: shared })
    const [first, second] = [await site({ limiter: one }), await site({ limiter: two })]
    const answers = await Promise.all(times(20, (at) => (at % 2 === 0 ? first : second).ask(wrong)))
    expect(statuses(answers)).toStrictEqual([...times(5, () => 401), ...times(15, () => 429)])
    expect(first.ran.hook + second.ran.hook).toBe(5)
    await client.close()
  })

  it.each(['unavailable', 'unthrottled'] as const)('stopped: %s; restarted, it counts again', async (onStoreError) => {
    const limiter = limiterOf(2, await connect())
    const { ask, ran } = await site({ limiter, onStoreError })
    expect((await ask(good)).status).toBe(200)
    const before = ran.hook
    await redis().stop()
    try {
      const answer = await ask(good)
      expect(answer.status).toBe(onStoreError === 'unavailable' ? 503 : 200)
      expect(ran.hook - before).toBe(onStoreError === 'unavailable' ? 0 : 1)
      if (onStoreError === 'unavailable') expect(answer.headers.get('retry-after')).toMatch(/^\d+$/)
    } finally {
      await redis().start()
    }
    await expect.poll(async () => (await ask(good)).status).toBe(200)
    // Requests that ran unthrottled meanwhile were not counted
    await expect
      .poll(async () => statuses(await Promise.all(times(5, () => ask(wrong)))))
      .toStrictEqual([429, 429, 429, 429, 429])
  })

  it('paused: 503 within the time limit, and the hook is not called', async () => {
    const limiter = limiterOf(2, await connect())
    const { ask, ran } = await site({ limiter }, undefined, 700)
    redis().pause()
    try {
      expect((await ask(good)).status).toBe(503)
      expect(ran.hook).toBe(0)
    } finally {
      redis().continue()
    }
  })
})
