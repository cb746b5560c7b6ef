/**
 * The end of a credential in every process: real processes over a real Redis and a Redis Cluster of three masters, with both clients. A
 * subscriber that lost its connection, a slow hub, and forged messages.
 */
import { randomBytes } from 'node:crypto'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { startRedisCluster } from '../support/servers/redisCluster.js'
import { describeWithRedis, startRedis } from '../support/servers/redisServer.js'
import { buildSite, startProgram } from '../support/sites/sessionSite.js'
import { cookiesIn } from '../support/servers/server.js'

let built: ReturnType<typeof buildSite>
beforeAll(() => {
  built = buildSite([program])
})
afterAll(() => built.remove())

const program = 'spec/support/sites/endsProcess'
// What has not come after minutes does not come
const HANGS = 120_000

const opened = async (port: number, path: string, headers: Record<string, string>) => {
  const stop = new AbortController()
  onTestFinished(() => stop.abort())
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers, signal: stop.signal })
  expect(response.status).toBe(200)
  let isOver = false
  const reader = response.body!.getReader()
  await reader.read()
  void reader.read().then(
    ({ done }) => (isOver = done),
    () => {},
  )
  return { isOver: () => isOver }
}

const servers = async (cluster: boolean) => {
  if (!cluster) {
    const { port, send, close } = await startRedis()
    return { port, sendAll: send, close }
  }
  const { nodes, close } = await startRedisCluster()
  const sendAll = (...command: string[]) => Promise.all(nodes.map(({ send }) => send(...command)))
  return { port: nodes[0]!.port, sendAll, close }
}

const service = async (client: string, cluster: boolean, processes: number, delay = 0) => {
  const redis = await servers(cluster)
  onTestFinished(redis.close)
  const env = {
    KEYS: randomBytes(32).toString('hex'),
    REDIS_PORT: String(redis.port),
    CLIENT: client,
    ...(cluster && { CLUSTER: 'yes' }),
    DELAY: String(delay),
  }
  const sites = await Promise.all(Array.from({ length: processes }, () => startProgram(built.folder, program, env)))
  for (const site of sites) onTestFinished(site.stop)
  const [{ port }] = sites as [(typeof sites)[number]]
  const post = (path: string, headers: Record<string, string> = {}, method = 'POST') =>
    fetch(`http://127.0.0.1:${port}${path}`, { method, headers })
  const signedIn = async (name: string) => {
    const response = await post(`/login/${name}`)
    expect(response.status).toBe(204)
    return {
      Cookie: cookiesIn(response.headers),
    }
  }
  const onAll = (path: string, headers: Record<string, string>) =>
    Promise.all(sites.map((site) => opened(site.port, path, headers)))
  return { redis, post, signedIn, onAll }
}

type Streams = ReadonlyArray<{ readonly isOver: () => boolean }>
const over = (streams: Streams) => vi.waitFor(() => expect(streams.every(({ isOver }) => isOver())).toBe(true), HANGS)
const open = (streams: Streams) => expect(streams.map(({ isOver }) => isOver())).toStrictEqual(streams.map(() => false))

describeWithRedis('the end of a credential', () => {
  describe.each([
    ['redis', false, 8],
    ['ioredis', false, 2],
    ['redis', true, 2],
    ['ioredis', true, 8],
  ] as const)('with %s, cluster: %s, %i processes', (client, cluster, processes) => {
    it('reaches all processes, no other credential, and what a lost connection missed is asked for', async () => {
      const { redis, post, signedIn, onAll } = await service(client, cluster, processes)
      const [anna, phone, bert] = [await signedIn('anna'), await signedIn('anna'), await signedIn('bert')]
      const { id, key } = (await (await post('/keys/anna')).json()) as { id: string; key: string }
      const other = (await (await post('/keys/anna')).json()) as { key: string }
      const streams = {
        anna: await onAll('/events', anna),
        phone: await onAll('/events', phone),
        bert: await onAll('/events', bert),
        key: await onAll('/key-events', { 'X-Key': key }),
        other: await onAll('/key-events', { 'X-Key': other.key }),
      }

      // forged messages end nothing
      const hostile = createClient({ url: `redis://127.0.0.1:${redis.port}` })
      await hostile.connect()
      onTestFinished(() => hostile.destroy())
      for (const message of ['', '{', '{"v":1,"about":"all"}', `{"v":1,"about":"${'x'.repeat(43)}"}`, 'x'.repeat(1e6)])
        await hostile.publish('koa-with-auth:ends', message)

      expect((await post('/logout', anna)).status).toBe(204)
      await over(streams.anna)
      open([...streams.phone, ...streams.bert, ...streams.key, ...streams.other])

      expect((await post(`/keys/${id}`, {}, 'DELETE')).status).toBe(204)
      await over(streams.key)
      open([...streams.phone, ...streams.bert, ...streams.other])

      // no process listens when this is published, or only some
      await redis.sendAll('CLIENT', 'KILL', 'TYPE', 'pubsub')
      expect((await post('/everywhere/anna')).status).toBe(204)
      await redis.sendAll('CLIENT', 'KILL', 'TYPE', 'pubsub')
      await over(streams.phone)
      open([...streams.bert, ...streams.other])
    })
  })

  it('does not wait for a slow hub, and is here at once', async () => {
    const { post, signedIn, onAll } = await service('redis', false, 1, 3_600_000)
    const anna = await signedIn('anna')
    const streams = await onAll('/events', anna)
    expect((await post('/logout', anna)).status).toBe(204)
    await over(streams.slice(0, 1))
  })
})
