/**
 * A site with API keys and passwords, as a separate program. What it reports, logs and stores stays in its memory.
 * `POST /snapshot` writes that memory into a file.
 */
import Router from '@koa/router'
import Koa from 'koa'
import { anyOf, apiKeyHeader, httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { hash, verify } from 'koa-with-auth/passwords'
import { serveProgram, snapshot } from './program.js'

const store = memoryStore()
let isDown = false
const failing: typeof store = {
  ...store,
  get: (names) => (isDown ? Promise.reject(new Error('down')) : store.get(names)),
}
const keys = apiKeys({ prefix: 'acme', store: failing })
const users = new Map<string, { readonly name: string; readonly password: string }>()

// Everything of this layer that a site could keep
const kept: unknown[] = []
Object.assign(globalThis, { kept })
for (const channel of ['api-key', 'decision', 'store-outage'] as const) on(channel, (record) => kept.push(record))
for (const name of ['log', 'warn', 'error'] as const) {
  const write = console[name].bind(console)
  console[name] = (...texts: unknown[]) => {
    kept.push(texts)
    write(...texts)
  }
}

const basic = httpBasicAuth({
  authenticate: async (_request, username, password) => {
    const user = users.get(username)
    return (await verify(user?.password, password)) && user
  },
})
const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate })
const bearer = httpBearer({ authenticate: keys.authenticate })

const bodyOf = async (stream: AsyncIterable<Uint8Array>): Promise<string> => {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const router = new Router()
router.post('/keys', async (ctx) => {
  ctx.body = await keys.issue({ owner: 'anna', scopes: ['read'] })
})
router.post('/rotate/:id', async (ctx) => {
  ctx.body = await keys.rotate(ctx.params['id'] ?? '', { overlap: 60_000 })
})
router.post('/users/:name', async (ctx) => {
  const name = ctx.params['name'] ?? ''
  users.set(name, { name, password: await hash(await bodyOf(ctx.req)) })
  ctx.status = 204
})
router.get('/who', withAuth(anyOf([header, bearer, basic])), (ctx) => {
  kept.push(ctx.request.auth)
  ctx.body = ctx.request.auth
})
router.get('/fails', withAuth([header, basic]), (ctx) => {
  kept.push(ctx.request.auth)
  throw new Error('the handler failed')
})
router.post('/down', (ctx) => {
  isDown = !isDown
  ctx.body = String(isDown)
})
router.get('/mark', (ctx) => {
  kept.push(ctx.get('X-API-Key'))
  ctx.status = 204
})
router.post('/snapshot', async (ctx) => {
  ctx.body = await snapshot(String(kept.length))
})

const app = new Koa()
app.on('error', (error: unknown) => {
  kept.push(error)
  if (error instanceof Error) kept.push(error.stack)
})
serveProgram(app.use(router.routes()))
