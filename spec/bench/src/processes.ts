/**
 * `npm run bench:scale -- processes`: requests per second of one, two, four and eight processes, for bare Koa and for a
 * guarded operation whose sessions are in a Redis Cluster; and the memory of a session in Redis.
 */
import cluster from 'node:cluster'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import autocannon from 'autocannon'
import Koa from 'koa'
import { createCluster } from 'redis'
import { sessionAuth, withAuth } from '../../../dist/index.js'
import { sessions } from '../../../dist/sessions.js'
import { redisStore } from '../../../dist/stores.js'
import { redisNodes, type RedisNodes } from './redisNodes.js'

const PEOPLE = 1000
const PORT = 34_567
const key = 'a signing key of at least 32 characters'
const body = { username: 'user-1' }

const bare = (): Koa => {
  const app = new Koa()
  app.use((ctx) => void (ctx.body = body))
  return app
}

const guarded = async (ports: ReadonlyArray<string>): Promise<Koa> => {
  const client = createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })
  client.on('error', () => {})
  await client.connect()
  const app = new Koa({ keys: [key] })
  const { logIn } = sessions(app, {
    name: 'bench',
    loadUser: (username) => ({ username }),
    store: redisStore({ command: (args, of) => client.sendCommand(of, false, args) }),
  })
  const router = new Router()
  router.post('/login/:user', withAuth(null), async (ctx) => {
    await logIn(ctx, { username: String(ctx.params['user']) })
    ctx.status = 204
  })
  router.get('/x', withAuth(sessionAuth()), (ctx) => void (ctx.body = body))
  app.use(router.routes())
  return app
}

const cookiesOf = async (user: number): Promise<string> => {
  const { headers } = await fetch(`http://127.0.0.1:${PORT}/login/user-${user}`, { method: 'POST' })
  return headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
}

const signedIn = async (): Promise<string[]> => {
  const cookies: string[] = []
  for (let user = 0; user < PEOPLE; user++) cookies.push(await cookiesOf(user))
  return cookies
}

const perSecond = async (cookies: ReadonlyArray<string>): Promise<string> => {
  const requests = cookies.map((cookie) => ({ path: '/x', headers: { cookie } }))
  const of = (duration: number) =>
    autocannon({ url: `http://127.0.0.1:${PORT}`, connections: 64, duration, requests, workers: 1 })
  await of(1)
  const { requests: answered, latency, non2xx, errors } = await of(3)
  if (non2xx + errors > 0) throw new Error(`${non2xx} refused, ${errors} failed`)
  return `${answered.average.toFixed(0).padStart(7)} req/s, 99 % within ${latency.p99} ms`
}

// Forks this many processes that share the port, and ends them
const under = async (name: string, count: number, nodes: RedisNodes, use: () => Promise<void>): Promise<void> => {
  const workers = Array.from({ length: count }, () => cluster.fork({ APP: name, PORTS: nodes.ports.join(' ') }))
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('listening', resolve))))
  await use()
  await Promise.all(
    workers.map((worker) => {
      const ended = new Promise((resolve) => worker.once('exit', resolve))
      worker.kill('SIGKILL')
      return ended
    }),
  )
}

const memory = async ({ ask, ports }: RedisNodes): Promise<void> => {
  const keys: string[] = []
  for (const port of ports.slice(0, 3)) keys.push(...(await ask('-p', String(port), '--scan')).split('\n').slice(0, 20))
  const sizes = await Promise.all(keys.map(async (one) => Number(await ask('MEMORY', 'USAGE', one))))
  console.log(`\n  a session: ${Math.max(...sizes)} bytes (MEMORY USAGE)`)
}

/** Prints the table. */
export const processes = async (counts: ReadonlyArray<number>): Promise<void> => {
  cluster.setupPrimary({ exec: fileURLToPath(import.meta.url) })
  const nodes = await redisNodes()
  try {
    let cookies: string[] = []
    await under('guarded', 1, nodes, async () => {
      cookies = await signedIn()
    })
    for (const count of counts) {
      for (const name of ['bare', 'guarded']) {
        await under(name, count, nodes, async () => {
          console.log(`  ${String(count).padStart(2)} ${name.padEnd(8)} ${await perSecond(cookies)}`)
        })
      }
    }
    await memory(nodes)
  } finally {
    nodes.close()
  }
}

if (cluster.isWorker) {
  const { APP, PORTS = '' } = process.env
  const app = APP === 'guarded' ? await guarded(PORTS.split(' ')) : bare()
  app.listen(PORT, '127.0.0.1')
}
