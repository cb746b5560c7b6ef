/** C-03: one-time ids on a Redis Cluster, and while a master fails. */
import { setTimeout as pause } from 'node:timers/promises'
import { redisStore } from 'koa-with-auth/redis'
import { spentOver, type Spent } from 'koa-with-auth/sign-in'
import { laws } from 'koa-with-auth/testing/laws'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { timedStore } from '../../src/sessions/SessionStore.js'
import { redisCluster } from '../support/servers/redisCluster.js'
import { connectors, type ClusterClient } from '../support/servers/redisClusterClients.js'
import { describeWithRedis } from '../support/servers/redisServer.js'

const LONG = 600_000

describeWithRedis('C-03 one-time ids on a cluster of three masters with a replica each', () => {
  const cluster = redisCluster()
  const clients: ClusterClient[] = []
  let spents: Array<{ readonly name: string; readonly spent: Spent }> = []
  beforeAll(async () => {
    for (const connect of Object.values(connectors)) clients.push(await connect(cluster().ports))
    spents = clients.flatMap(({ command }, at) => {
      const store = timedStore(redisStore({ command }), 1000)
      const { spend: _spend, ...plain } = store
      const client = Object.keys(connectors)[at]
      return [
        { name: `${client}`, spent: spentOver(store) },
        { name: `${client}, by insert and read`, spent: spentOver(plain) },
      ]
    })
  })
  afterAll(() => clients.forEach((client) => void client.disconnect()))

  it('the laws hold with each client', async () => {
    for (const { spent } of spents) await laws.spent(spent).check()
  })

  it('a master is killed: what was replicated stays spent, no id is spent twice, and an outage rejects', async () => {
    await cluster().settled()
    const ids = Array.from({ length: 60 }, (_, at) => `before ${at}`)
    const all = spents.flatMap(({ name, spent }) => ids.map((id) => ({ id: `${name} ${id}`, spent })))
    const spend = ({ id, spent }: { id: string; spent: Spent }) =>
      spent.spend(id, LONG).then(
        (is): boolean | 'down' => is,
        () => 'down' as const,
      )
    expect(new Set(await Promise.all(all.map(spend)))).toEqual(new Set([true]))
    await cluster().replicated()
    const [master] = await cluster().masters()
    master!.kill()
    const seen = new Set<boolean | 'down'>()
    const wins = new Map<string, number>()
    let round = 0
    for (const end = Date.now() + 90_000; Date.now() < end; await pause(100)) {
      const again = await Promise.all(all.map(spend))
      for (const one of again) seen.add(one)
      const raced = spents.flatMap(({ spent, name }) =>
        Array.from({ length: 5 }, () => ({ id: `${name} during ${round}`, spent })),
      )
      for (const [at, one] of (await Promise.all(raced.map(spend))).entries()) {
        const { id } = raced[at]!
        if (one === true) wins.set(id, (wins.get(id) ?? 0) + 1)
      }
      round += 1
      if (seen.has('down') && again.every((one) => one === false)) break
    }
    expect(seen).toEqual(new Set([false, 'down']))
    expect(Math.max(...wins.values())).toBe(1)
    expect(await Promise.all(all.map(spend))).toEqual(all.map(() => false))
    for (const { spent, name } of spents) expect(await spent.spend(`${name} after`, LONG)).toBe(true)
  })
})
