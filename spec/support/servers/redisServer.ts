/**
 * A real redis-server on a free port of the loopback address, for the time of a suite. It can be paused, stopped, and
 * started again on the same port. Its folder is temporary. By default it keeps nothing on disk.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { duringSuite } from '../runs/duringSuite.js'
import { describeUnless, missingProgram, programPath } from '../projects/programs.js'

const names = ['redis-server']

/** The path of redis-server. */
export const redisPath = (env: NodeJS.ProcessEnv): string | undefined => programPath(names, env)

/** A suite that needs a redis-server. Without one it is skipped. */
export const describeWithRedis = (name: string, suite: () => void): void =>
  describeUnless(missingProgram(names, process.env), name, suite)

export type RedisServer = Awaited<ReturnType<typeof startRedis>>

interface RedisServerOptions {
  /** Whether its data outlast `stop` and `start`: every write is on disk before the reply. */
  readonly persistent?: boolean
  /** Whether it is a cluster of one node with all slots. */
  readonly cluster?: boolean
}

/** A port that is not in use. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

// What has not come after minutes does not come, however busy the machine is
const HANGS = 120_000

const encoded = (args: ReadonlyArray<string>): string =>
  `*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join('')}`

/** Sends one command to a database. Enough for short replies, which arrive in one piece. */
export const sendTo = (port: number, args: ReadonlyArray<string>, database?: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const select = database === undefined ? '' : encoded(['SELECT', String(database)])
    const selected = database === undefined ? '' : '+OK\r\n'
    const socket = connect(port, '127.0.0.1', () => socket.write(select + encoded(args)))
    let received = ''
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('redis-server closed the connection')))
    socket.on('data', (data) => {
      received += data.toString()
      if (received.length <= selected.length) return
      socket.destroy()
      resolve(received.slice(selected.length))
    })
  })

const idle = new Set(['cluster', 'info', 'config', 'ping', 'replconf', 'psync'])

/** How often each command ran, from `INFO commandstats`, without commands for the administration of servers. */
export const commandsIn = (stats: string): Record<string, number> => {
  const counts: Record<string, number> = {}
  for (const [, name = '', calls] of stats.matchAll(/cmdstat_([\w|]+):calls=(\d+)/g)) {
    if (!idle.has(name.split('|')[0] ?? '')) counts[name] = (counts[name] ?? 0) + Number(calls)
  }
  return counts
}

const untilReady = async (port: number, child: ChildProcess): Promise<void> => {
  for (const until = Date.now() + HANGS; Date.now() < until; await pause(20)) {
    if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`)
    if ((await sendTo(port, ['PING']).catch(() => '')).startsWith('+PONG')) return
  }
  throw new Error('redis-server did not start')
}

const untilFormed = async (port: number): Promise<void> => {
  await sendTo(port, ['CLUSTER', 'ADDSLOTSRANGE', '0', '16383'])
  for (const until = Date.now() + HANGS; Date.now() < until; await pause(50)) {
    if ((await sendTo(port, ['CLUSTER', 'INFO'])).includes('cluster_state:ok')) return
  }
  throw new Error('the cluster did not form')
}

// A node that has met no other one does not know its address, which clients need
const clusterOfOne = ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']

/** Starts one. */
export const startRedis = async ({ persistent = false, cluster = false }: RedisServerOptions = {}) => {
  const path = redisPath(process.env)
  if (path === undefined) throw new Error('no redis-server on the PATH; apt-get install redis-server')
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-redis-'))
  const persistence = persistent ? ['--appendonly', 'yes', '--appendfsync', 'always'] : ['--appendonly', 'no']
  // Its second port is 10000 higher by default, which may not be a valid port
  const clustering = cluster
    ? ['--cluster-port', String(await freePort()), ...clusterOfOne]
    : // one for each suite that shares a server, looked through for expired keys more often, because they are many
      ['--databases', '5000', '--hz', '100']
  const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...persistence, ...clustering] // prettier-ignore
  let child: ChildProcess | undefined
  const kill = (): void => void child?.kill('SIGKILL')
  process.once('exit', kill)
  /** Starts it again on the same port, after `stop`. */
  const start = async (): Promise<void> => {
    if (child !== undefined) throw new Error('redis-server is running')
    child = spawn(path, own, { stdio: 'ignore' })
    child.on('error', () => {})
    await untilReady(port, child)
    if (cluster) await untilFormed(port)
  }
  /** Ends it. What it has on disk stays. */
  const stop = async (): Promise<void> => {
    const stopping = child
    child = undefined
    if (stopping === undefined || stopping.exitCode !== null || stopping.signalCode !== null) return
    const ended = new Promise((resolve) => stopping.once('exit', resolve))
    // A paused process gets no other signal
    stopping.kill('SIGKILL')
    await ended
  }
  /** Ends it, and removes its folder. */
  const close = async (): Promise<void> => {
    await stop()
    process.off('exit', kill)
    rmSync(folder, { recursive: true, force: true })
  }
  await start().catch(async (error: unknown) => {
    await close()
    throw error
  })
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    /** Stops the process: connections stay open, and get no reply. */
    pause: () => void child?.kill('SIGSTOP'),
    continue: () => void child?.kill('SIGCONT'),
    stop,
    start,
    restart: async () => {
      await stop()
      await start()
    },
    /** Sends one command over a separate connection. Resolves with the raw reply. */
    send: (...command: string[]) => sendTo(port, command),
    close,
  }
}

/** A redis-server while the surrounding suite runs. Use it inside of hooks and tests. */
export const redisServer = (options: RedisServerOptions = {}) =>
  duringSuite(
    () => startRedis(options),
    (server) => server.close(),
  )
