/** API keys while their store is locked, truncated, stopped, paused or slow: 503 in time, no request is let in, and back by itself. */
import { mkdtempSync, rmSync, truncateSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createProxy, connect, type Server, type Socket, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import Router from '@koa/router'
import { createClient as createSqlite } from '@libsql/client'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { apiKeyHeader, withAuth } from 'koa-with-auth'
import { apiKeys, type ApiKeys, type KeyStore } from 'koa-with-auth/keys'
import { redisKeyStore } from 'koa-with-auth/keys/redis'
import { sqliteKeyStore } from 'koa-with-auth/keys/sqlite'
import { createClient } from 'redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { describeWithRedis, redisServer } from '../support/redisServer.js'
import { ask, listen } from '../support/server.js'

const TIMEOUT = 500
// The store may take TIMEOUT; the rest is a busy machine
const IN_TIME = TIMEOUT + 1000

interface Site {
  readonly keys: ApiKeys<string>
  readonly url: string
  readonly handled: () => number
  readonly close: () => Promise<void>
}

const siteOf = async (store: KeyStore): Promise<Site> => {
  const keys = apiKeys({ prefix: 'acme', store, timeout: TIMEOUT, touch: 1 })
  let handled = 0
  const app = new Koa()
  app.silent = true
  const router = new Router()
  router.get('/x', withAuth(apiKeyHeader({ authenticate: keys.authenticate })), (ctx) => {
    handled++
    ctx.body = ctx.request.auth.owner
  })
  const { url, close } = await listen(app.use(router.routes()))
  return { keys, url: `${url}/x`, handled: () => handled, close }
}

const timed = async (url: string, key: string) => {
  const begun = performance.now()
  const { status, challenge, headers, text } = await ask(url, { headers: { key } })
  return { status, challenge, retryAfter: headers.get('Retry-After'), text, took: performance.now() - begun }
}

// Every key is asked at the same time: a good one, a revoked one, and what needs no look-up
const askAll = async ({ url }: Site, good: string, revoked: string) => {
  const [first, second, third] = await Promise.all([good, revoked, `${good}x`].map((key) => timed(url, key)))
  return { good: first!, revoked: second!, malformed: third! }
}

const expectOutage = (site: Site, handled: number, answers: Awaited<ReturnType<typeof askAll>>): void => {
  for (const { status, challenge, retryAfter, text, took } of [answers.good, answers.revoked]) {
    expect([status, challenge]).toEqual([503, null])
    expect(retryAfter).toMatch(/^\d+$/)
    expect(JSON.parse(text)).toMatchObject({ status: 503 })
    expect(took).toBeLessThan(IN_TIME)
  }
  // what is no key needs no store
  expect(answers.malformed.status).toBe(401)
  expect(site.handled()).toBe(handled)
}

const expectBack = async (site: Site, good: string, revoked: string): Promise<void> => {
  await vi.waitFor(async () => expect((await timed(site.url, good)).status).toBe(200), { timeout: 5000, interval: 50 })
  expect((await timed(site.url, revoked)).status).toBe(401)
}

const issued = async ({ keys }: Site) => {
  const [good, revoked] = [await keys.issue({ owner: 'anna' }), await keys.issue({ owner: 'sam' })]
  await keys.revoke(revoked.id)
  return { id: good.id, good: good.key, revoked: revoked.key }
}

describe('SQLite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-keys-'))
  const path = join(folder, 'keys.db')
  const another = () => createSqlite({ url: `file:${path}`, timeout: 5000, concurrency: 1 })
  const store = sqliteKeyStore({ url: `file:${path}` })
  let site: Site
  let made: Awaited<ReturnType<typeof issued>>
  beforeAll(async () => {
    site = await siteOf(store)
    made = await issued(site)
  })
  afterAll(async () => {
    await site?.close()
    store.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('locked by another process: keys are good as ever, though their last use cannot be written; changes are 503', async () => {
    const client = another()
    const transaction = await client.transaction('write')
    for (let at = 0; at < 5; at++) {
      const { good, revoked, malformed } = await askAll(site, made.good, made.revoked)
      expect([good.status, revoked.status, malformed.status]).toEqual([200, 401, 401])
      expect(good.took).toBeLessThan(IN_TIME)
    }
    const begun = performance.now()
    for (const change of [
      site.keys.issue({ owner: 'anna' }),
      site.keys.rotate(made.id, { overlap: 0 }),
      site.keys.revoke(made.id),
    ]) {
      await expect(change).rejects.toMatchObject({ name: 'StoreUnavailable', status: 503 })
    }
    expect(performance.now() - begun).toBeLessThan(IN_TIME)
    transaction.close()
    client.close()
    // what was given up while the file was locked may be done still; what is asked now is done
    await vi.waitFor(async () => expect((await site.keys.issue({ owner: 'late' })).key).toMatch(/^acme_/), 5000)
    made = await issued(site)
    await expectBack(site, made.good, made.revoked)
  }, 20_000)

  it('truncated: 503 and anonymous in; restored: the same keys are good', async () => {
    const client = another()
    await client.execute('pragma wal_checkpoint(truncate)')
    client.close()
    const kept = readFileSync(path)
    truncateSync(path, 0)
    const handled = site.handled()
    for (let at = 0; at < 3; at++) expectOutage(site, handled, await askAll(site, made.good, made.revoked))
    writeFileSync(path, kept)
    await expectBack(site, made.good, made.revoked)
  }, 20_000)

  it('keys outlast the end of the process', async () => {
    const reopened = sqliteKeyStore({ url: `file:${path}` })
    const other = await siteOf(reopened)
    await expectBack(other, made.good, made.revoked)
    await other.close()
    reopened.close()
  })
})

