/** The Redis of the benches. */
import { spawn } from 'node:child_process'
import { createServer, type AddressInfo } from 'node:net'
import { createClient as createRedis } from 'redis'

/** A port of the loopback address that nothing listens on. */
export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

/** A server on a free port, and a client of it. */
export const startRedis = async () => {
  const port = await freePort()
  const child = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' })
  const failed = new Promise<never>((_, reject) => {
    child.once('error', (error) => reject(new Error(`the benchmark needs redis-server on the PATH: ${error.message}`)))
  })
  const client = createRedis({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } })
  client.on('error', () => {})
  await Promise.race([client.connect(), failed])
  return {
    client,
    command: (args: string[]) => client.sendCommand(args),
    close: () => {
      client.destroy()
      child.kill('SIGKILL')
    },
  }
}
