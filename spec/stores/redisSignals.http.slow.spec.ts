/** `redisSignals` over a real Redis and a cluster of one node, with both clients: messages arrive, and what was missed is asked for. */
import { Cluster, Redis } from 'ioredis'
import { redisSignals, type RedisPublisher, type RedisSubscriber } from 'koa-with-auth/stores'
import { createClient, createCluster } from 'redis'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { describeWithRedis, startRedis, type RedisServer } from '../support/servers/redisServer.js'

interface Clients {
  readonly publisher: RedisPublisher
  readonly subscriber: RedisSubscriber
}

// What has not come after minutes does not come
const HANGS = 120_000

const retry = (times: number): number => Math.min(times * 20, 200)

const single: Readonly<Record<string, (server: RedisServer) => Promise<Clients>>> = {
  redis: async ({ url }) => {
    const publisher = createClient({ url, socket: { reconnectStrategy: retry } })
    const subscriber = publisher.duplicate()
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.destroy())
    }
    return { publisher, subscriber }
  },
  ioredis: async ({ url }) => {
    const publisher = new Redis(url, { retryStrategy: retry })
    const subscriber = publisher.duplicate()
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      onTestFinished(() => client.disconnect())
    }
    return { publisher, subscriber }
  },
}

const clustered: typeof single = {
  redis: async ({ port }) => {
    const make = () => createCluster({ rootNodes: [{ socket: { host: '127.0.0.1', port } }] })
    const [publisher, subscriber] = [make(), make()]
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.destroy())
    }
    return { publisher, subscriber }
  },
  ioredis: async ({ port }) => {
    const make = () => new Cluster([{ host: '127.0.0.1', port }], { lazyConnect: true })
    const [publisher, subscriber] = [make(), make()]
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.disconnect())
    }
    return { publisher, subscriber }
  },
}

describeWithRedis('redisSignals', () => {
  describe.each([
    ['one server', false, single],
    ['a cluster', true, clustered],
  ] as const)('over %s', (_where, cluster, clients) => {
    it.each(Object.keys(clients))('brings messages, and asks for what was missed, with %s', async (name) => {
      const server = await startRedis({ cluster })
      onTestFinished(server.close)
      const { publish, subscribe } = redisSignals(await clients[name]!(server))
      const heard: string[] = []
      await subscribe((message) => heard.push(message))
      await publish('a message')
      await vi.waitFor(() => expect(heard).toEqual(['a message']), HANGS)
      await server.send('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await vi.waitFor(
        () => expect(heard.filter((one) => one !== 'a message')).toContain('{"v":1,"about":"all"}'),
        HANGS,
      )
      await publish('another')
      await vi.waitFor(() => expect(heard).toContain('another'), HANGS)
    })
  })
  it.each([{}, { publisher: {} }, { publisher: { publish: () => {} }, subscriber: {} }])('refuses %j', (clients) => {
    expect(() => redisSignals(clients as never)).toThrow(TypeError)
  })
})
