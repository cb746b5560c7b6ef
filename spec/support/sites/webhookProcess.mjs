/** A site that receives deliveries, as a process. A body `wait` waits until the next line of its input; `fail` fails. */
import { createInterface } from 'node:readline'
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { oneTimeIds, redisStore } from 'koa-with-auth/stores'
import { github, webhook } from 'koa-with-auth/webhooks'
import { createClient } from 'redis'

const client = createClient({ url: process.env.REDIS_URL })
client.on('error', () => {})
await client.connect()
const spent = oneTimeIds(redisStore({ command: (args) => client.sendCommand(args) }))
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

const router = new Router()
router.post('/hook', withAuth(webhook({ scheme: github, secrets: process.env.SECRET, spent })), async (ctx) => {
  const text = ctx.request.auth.text()
  console.log(`handles ${text}`)
  if (text.startsWith('wait')) await lines.next()
  ctx.status = text.startsWith('fail') ? 500 : 204
})
const app = new Koa().use(router.routes())
const server = app.listen(0, '127.0.0.1', () => console.log(`port ${server.address().port}`))
