/** Faults of Redis under a site with fifty clients: one suite for every client library. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWithRedis, redisServer } from '../servers/redisServer.js'
import { buildSite, siteCommand, startSite, type Site } from './sessionSite.js'
import { siteClient } from './sessionSiteClient.js'
import { expectHeld, timeout, underFault, warm } from './sessionSiteFaults.js'
import { startLoad, type Load } from './sessionSiteLoad.js'

/** A network between a site and Redis that can drop every byte silently. */
export const network = () => {
  let isSilent = false
  // A silent connection stays silent, like one to a machine that is gone
  const silenced = new WeakSet<Socket>()
  const sockets = new Set<Socket>()
  let server: Server
  const pass = (from: Socket, to: Socket, pair: Socket): void => {
    from.on('data', (chunk) => {
      if (isSilent) silenced.add(pair)
      if (!silenced.has(pair)) to.write(chunk)
    })
    from.on('error', () => {})
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    sockets.add(from)
  }
  return {
    open: (target: number): Promise<number> =>
      new Promise((resolve) => {
        server = createServer((socket) => {
          const upstream = connect(target, '127.0.0.1')
          pass(socket, upstream, socket)
          pass(upstream, socket, socket)
        }).listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
      }),
    silence: () => {
      isSilent = true
    },
    restore: () => {
      isSilent = false
    },
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const options = { timeout: 100_000 }

/** The suite, for a store of `sessionSiteStores.ts`. */
export const describeRedisFaults = (store: string): void => {
  describeWithRedis(`sessions in Redis by ${store}, under load`, () => {
    const redis = redisServer({ persistent: true })
    const built = buildSite()
    const between = network()
    let site: Site
    let load: Load
    beforeAll(async () => {
      const port = await between.open(redis().port)
      const env = { STORE: store, REDIS_PORT: String(port), TIMEOUT: String(timeout) }
      site = await startSite(siteCommand(built.folder, env))
      load = await startLoad(site.port)
      await warm()
    }, 60_000)
    afterAll(async () => {
      await load?.stop()
      await site?.stop()
      between.close()
      built.remove()
    })

    it(
      'stopped, then started again: guarded operations are 503 meanwhile, then the same cookies are valid',
      options,
      async () => {
        expectHeld(await underFault(site, load, { begin: redis().stop, end: redis().start }), [503])
      },
    )

    it(
      'paused: guarded operations are 503 within the time limit, then the same cookies are valid',
      options,
      async () => {
        expectHeld(await underFault(site, load, { begin: redis().pause, end: redis().continue }), [503])
      },
    )

    it('a silent connection: the client makes another one by itself', options, async () => {
      expectHeld(await underFault(site, load, { begin: between.silence, end: between.restore }), [503])
    })

    it('started again without its data: sessions are gone, and no user becomes another', options, async () => {
      const client = siteClient(site.port)
      await client.send('POST', '/login/user-before')
      expect(await client.send('GET', '/me')).toMatchObject({ status: 200 })
      const { calls } = await site.state()
      await redis().send('FLUSHALL')
      await redis().restart()
      for (const until = Date.now() + 5000; Date.now() < until;) {
        const { status } = await client.send('GET', '/me')
        if (status !== 503) break
      }
      const gone = await client.send('GET', '/me')
      expect([gone.status, gone.challenge, gone.setCookie]).toEqual([401, 'Session realm="api"', []])
      expect((await site.state()).calls['strangers']).toBe(calls['strangers'])
      await client.send('POST', '/login/user-again')
      const back = await client.send('GET', '/me')
      expect([back.status, JSON.parse(back.body)]).toEqual([200, { username: 'user-again', notes: 0 }])
      client.close()
    })
  })
}
