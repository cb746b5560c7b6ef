/**
 * A real Redis Cluster on free ports of the loopback address, for the time of a suite: three masters with a replica
 * each. A node can be paused and killed. Then its replica is promoted as in production, only sooner.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { duringSuite } from '../runs/duringSuite.js'
import { commandsIn, freePort, redisPath, sendTo } from './redisServer.js'

/** After this many milliseconds a silent node counts as failed. On a busy machine a node can be silent, too. */
const nodeTimeout = 1500

export interface RedisNode {
  readonly port: number
  /** Sends one command over a separate connection. Resolves with the raw reply. */
  readonly send: (...args: string[]) => Promise<string>
  /** Stops the process: connections stay open, and get no reply. */
  readonly pause: () => void
  readonly continue: () => void
  readonly kill: () => void
}

const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
  for (const end = Date.now() + 15_000; Date.now() < end; await pause(25)) if (await isSo().catch(() => false)) return
  throw new Error(`redis cluster: ${what} did not happen`)
}

// As many different ones
const freePorts = async (count: number): Promise<number[]> => {
  const ports = new Set<number>()
  while (ports.size < count) ports.add(await freePort())
  return [...ports]
}

const options = (port: number, bus: number, dir: string): string[] =>
  Object.entries({
    port,
    bind: '127.0.0.1',
    dir,
    save: '',
    appendonly: 'no',
    'cluster-enabled': 'yes',
    // The default is 10000 higher, which may not be a valid port
    'cluster-port': bus,
    'cluster-announce-ip': '127.0.0.1',
    'cluster-node-timeout': nodeTimeout,
    // The slots of other masters are served during a failover
    'cluster-require-full-coverage': 'no',
    'repl-diskless-sync-delay': 0,
  }).flatMap(([name, value]) => [`--${name}`, String(value)])

// The positions of a master and of its replica, in bytes that were written
const progress = (info: string) => {
  const replica = /^slave\d+:.*state=online,offset=(\d+)/m.exec(info)?.[1]
  return {
    id: /^master_replid:(\w+)/m.exec(info)?.[1],
    master: Number(/^master_repl_offset:(\d+)/m.exec(info)?.[1]),
    replica: replica === undefined ? undefined : Number(replica),
  }
}

const text = (reply: string): string => reply.replace(/^\$\d+\r\n/, '').trim()

/** Starts six processes, with the slots divided among the first three, which are the masters at the beginning. */
export const startRedisCluster = async () => {
  const path = redisPath(process.env)
  if (path === undefined) throw new Error('no redis-server on the PATH; apt-get install redis-server')
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-cluster-'))
  const free = await freePorts(12)
  const [ports, buses] = [free.slice(0, 6), free.slice(6)]
  const children: ChildProcess[] = ports.map((port, at) => {
    const own = join(folder, String(port))
    mkdirSync(own)
    return spawn(path, options(port, buses[at] ?? 0, own), { stdio: 'ignore' })
  })
  const killAll = (): void => children.forEach((child) => child.kill('SIGKILL'))
  process.once('exit', killAll)
  const nodes = ports.map((port, at): RedisNode => ({
    port,
    send: (...args) => sendTo(port, args),
    pause: () => void children[at]?.kill('SIGSTOP'),
    continue: () => void children[at]?.kill('SIGCONT'),
    kill: () => void children[at]?.kill('SIGKILL'),
  }))
  const close = async (): Promise<void> => {
    const ended = children
      .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
      .map((child) => new Promise((resolve) => child.once('exit', resolve)))
    killAll()
    await Promise.all(ended)
    process.off('exit', killAll)
    rmSync(folder, { recursive: true, force: true })
  }
  const answering = async <A>(ask: (node: RedisNode) => Promise<A>): Promise<A[]> => {
    const answers = await Promise.allSettled(nodes.map(ask))
    return answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  }
  const form = async (): Promise<void> => {
    const all = (isSo: (node: RedisNode) => Promise<boolean>) => async () =>
      (await Promise.all(nodes.map(isSo))).every(Boolean)
    await until(
      'its start',
      all(async (node) => (await node.send('PING')).startsWith('+PONG')),
    )
    const [first, ...others] = nodes
    for (const [at, node] of nodes.entries()) {
      await node.send('CLUSTER', 'SET-CONFIG-EPOCH', String(at + 1))
      if (at < 3) {
        const [from, to] = [Math.ceil((at * 16384) / 3), Math.ceil(((at + 1) * 16384) / 3) - 1]
        await node.send('CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
      }
    }
    for (const { port } of others) {
      const bus = buses[ports.indexOf(port)]
      await first!.send('CLUSTER', 'MEET', '127.0.0.1', String(port), String(bus))
    }
    await until(
      'the meeting',
      all(async (node) => (await node.send('CLUSTER', 'INFO')).includes('known_nodes:6')),
    )
    const masters = await Promise.all(nodes.slice(0, 3).map(async (node) => text(await node.send('CLUSTER', 'MYID'))))
    await until('the replication', async () => {
      const answers = await Promise.all(
        nodes.slice(3).map((node, at) => node.send('CLUSTER', 'REPLICATE', masters[at] ?? '')),
      )
      return answers.every((answer) => answer.startsWith('+OK'))
    })
    await until(
      'the link to a master',
      async () =>
        (await Promise.all(nodes.slice(3).map((node) => node.send('INFO', 'replication')))).every((info) =>
          info.includes('master_link_status:up'),
        ) &&
        (await Promise.all(nodes.map((node) => node.send('CLUSTER', 'INFO')))).every(
          (info) => info.includes('cluster_state:ok') && info.includes('cluster_slots_ok:16384'),
        ),
    )
    // Every node must know which nodes are replicas, or clients ask them for slots
    await until(
      'the gossip',
      all(async (node) => (await node.send('CLUSTER', 'NODES')).match(/ (?:myself,)?slave /g)?.length === 3),
    )
  }
  await form().catch(async (error: unknown) => {
    await close()
    throw error
  })
  const followed = async () => {
    const all = await answering((node) => node.send('INFO', 'replication'))
    return all.filter((info) => info.includes('role:master')).map(progress)
  }
  return {
    nodes,
    ports,
    /** The nodes that are masters now, and reply. */
    masters: async () => {
      const found = await answering(async (node) => {
        const info = await node.send('INFO', 'replication')
        return info.includes('role:master') ? [node] : []
      })
      return found.flat()
    },
    /** Resolves when each of three masters has a replica that follows it, which is needed when a master fails. */
    settled: () =>
      until('that each master has a replica', async () => {
        const all = await followed()
        return all.length === 3 && all.every(({ replica }) => replica !== undefined)
      }),
    /** Resolves when the replicas have what was written. Redis replies before they have it. */
    replicated: async () => {
      const written = new Map((await followed()).map(({ id, master }) => [id, master]))
      await until('the replication of what was written', async () =>
        (await followed()).every(({ id, replica = 0 }) => replica >= (written.get(id) ?? 0)),
      )
    },
    /** How often each command ran since `reset`, on all nodes that reply: `{ get: 2 }`. */
    commands: async () => commandsIn((await answering((node) => node.send('INFO', 'commandstats'))).join()),
    reset: async () => void (await answering((node) => node.send('CONFIG', 'RESETSTAT'))),
    close,
  }
}

/** A cluster while the surrounding suite runs. Use it inside of hooks and tests. */
export const redisCluster = () => duringSuite(startRedisCluster, (cluster) => cluster.close(), 60_000)
