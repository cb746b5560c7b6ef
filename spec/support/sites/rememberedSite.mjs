/**
 * A site that remembers verifications, as a separate process. `POST /enrol` makes users. `GET /snapshot` collects
 * garbage and writes a heap snapshot to the file that X-File names.
 */
import { createHash } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { writeHeapSnapshot } from 'node:v8'
import Router from '@koa/router'
import Koa from 'koa'
import { httpBasicAuth, httpBearer, remembered, throttled, withAuth } from 'koa-with-auth'
import { hash, verify } from 'koa-with-auth/passwords'
import { RateLimiterMemory } from 'rate-limiter-flexible'

let stored
let digest
const ran = { basic: 0, bearer: 0 }
const digestOf = (text) => createHash('sha256').update(text).digest('hex')

// The contents of the principal are kept with it, and the snapshot must show them
const basic = httpBasicAuth({
  authenticate: async (request, username, password) => {
    ran.basic++
    return (await verify(stored, password)) && { username, marker: request.get('X-Marker') }
  },
})
const bearer = httpBearer({
  authenticate: (request, token) => {
    ran.bearer++
    return digestOf(token) === digest && { marker: request.get('X-Marker') }
  },
})
const limiter = new RateLimiterMemory({ points: 100, duration: 900 })
const recent = remembered({ maxAge: 3_600_000 })

const router = new Router()
router.post('/enrol', withAuth(null), async (ctx) => {
  stored = await hash(ctx.get('X-Password'))
  digest = digestOf(ctx.get('X-Token'))
  ctx.status = 204
})
const answer = (ctx) => {
  ctx.body = ran
}
router.get('/basic', withAuth(recent(throttled({ limiter })(basic))), answer)
router.get('/bearer', withAuth(recent(bearer)), answer)
router.get('/snapshot', withAuth(null), async (ctx) => {
  // Until the connections of the other requests are closed
  for (let at = 0; at < 5; at++) {
    await setTimeout(20)
    globalThis.gc()
  }
  writeHeapSnapshot(ctx.get('X-File'))
  ctx.body = ran
})
const server = new Koa().use(router.routes()).listen(0, '127.0.0.1', () => console.log(server.address().port))
