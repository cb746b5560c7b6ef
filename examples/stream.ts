/**
 * A response that goes on: it ends with the credential, when the client has enough, and when the server ends.
 *
 * `untilEnd` watches what let the request in: here a principal that expires after an hour. At SIGTERM, `shutDown` of server.ts ends
 * such responses at once, and waits for the others.
 */
import { Readable } from 'node:stream'
import { setTimeout } from 'node:timers/promises'
import Router from '@koa/router'
import { constantTimeEqual, httpBearer, untilEnd, withAuth } from 'koa-with-auth'

const SECOND = 1000
const HOUR = 3_600_000

// Replace this with your own store.
const bearer = httpBearer({
  authenticate: (_request, token) =>
    constantTimeEqual(token, 'supersecret') && { name: 'anna', expiresAt: new Date(Date.now() + HOUR) },
})

async function* lines(name: string, most: number): AsyncGenerator<string> {
  yield `Hello ${name}`
  for (let line = 2; line <= most; line++) {
    await setTimeout(SECOND, undefined, { ref: false })
    yield `\nline ${line}`
  }
}

export const router = new Router()

router.get('/stream', withAuth(bearer), (ctx) => {
  const most = Number(new URLSearchParams(ctx.querystring).get('lines') ?? Infinity)
  ctx.type = 'text/plain'
  ctx.body = untilEnd(ctx, Readable.from(lines(ctx.request.auth.name, most)))
})
