/** A site with API keys whose store can fail, and connections to a Redis that can be made slow. */
import { createServer as createProxy, connect, type Server, type Socket, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import Router from '@koa/router'
import { Redis } from 'ioredis'
import Koa from 'koa'
import { apiKeyHeader, withAuth } from 'koa-with-auth'
import { apiKeys, type ApiKeys } from 'koa-with-auth/keys'
import { type Store } from 'koa-with-auth/stores'
import { createClient } from 'redis'
import { listen } from '../servers/server.js'

/** How long the store may take, in milliseconds. */
export const TIMEOUT = 1000

export interface Site {
  readonly keys: ApiKeys<string>
  readonly url: string
  readonly handled: () => number
  readonly close: () => Promise<void>
}

export const siteOf = async (store: Store, touch = 1): Promise<Site> => {
  const keys = apiKeys({ prefix: 'acme', store, timeout: TIMEOUT, touch })
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

/** A Redis behind a connection that can be made slow. */
export const slowProxy = async (
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
      // Late, but in order, like TCP
      let last: Promise<unknown> = Promise.resolve()
      from.on('data', (chunk) => {
        last = Promise.all([last, pause(ms)]).then(() => to.writable && to.write(chunk))
      })
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

export type Connecting = (port: number) => Promise<{
  readonly command: (args: string[]) => Promise<unknown>
  readonly disconnect: () => void
}>

const retry = (times: number) => Math.min(times * 100, 1000)
/** The clients, set up as the docstring of `redisStore` recommends. */
export const connecting: Readonly<Record<string, Connecting>> = {
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
