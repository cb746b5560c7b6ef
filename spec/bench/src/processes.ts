/**
 * Requests per second of one, two, four and eight processes. `npm run bench:scale -- processes`: for bare Koa and for a guarded operation
 * whose sessions are in a Redis Cluster; and the memory of a session in Redis. `npm run bench:scale -- postgres`: for bare Koa, for
 * koa-session with the statements of connect-pg-simple by hand, and for a guarded operation, both on one PostgreSQL.
 */
import cluster from 'node:cluster'
import { createServer, type RequestListener } from 'node:http'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import autocannon from 'autocannon'
import Koa from 'koa'
import pg from 'pg'
import { createCluster } from 'redis'
import { withAuth } from '../../../dist/index.js'
import { sessions } from '../../../dist/sessions.js'
import { postgresStore, redisStore, type Store } from '../../../dist/stores.js'
import { startPostgres } from './postgres.js'
import { redisNodes, type RedisNodes } from './redisNodes.js'
import { byHand, inPostgres } from './sessionApps.js'
import { cookiesIn } from './stub.js'

const PEOPLE = 1000
const PORT = 34_567
const key = 'a signing key of at least 32 characters'
const body = { username: 'user-1' }

const bare = (): Koa => new Koa().use((ctx) => void (ctx.body = body))

const inCluster = async (ports: ReadonlyArray<string>): Promise<Store> => {
  const client = createCluster({ rootNodes: ports.map((port) => ({ url: `redis://127.0.0.1:${port}` })) })
  client.on('error', () => {})
  await client.connect()
  return redisStore({ command: (args, of) => client.sendCommand(of, false, args) })
}

const guarded = (store: Store): Koa => {
  const app = new Koa({ keys: [key] })
  const { logIn, sessionAuth } = sessions(app, { name: 'bench', loadUser: (username) => ({ username }), store })
  const router = new Router()
  router.get('/in', withAuth(null), async (ctx) => {
    await logIn(ctx, { username: String(ctx.query['user']) })
    ctx.status = 204
  })
  router.get('/me', withAuth(sessionAuth()), (ctx) => void (ctx.body = body))
  app.use(router.routes())
  return app
}

const listenerOf = async (name: string): Promise<RequestListener> => {
  const { PORTS = '', DATABASE_URL } = process.env
  if (name === 'bare') return bare().callback()
  if (DATABASE_URL === undefined) return guarded(await inCluster(PORTS.split(' '))).callback()
  const pool = new pg.Pool({ connectionString: DATABASE_URL, max: 8 }).on('error', () => {})
  if (name === 'by hand') return byHand(await inPostgres(pool))
  return guarded(postgresStore({ query: (sql, values) => pool.query(sql, values) })).callback()
}

const cookiesOf = async (user: number): Promise<string> => {
  const { headers } = await fetch(`http://127.0.0.1:${PORT}/in?user=user-${user}`)
  return cookiesIn(headers.getSetCookie())
}

const signedIn = async (): Promise<string[]> => {
  const cookies: string[] = []
  for (let user = 0; user < PEOPLE; user++) cookies.push(await cookiesOf(user))
  return cookies
}

const perSecond = async (cookies: ReadonlyArray<string>): Promise<string> => {
  const requests = cookies.map((cookie) => ({ path: '/me', headers: { cookie } }))
  const of = (duration: number) =>
    autocannon({ url: `http://127.0.0.1:${PORT}`, connections: 64, duration, requests, workers: 1 })
  await of(1)
  const { requests: answered, latency, non2xx, errors } = await of(3)
  if (non2xx + errors > 0) throw new Error(`${non2xx} refused, ${errors} failed`)
  return `${answered.average.toFixed(0).padStart(7)} req/s, 99 % within ${latency.p99} ms`
}

type Where = Readonly<Record<string, string>>

// Forks this many processes that share the port, and ends them
const under = async <A>(name: string, count: number, where: Where, use: () => Promise<A>): Promise<A> => {
  const workers = Array.from({ length: count }, () => cluster.fork({ APP: name, ...where }))
  await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('listening', resolve))))
  const result = await use()
  await Promise.all(
    workers.map((worker) => {
      const ended = new Promise((resolve) => worker.once('exit', resolve))
      worker.kill('SIGKILL')
      return ended
    }),
  )
  return result
}

// In turn, and each with sessions of its own
const table = async (names: ReadonlyArray<string>, counts: ReadonlyArray<number>, where: Where): Promise<void> => {
  cluster.setupPrimary({ exec: fileURLToPath(import.meta.url) })
  const cookies = new Map<string, ReadonlyArray<string>>()
  for (const name of names) cookies.set(name, name === 'bare' ? [''] : await under(name, 1, where, signedIn))
  for (const count of counts) {
    for (const name of names) {
      const figure = await under(name, count, where, () => perSecond(cookies.get(name) ?? []))
      console.log(`  ${String(count).padStart(2)} ${name.padEnd(8)} ${figure}`)
    }
  }
}

const memory = async ({ ask, ports }: RedisNodes): Promise<void> => {
  const keys: string[] = []
  for (const port of ports.slice(0, 3)) keys.push(...(await ask('-p', String(port), '--scan')).split('\n').slice(0, 20))
  const sizes = await Promise.all(keys.map(async (one) => Number(await ask('MEMORY', 'USAGE', one))))
  console.log(`\n  a session: ${Math.max(...sizes)} bytes (MEMORY USAGE)`)
}

/** Prints the table of the cluster. */
export const processes = async (counts: ReadonlyArray<number>): Promise<void> => {
  const nodes = await redisNodes()
  try {
    await table(['bare', 'guarded'], counts, { PORTS: nodes.ports.join(' ') })
    await memory(nodes)
  } finally {
    nodes.close()
  }
}

/** Prints the table of PostgreSQL. */
export const postgresProcesses = async (counts: ReadonlyArray<number>): Promise<void> => {
  const server = await startPostgres({ max_connections: '200' })
  try {
    await table(['bare', 'by hand', 'guarded'], counts, { DATABASE_URL: server.url })
  } finally {
    await server.close()
  }
}

if (cluster.isWorker) createServer(await listenerOf(process.env['APP'] ?? '')).listen(PORT, '127.0.0.1')
