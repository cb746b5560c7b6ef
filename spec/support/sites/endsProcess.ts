/**
 * A site with event streams of sessions and of API keys, as a separate program. Its environment sets it up: KEYS, REDIS_PORT, CLIENT
 * (`redis` or `ioredis`), CLUSTER if Redis is one, and DELAY, how slow the hub is in milliseconds.
 */
import { PassThrough } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import Router from '@koa/router'
import { Cluster, Redis } from 'ioredis'
import Koa, { type Context } from 'koa'
import { apiKeyHeader, sessionAuth, untilEnd, withAuth } from 'koa-with-auth'
import { apiKeys } from 'koa-with-auth/keys'
import { redisSignals, redisStore } from 'koa-with-auth/stores'
import { sessions, type Signals } from 'koa-with-auth/sessions'
import { createClient, createCluster } from 'redis'
import { serveProgram } from './program.js'

const { KEYS = '', REDIS_PORT = '', CLIENT = '', CLUSTER = '', DELAY = '0' } = process.env

const address = { host: '127.0.0.1', port: Number(REDIS_PORT) }
const retry = (times: number): number => Math.min(times * 20, 200)

const single = async () => {
  const make = () => createClient({ socket: { ...address, reconnectStrategy: retry } })
  const [publisher, subscriber] = [make(), make()]
  for (const client of [publisher, subscriber]) await client.on('error', () => {}).connect()
  return { publisher, subscriber, command: (args: ReadonlyArray<string>) => publisher.sendCommand([...args]) }
}
const clustered = async () => {
  const make = () => createCluster({ rootNodes: [{ socket: address }] })
  const [publisher, subscriber] = [make(), make()]
  for (const client of [publisher, subscriber]) await client.on('error', () => {}).connect()
  const command = (args: ReadonlyArray<string>, key?: string) => publisher.sendCommand(key, false, [...args])
  return { publisher, subscriber, command }
}
const io = async () => {
  const make = () =>
    CLUSTER === '' ? new Redis({ ...address, retryStrategy: retry }) : new Cluster([address], { lazyConnect: false })
  const [publisher, subscriber] = [make(), make()]
  for (const client of [publisher, subscriber]) client.on('error', () => {})
  await new Promise((resolve) => publisher.once('ready', resolve))
  const command = ([name = '', ...rest]: ReadonlyArray<string>) => publisher.call(name, ...rest)
  return { publisher, subscriber, command }
}
const { publisher, subscriber, command } =
  CLIENT !== 'redis' ? await io() : await (CLUSTER === '' ? single() : clustered())
const hub = redisSignals({ publisher, subscriber })
const signals: Signals = { ...hub, publish: (message) => pause(Number(DELAY)).then(() => hub.publish(message)) }

const app = new Koa({ keys: KEYS.split(' ') })
const { logIn, logOut, logOutEverywhere } = sessions(app, {
  loadUser: (username) => ({ username }),
  store: redisStore({ command }),
  signals,
})
const keys = apiKeys({ prefix: 'acme', store: redisStore({ command }), signals })

const events = (ctx: Context): void => {
  const source = new PassThrough()
  source.write('data: hello\n\n')
  ctx.type = 'text/event-stream'
  ctx.body = untilEnd(ctx, source)
}
const router = new Router()
router.get('/events', withAuth(sessionAuth()), events)
router.get('/key-events', withAuth(apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate })), events)
router.post('/login/:name', withAuth(null), async (ctx) => {
  await logIn(ctx, { username: String(ctx.params['name']) })
  ctx.status = 204
})
router.post('/logout', withAuth(null), async (ctx) => {
  await logOut(ctx)
  ctx.status = 204
})
router.post('/everywhere/:name', withAuth(null), async (ctx) => {
  await logOutEverywhere(String(ctx.params['name']))
  ctx.status = 204
})
router.post('/keys/:name', withAuth(null), async (ctx) => {
  ctx.body = await keys.issue({ owner: String(ctx.params['name']) })
})
router.delete('/keys/:id', withAuth(null), async (ctx) => {
  ctx.status = (await keys.revoke(String(ctx.params['id']))) ? 204 : 404
})
serveProgram(app.use(router.routes()))
