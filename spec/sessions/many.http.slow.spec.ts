/**
 * The costs of 1,000 to 10,000 sessions (4,000 outside of continuous integration): the memory of the site, and the work
 * of its store for each request.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandsIn, describeWithRedis, startRedis, type RedisServer } from '../support/servers/redisServer.js'
import { buildSite, siteCommand, startSite, type Site } from '../support/sites/sessionSite.js'
import { siteClient } from '../support/sites/sessionSiteClient.js'

const built = buildSite()
afterAll(built.remove)

const few = 1000
const many = 10_000
const megabyte = 1024 * 1024

/** Signs users in, several at a time. Returns the cookie of every hundredth. */
const signIn = async (site: Site, from: number, to: number): Promise<string[]> => {
  const cookies: string[] = []
  let next = from
  const one = async (): Promise<void> => {
    const client = siteClient(site.port)
    for (let user = next++; user < to; user = next++) {
      const { status } = await client.send('POST', `/login/user-${user}`)
      expect(status).toBe(204)
      if (user % 100 === 0) cookies.push(client.cookies())
      client.forget()
    }
    client.close()
  }
  await Promise.all(Array.from({ length: 16 }, one))
  return cookies
}

// The smallest of several values, because the reserve of V8 varies by 20 MB
const afterCollecting = async (site: Site): Promise<{ readonly resident: number; readonly heap: number }> => {
  const seen: Array<Awaited<ReturnType<Site['collect']>>> = []
  for (let time = 0; time < 5; time++) {
    seen.push(await site.collect())
    await pause(200)
  }
  return {
    resident: Math.min(...seen.map(({ resident }) => resident)),
    heap: Math.min(...seen.map(({ heap }) => heap)),
  }
}

// Until the site has reached its full reserve
const warmUp = async (site: Site, cookies: ReadonlyArray<string>): Promise<void> => {
  await Promise.all(
    cookies.map(async (one) => {
      const client = siteClient(site.port, one)
      for (let time = 0; time < 300; time++) await client.send('GET', '/me')
      client.close()
    }),
  )
  // Memory that sign-ins need only once is not memory of a session: these sessions end at once
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      const client = siteClient(site.port)
      for (let time = 0; time < 100; time++) {
        await client.send('POST', '/login/passing')
        await client.send('POST', '/logout')
        client.forget()
      }
      client.close()
    }),
  )
}

type CostOf = (act: () => Promise<unknown>) => Promise<Record<string, number>>

const describeMany = (start: () => Promise<Site>, costOf?: CostOf): void => {
  let site: Site
  let grown = { resident: 0, heap: 0 }
  const costs: Record<string, number>[] = []
  // Time depends on the machine: spec/bench measures it with millions of sessions (`npm run bench:scale`)
  const ask = async (cookies: string | undefined): Promise<void> => {
    if (costOf === undefined) return
    const client = siteClient(site.port, cookies)
    costs.push(await costOf(async () => expect(await client.send('GET', '/me')).toMatchObject({ status: 200 })))
    client.close()
  }
  beforeAll(async () => {
    site = await start()
    const cookies = await signIn(site, 0, few)
    await warmUp(site, cookies)
    const before = await afterCollecting(site)
    await ask(cookies[0])
    await signIn(site, few, many)
    const after = await afterCollecting(site)
    await ask(cookies[0])
    grown = { resident: after.resident - before.resident, heap: after.heap - before.heap }
  })
  afterAll(() => site?.stop())

  it('the resident memory grows by at most 10 MB', () => {
    expect(grown.resident / megabyte).toBeLessThan(10)
    // The heap keeps almost nothing of that
    expect(grown.heap / megabyte).toBeLessThan(2)
  })

  if (costOf !== undefined) {
    it('a request costs the store as much as with 1,000 sessions', () => {
      expect(costs).toEqual([{ mget: 1 }, { mget: 1 }])
    })
  }
}

describeWithRedis(`${many} sessions in Redis`, () => {
  let redis: RedisServer
  afterAll(() => redis?.close())
  describeMany(
    async () => {
      redis = await startRedis()
      return startSite(siteCommand(built.folder, { STORE: 'redis', REDIS_PORT: String(redis.port) }))
    },
    async (act) => {
      await redis.send('CONFIG', 'RESETSTAT')
      await act()
      return commandsIn(await redis.send('INFO', 'commandstats'))
    },
  )
})

// sqliteStore.unit.spec.ts tests that each statement finds its rows by a key or an index
describe(`${many} sessions in SQLite`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-many-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  describeMany(() =>
    startSite(siteCommand(built.folder, { STORE: 'sqlite', SQLITE_URL: `file:${join(folder, 'sessions.db')}` })),
  )
})
