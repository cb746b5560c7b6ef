/** A Redis Cluster for the time of a measurement: three masters with a replica each, on the loopback address. */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })

// The second port of a node is 10000 higher
const freePorts = async (): Promise<number[]> => {
  for (let first = 21_000; first < 50_000; first += 10) {
    const ports = Array.from({ length: 6 }, (_, at) => first + at)
    const all = await Promise.all(ports.flatMap((port) => [isFree(port), isFree(port + 10_000)]))
    if (all.every(Boolean)) return ports
  }
  throw new Error('no free ports')
}

/** The nodes of the cluster. */
export interface RedisNodes {
  readonly ports: ReadonlyArray<number>
  /** Sends a command to one of them by redis-cli, which follows redirections. */
  readonly ask: (...args: string[]) => Promise<string>
  readonly close: () => void
}

/** Starts the cluster. Resolves when all slots are served. */
export const redisNodes = async (): Promise<RedisNodes> => {
  const ports = await freePorts()
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-nodes-'))
  const nodes = ports.map((port) => {
    const dir = join(folder, String(port))
    mkdirSync(dir)
    const own = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--cluster-enabled', 'yes']
    return spawn('redis-server', own, { stdio: 'ignore' })
  })
  const close = (): void => {
    for (const node of nodes) node.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  const ask = async (...args: string[]): Promise<string> =>
    (await run('redis-cli', ['-c', '-p', String(ports[0]), ...args])).stdout.trim()
  try {
    await pause(500)
    const addresses = ports.map((port) => `127.0.0.1:${port}`)
    await run('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-replicas', '1', '--cluster-yes'])
    while (!(await ask('CLUSTER', 'INFO')).includes('cluster_state:ok')) await pause(100)
    return { ports, ask, close }
  } catch (error) {
    close()
    throw error
  }
}
