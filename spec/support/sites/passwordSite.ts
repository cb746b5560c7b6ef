/** A site that verifies passwords, as a separate program: `GET /basic`. `/site` reports about the site itself. */
import Koa from 'koa'
import Router from '@koa/router'
import { httpBasicAuth, withAuth } from 'koa-with-auth'
import { hash, verify } from 'koa-with-auth/passwords'
import { serveProgram } from './program.js'
import { watchLoop } from './sessionSiteLoop.js'

const users = new Map([['anna', { name: 'anna', password: await hash('anna-secret') }]])
const calls: Record<string, number> = { handled: 0 }
const loop = watchLoop()

const basic = httpBasicAuth({
  authenticate: async (_request, username, password) => {
    const user = users.get(username)
    return (await verify(user?.password, password)) && user
  },
})
const router = new Router()
router.get('/basic', withAuth(basic), (ctx) => {
  calls['handled'] = (calls['handled'] ?? 0) + 1
  ctx.body = ctx.request.auth.name
})
const state = (ctx: { body: unknown }) => {
  const { rss, heapUsed } = process.memoryUsage()
  ctx.body = { calls, failures: {}, heldFor: loop.heldFor(), resident: rss, heap: heapUsed }
}
router.get('/site', state)
router.post('/site', (ctx) => {
  loop.reset()
  state(ctx)
})
serveProgram(new Koa().use(router.routes()))
