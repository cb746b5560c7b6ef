/**
 * A Redis Cluster under the stores: three masters with a replica each, with the clients node-redis and ioredis. Where
 * keys are, what a request costs, and what happens when a master is silent or killed under load.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { httpBasicAuth, throttled, withAuth } from 'koa-with-auth'
import { apiKeys } from 'koa-with-auth/keys'
import { redisStore } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { either as E } from 'fp-ts'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { operation } from '../support/models/behavior.js'
import { redisCluster, type RedisNode } from '../support/servers/redisCluster.js'
import { connectors, type ClusterClient } from '../support/servers/redisClusterClients.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { roundTrips } from '../support/models/roundTrips.js'
import { buildSite, siteCommand, startSite, type Site } from '../support/sites/sessionSite.js'
import { siteClient, type SiteClient } from '../support/sites/sessionSiteClient.js'
import { timeout } from '../support/sites/sessionSiteFaults.js'
import { isWell, longest, startLoad, summary, type Entry, type Load } from '../support/sites/sessionSiteLoad.js'
import { expectAnonymous, expectSignedIn, sessionsApp, type Visitor } from '../support/sites/sessionsApp.js'

describeWithRedis('on a cluster of three masters with a replica each', () => {
  const cluster = redisCluster()
  const sizes = async (): Promise<number[]> =>
    Promise.all((await cluster().masters()).map(async (node) => Number((await node.send('DBSIZE')).slice(1))))
  const refused = async (): Promise<string[]> =>
    (await Promise.all(cluster().nodes.map((node) => node.send('INFO', 'errorstats')))).flatMap((stats) =>
      [...stats.matchAll(/errorstat_(CROSSSLOT|MOVED)/g)].map(([, name = '']) => name),
    )
  const emptied = async (): Promise<void> => {
    for (const node of await cluster().masters()) await node.send('FLUSHALL')
    await cluster().reset()
  }

  describe.each(Object.keys(connectors))('with %s', (name) => {
    let connected: ClusterClient
    beforeAll(async () => {
      connected = await connectors[name]!(cluster().ports)
    })
    afterAll(() => connected?.disconnect())

    it('sessions are on all masters, and no command concerns two slots', async () => {
      await emptied()
      const { users, visitor, signing } = await sessionsApp(() => redisStore({ command: connected.command }))
      const visitors: Visitor[] = []
      for (let person = 0; person < 60; person++) {
        const username = `user-${person}`
        users.set(username, { username, isActive: true })
        const one = visitor()
        await one.post(`/login?user=${username}`)
        await one.post('/set?basket=pear')
        await expectSignedIn(one, { username, isActive: true })
        visitors.push(one)
      }
      const kept = await sizes()
      // of each user, a session and a revocation stamp
      expect(kept.reduce((all, one) => all + one)).toBe(120)
      expect(Math.min(...kept)).toBeGreaterThan(5)
      await visitors[0]!.post('/logout')
      await signing.logOutEverywhere('user-1')
      for (const one of visitors.slice(0, 2)) await expectAnonymous(one)
      expect(await refused()).toEqual([])
    })

    it('a guarded request costs two look-ups in one round trip, whichever masters have the keys', async () => {
      const trips = await roundTrips(cluster().ports)
      const relayed = await connectors[name]!(cluster().ports, trips.through)
      try {
        const { app, users, visitor } = await sessionsApp(() => redisStore({ command: relayed.command }))
        for (const username of ['one', 'two', 'three', 'four']) {
          users.set(username, { username, isActive: true })
          const one = visitor()
          await one.post(`/login?user=${username}`)
          await cluster().reset()
          expect(await trips.of(() => expectSignedIn(one, { username, isActive: true }))).toBe(1)
          const { get, mget } = await cluster().commands()
          expect({ get, mget }).toEqual({ get: 2 })
        }
        const old = visitor()
        await old.post('/login?user=one')
        app.keys = ['n'.repeat(40), ...(app.keys as string[])]
        expect(await trips.of(() => old.ask('/open'))).toBeGreaterThan(1)
      } finally {
        relayed.disconnect()
        trips.close()
      }
    })

    it('API keys are on all masters, and a look-up is one command', async () => {
      await emptied()
      const keys = apiKeys({ prefix: 'acme', store: redisStore({ command: connected.command }), touch: false })
      const issued = []
      for (let at = 0; at < 40; at++) issued.push(await keys.issue({ owner: `owner ${at % 4}` }))
      await cluster().reset()
      for (const { key } of issued) expect(E.isRight(await keys.authenticate(mockRequest({}), key))).toBe(true)
      expect((await cluster().commands())['get']).toBe(40)
      const [first] = issued
      expect((await keys.rotate(first!.id, { overlap: 1000 })).id).toBe(first!.id)
      expect(await keys.revoke(first!.id)).toBe(true)
      expect(await keys.list('owner 0')).toHaveLength(10)
      expect((await sizes()).filter((size) => size > 0)).toHaveLength((await sizes()).length)
      expect(await refused()).toEqual([])
    })

    it('guesses at different accounts are counted on different masters, and each account is limited', async () => {
      await emptied()
      const limiter = new RateLimiterRedis({ ...connected.limiting, points: 3, duration: 900 })
      let hooked = 0
      const basic = httpBasicAuth({
        authenticate: (_request, username, password) => {
          hooked++
          return password === 'good' && { username }
        },
      })
      const { ask } = await operation(withAuth(throttled({ limiter })(basic)))
      const statuses: number[][] = []
      for (let account = 0; account < 12; account++) {
        const wrong = `Basic ${Buffer.from(`account ${account}:wrong`).toString('base64')}`
        const answers = Array.from({ length: 5 }, () => ask('/x', { headers: { Authorization: wrong } }))
        statuses.push((await Promise.all(answers)).map(({ status }) => status).sort())
      }
      expect(statuses).toEqual(Array.from({ length: 12 }, () => [401, 401, 401, 429, 429]))
      expect(hooked).toBe(36)
      expect(Math.min(...(await sizes()))).toBeGreaterThan(0)
      expect(await refused()).toEqual([])
    })
  })
  describe('under load, with both clients', () => {
    const built = buildSite()
    let sides: { readonly name: string; readonly site: Site; readonly load: Load }[] = []
    beforeAll(async () => {
      await emptied()
      const REDIS_PORTS = cluster().ports.join(' ')
      sides = await Promise.all(
        ['redis cluster', 'ioredis cluster'].map(async (name) => {
          const env = { STORE: name, REDIS_PORTS, TIMEOUT: String(timeout) }
          const site = await startSite(siteCommand(built.folder, env))
          return { name, site, load: await startLoad(site.port) }
        }),
      )
      await pause(1000)
    })
    afterAll(async () => {
      for (const { load, site } of sides) {
        await load.stop()
        await site.stop()
      }
      built.remove()
    })
    // A request that is late because the machine is busy is a 503, and is sent again
    const done = async (client: SiteClient, path: string): Promise<void> => {
      let { status } = await client.send('POST', path)
      while (status === 503) ({ status } = await client.send('POST', path))
      expect([path, status]).toEqual([path, 204])
    }
    // One user for each master, most likely
    const signedIn = (site: Site, name: string): Promise<SiteClient[]> =>
      Promise.all(
        Array.from({ length: 12 }, async (_, at) => {
          const client = siteClient(site.port)
          await done(client, `/login/user-${name}-${at}`)
          return client
        }),
      )
    const everyone = (name: string) => Promise.all(sides.map(({ site }) => signedIn(site, name)))
    const signedOut = async (people: ReadonlyArray<SiteClient>): Promise<SiteClient[]> => {
      const copies = people.map((one) => one.copy())
      await Promise.all(people.map((one) => done(one, '/logout')))
      return copies
    }
    // None passes; each must be refused, not only get a 503
    const areOut = async (copies: ReadonlyArray<SiteClient>): Promise<boolean> => {
      const replies = await Promise.all(copies.map((one) => one.send('GET', '/me')))
      expect(replies.filter(({ status }) => status !== 401 && status !== 503)).toEqual([])
      return replies.every(({ status }) => status === 401)
    }
    const untilOut = async (copies: ReadonlyArray<SiteClient>): Promise<void> => {
      while (!(await areOut(copies))) await pause(20)
    }
    const since = (load: Load, begun: number): Entry[] => load.entries.filter((one) => one.ended > begun)
    const lastTrouble = (load: Load, begun: number): number =>
      Math.max(begun, ...since(load, begun).flatMap((one) => (isWell(one) ? [] : [one.ended])))

    // Until every user on both sites has been served for a second
    const untilWell = async (begun: number): Promise<void> => {
      const last = () => Math.max(begun + 1000, ...sides.map(({ load }) => lastTrouble(load, begun)))
      while (performance.now() - last() < 1000 && performance.now() - begun < 60_000) await pause(20)
    }

    const expectServed = async (begun: number): Promise<void> => {
      for (const { name, site, load } of sides) {
        const all = since(load, begun)
        const of = (...asked: Entry['asked'][]) => all.filter((one) => asked.includes(one.asked))
        const statusesOf = (...asked: Entry['asked'][]) => [...new Set(of(...asked).map(({ status }) => status))].sort()
        const back = lastTrouble(load, begun) - begun
        const slowest = longest(all) - longest(of('without'))
        const figures = `${name}: ${JSON.stringify(summary(all))}, back after ${back.toFixed(0)} ms, longest ${longest(all).toFixed(0)} ms`
        // No request passes wrongly
        expect(all.filter((one) => one.isOfAnother)).toEqual([])
        expect((await site.state()).calls['strangers']).toBe(0)
        expect(statusesOf('wrong').filter((status) => status !== 503)).toEqual([401])
        // No user is signed out: users whose master fails get a 503 meanwhile, and the others are served
        expect(statusesOf('guarded'), figures).toEqual([200, 503])
        expect(statusesOf('write'), figures).toEqual([201, 503])
        expect(statusesOf('public', 'without'), figures).toEqual([200])
        expect(all.filter(({ status, setCookie }) => status === 503 && setCookie.length > 0)).toEqual([])
        expect(slowest, figures).toBeLessThan(10 * timeout)
        expect(back, figures).toBeLessThan(60_000)
      }
    }
    const masterAt = async (at: number): Promise<RedisNode> => (await cluster().masters())[at]!

    it('a silent master: its replica takes over, and its late replies admit no user', async () => {
      await cluster().settled()
      const people = await everyone('silent')
      const master = await masterAt(0)
      const begun = performance.now()
      master.pause()
      try {
        await untilWell(begun)
        await expectServed(begun)
      } finally {
        // They sign out while it is silent, so it does not know
        const copies = (await Promise.all(people.map(signedOut))).flat()
        master.continue()
        for (let time = 0; time < 20; time++) await areOut(copies)
        await untilWell(performance.now())
        await untilOut(copies)
      }
    })

    it('a killed master: its replica takes over, and users who signed out just before stay signed out', async () => {
      await cluster().settled()
      const people = await everyone('killed')
      const copies = (await Promise.all(people.map(signedOut))).flat()
      await cluster().replicated()
      const begun = performance.now()
      ;(await masterAt(1)).kill()
      await areOut(copies)
      await untilWell(begun)
      await expectServed(begun)
      await untilOut(copies)
    })
  })
})