/** A Redis behind a connection that can be made slow. */
const slowProxy = async (
  port: number,
): Promise<{ readonly port: number; readonly delay: (ms: number) => void; readonly close: () => void }> => {
  let ms = 0
  const open = new Set<Socket>()
  const server: Server = createProxy((near) => {
    const far = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(from)
      from.on('data', (chunk) => void pause(ms).then(() => to.writable && to.write(chunk)))
      from.on('error', () => to.destroy())
      from.on('close', () => to.destroy())
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    delay: (time) => {
      ms = time
    },
    close: () => {
      for (const one of open) one.destroy()
      server.close()
    },
  }
}

type Connecting = (port: number) => Promise<{
  readonly command: (args: string[]) => Promise<unknown>
  readonly disconnect: () => void
}>

const retry = (times: number) => Math.min(times * 100, 1000)
// As the docstring of `redisStore` recommends
const connecting: Readonly<Record<string, Connecting>> = {
  'the official client': async (port) => {
    const socket = { connectTimeout: 2000, socketTimeout: 3000, reconnectStrategy: retry }
    const client = createClient({ url: `redis://127.0.0.1:${port}`, disableOfflineQueue: true, socket })
    client.on('error', () => {})
    await client.connect()
    return { command: (args) => client.sendCommand(args), disconnect: () => client.destroy() }
  },
  ioredis: async (port) => {
    const client = new Redis(port, '127.0.0.1', {
      ...{ enableOfflineQueue: false, maxRetriesPerRequest: 1, connectTimeout: 2000, socketTimeout: 3000 },
      retryStrategy: retry,
    })
    client.on('error', () => {})
    await new Promise((resolve) => client.once('ready', resolve))
    return { command: ([name = '', ...rest]) => client.call(name, ...rest), disconnect: () => client.disconnect() }
  },
}

describeWithRedis('Redis', () => {
  const server = redisServer({ persistent: true })
  describe.each(Object.entries(connecting))('%s', (_name, connectTo) => {
    let proxy: Awaited<ReturnType<typeof slowProxy>>
    let client: Awaited<ReturnType<Connecting>>
    let site: Site
    let made: Awaited<ReturnType<typeof issued>>
    beforeAll(async () => {
      proxy = await slowProxy(server().port)
      client = await connectTo(proxy.port)
      site = await siteOf(redisKeyStore({ command: client.command }))
    })
    beforeEach(async () => {
      made = await issued(site)
    })
    afterAll(async () => {
      await site?.close()
      client?.disconnect()
      proxy?.close()
    })

    it('stopped: 503 and anonymous in; started again, the same keys are good and the revoked one is not', async () => {
      await server().stop()
      const handled = site.handled()
      for (let at = 0; at < 3; at++) expectOutage(site, handled, await askAll(site, made.good, made.revoked))
      await expect(site.keys.issue({ owner: 'anna' })).rejects.toMatchObject({ status: 503 })
      await server().start()
      await expectBack(site, made.good, made.revoked)
    }, 30_000)

    it('paused: 503 in time, as silence is an outage, too; then back', async () => {
      server().pause()
      const handled = site.handled()
      for (let at = 0; at < 2; at++) expectOutage(site, handled, await askAll(site, made.good, made.revoked))
      await expect(site.keys.revoke(made.id)).rejects.toMatchObject({ status: 503 })
      server().continue()
      // what was asked while it was silent is done now: the key is revoked
      await vi.waitFor(async () => expect((await timed(site.url, made.good)).status).toBe(401), 5000)
    }, 30_000)

    it('slow, but in time: good; slower than the limit: 503', async () => {
      proxy.delay(100)
      expect((await timed(site.url, made.good)).status).toBe(200)
      proxy.delay(400)
      const handled = site.handled()
      expectOutage(site, handled, await askAll(site, made.good, made.revoked))
      proxy.delay(0)
      await expectBack(site, made.good, made.revoked)
    }, 30_000)
  })
})
