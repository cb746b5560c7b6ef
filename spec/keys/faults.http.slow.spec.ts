/**
 * API keys while their store is locked, truncated, stopped, paused or slow: 503 in time, no request passes wrongly, and
 * the service recovers by itself.
 */
import { redisStore, sqliteStore } from 'koa-with-auth/stores'
import { mkdtempSync, rmSync, truncateSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { connecting, siteOf, slowProxy, TIMEOUT, type Connecting, type Site } from '../support/sites/keySite.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { ask } from '../support/servers/server.js'
import { another, engines } from '../support/stores/sqliteEngines.js'

// Ten times the timeout of the store, for a busy machine
const IN_TIME = 10 * TIMEOUT

const timed = async (url: string, key: string) => {
  const begun = performance.now()
  const { status, challenge, headers, text } = await ask(url, { headers: { key } })
  return { status, challenge, retryAfter: headers.get('Retry-After'), text, took: performance.now() - begun }
}

// All at the same time: a valid key, a revoked one, and requests that need no look-up
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
  // A malformed key needs no store
  expect(answers.malformed.status).toBe(401)
  expect(site.handled()).toBe(handled)
}

const expectBack = async (site: Site, good: string, revoked: string): Promise<void> => {
  await vi.waitFor(async () => expect((await timed(site.url, good)).status).toBe(200), {
    timeout: 120_000,
    interval: 50,
  })
  expect((await timed(site.url, revoked)).status).toBe(401)
}

const issued = async ({ keys }: Site) => {
  const [good, revoked] = [await keys.issue({ owner: 'anna' }), await keys.issue({ owner: 'sam' })]
  await keys.revoke(revoked.id)
  return { id: good.id, good: good.key, revoked: revoked.key }
}

describe.each(engines)('SQLite by %s', (engine) => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-keys-'))
  const path = join(folder, 'keys.db')
  const store = sqliteStore({ url: `file:${path}`, engine })
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

  it('locked by another process: keys stay valid, although their last use cannot be written; changes are 503', async () => {
    const client = await another(path, engine)
    const unlock = await client.lock()
    for (let at = 0; at < 5; at++) {
      const { good, revoked, malformed } = await askAll(site, made.good, made.revoked)
      expect([good.status, revoked.status, malformed.status]).toEqual([200, 401, 401])
      expect(good.took).toBeLessThan(IN_TIME)
    }
    const begun = performance.now()
    const changes = await Promise.allSettled([
      site.keys.issue({ owner: 'anna' }),
      site.keys.rotate(made.id, { overlap: 0 }),
      site.keys.revoke(made.id),
    ])
    for (const change of changes) {
      expect(change).toMatchObject({ status: 'rejected', reason: { name: 'StoreUnavailable', status: 503 } })
    }
    expect(performance.now() - begun).toBeLessThan(IN_TIME)
    unlock()
    client.close()
    // A change that was given up while the file was locked may still be made; a new change is made
    await vi.waitFor(async () => expect((await site.keys.issue({ owner: 'late' })).key).toMatch(/^acme_/), 120_000)
    made = await issued(site)
    await expectBack(site, made.good, made.revoked)
  })

  it('truncated: 503, and anonymous callers pass; restored: the same keys are valid', async () => {
    const client = await another(path, engine)
    await client.execute('pragma wal_checkpoint(truncate)')
    client.close()
    const kept = readFileSync(path)
    truncateSync(path, 0)
    const handled = site.handled()
    for (let at = 0; at < 3; at++) expectOutage(site, handled, await askAll(site, made.good, made.revoked))
    writeFileSync(path, kept)
    await expectBack(site, made.good, made.revoked)
  })

  it('closed and opened again, as by another process: the same keys are valid', async () => {
    const reopened = sqliteStore({ url: `file:${path}`, engine })
    const other = await siteOf(reopened)
    await expectBack(other, made.good, made.revoked)
    await other.close()
    reopened.close()
  })
})

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
      site = await siteOf(redisStore({ command: client.command }))
    })
    beforeEach(async () => {
      made = await issued(site)
    })
    afterAll(async () => {
      await site?.close()
      client?.disconnect()
      proxy?.close()
    })

    it('stopped: 503, and anonymous callers pass; started again: the same keys are valid, and the revoked one is not', async () => {
      await server().stop()
      const handled = site.handled()
      for (let at = 0; at < 3; at++) expectOutage(site, handled, await askAll(site, made.good, made.revoked))
      await expect(site.keys.issue({ owner: 'anna' })).rejects.toMatchObject({ status: 503 })
      await server().start()
      await expectBack(site, made.good, made.revoked)
    })

    it('paused: 503 in time, because silence is an outage, too; then it recovers', async () => {
      server().pause()
      const handled = site.handled()
      // Once, because the clients give a silent connection up after three seconds
      expectOutage(site, handled, await askAll(site, made.good, made.revoked))
      await expect(site.keys.revoke(made.id)).rejects.toMatchObject({ status: 503 })
      server().continue()
      // The change has not been made: it can be repeated
      await vi.waitFor(async () => expect((await timed(site.url, made.good)).status).toBe(200), 120_000)
      expect(await site.keys.revoke(made.id)).toBe(true)
      expect((await timed(site.url, made.good)).status).toBe(401)
    })

    it('slow, but in time: valid; slower than the timeout: 503', async () => {
      proxy.delay(TIMEOUT / 10)
      expect((await timed(site.url, made.good)).status).toBe(200)
      proxy.delay(0.8 * TIMEOUT)
      const handled = site.handled()
      expectOutage(site, handled, await askAll(site, made.good, made.revoked))
      proxy.delay(0)
      await expectBack(site, made.good, made.revoked)
    })
  })
})
