/** A subscriber of Redis whose connection says nothing, but stays: it is connected anew, with both clients. */
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { redisSignals, type RedisPublisher, type RedisSubscriber } from 'koa-with-auth/stores'
import { on } from 'koa-with-auth/events'
import { createClient } from 'redis'
import { expect, it, onTestFinished, vi } from 'vitest'
import { NamedEnd } from '../../src/core/ends.js'
import { ends } from '../../src/ends/ends.js'
import { connected } from '../../src/signals/signals.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { describeWithRedis, startRedis } from '../support/servers/redisServer.js'
import { network } from '../support/sites/sessionSiteRedis.js'

interface Clients {
  readonly publisher: RedisPublisher
  readonly subscriber: RedisSubscriber
}

const clients: Readonly<Record<string, (url: string, silentUrl: string) => Promise<Clients>>> = {
  redis: async (url, silentUrl) => {
    const [publisher, subscriber] = [createClient({ url }), createClient({ url: silentUrl })]
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      await client.connect()
      onTestFinished(() => client.destroy())
    }
    return { publisher, subscriber }
  },
  ioredis: async (url, silentUrl) => {
    const [publisher, subscriber] = [new Redis(url), new Redis(silentUrl)]
    for (const client of [publisher, subscriber]) {
      client.on('error', () => {})
      onTestFinished(() => client.disconnect())
    }
    return { publisher, subscriber }
  },
}

describeWithRedis('a silent hub', () => {
  it.each(Object.entries(clients))('is reported, and heard again over another connection, with %s', async (_, make) => {
    const server = await startRedis()
    onTestFinished(server.close)
    const between = network()
    const port = await between.open(server.port)
    onTestFinished(between.close)
    ownEnds()
    const signals = redisSignals(await make(server.url, `redis://127.0.0.1:${port}`))
    await signals.subscribe(() => {})
    let asked = 0
    class Counted extends NamedEnd {
      override async ask(): Promise<number> {
        asked++
        return Infinity
      }
    }
    const events: string[] = []
    onTestFinished(on('store-outage', ({ store, event }) => void (store === 'signals' && events.push(event))))
    // after the clients are connected: the clock of this test drives the heartbeat alone
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    connected(signals)
    ends().open(new Counted(Infinity, 'anna'), { abort: () => {} })
    const pass = async (isDone: () => boolean): Promise<void> => {
      for (let at = 0; !isDone() && at < 5000; at++) {
        vi.advanceTimersByTime(100)
        // of real time, which the network needs
        await setTimeout(4)
      }
      expect(isDone()).toBe(true)
    }
    await pass(() => asked === 1)
    between.silence()
    await signals.publish('lost')
    await pass(() => events.includes('begun'))
    await pass(() => asked === 2)
    // the connections that were silent stay so; new ones pass
    between.restore()
    await pass(() => events.includes('over'))
    await pass(() => asked >= 3)
    expect(events[0]).toBe('begun')
  })
})
