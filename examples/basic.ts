/**
 * User name and password: `Authorization: Basic <base64>` (RFC 7617).
 *
 * Wrong passwords are counted, and refused with 429 beyond the limit: see the guide on throttling.
 *
 * Do the same work for a user that does not exist as for a wrong password, so that neither the response nor its time
 * shows which it was. Browsers send Basic credentials by themselves, so writes from other sites are refused (403).
 */
import { randomUUID } from 'node:crypto'
import Router from '@koa/router'
import { constantTimeEqual, httpBasicAuth, throttled, withAuth } from 'koa-with-auth'
import { RateLimiterMemory } from 'rate-limiter-flexible'

// Replace this with your own user database, and the comparison with a check of a password hash: see asynchronous.ts.
const passwords = new Map([['admin', 'secret']])

const basic = httpBasicAuth({
  realm: 'back office',
  authenticate: (_request, username, password) =>
    constantTimeEqual(password, passwords.get(username) ?? randomUUID()) && { username },
})

// For one account and one address in 15 minutes. Several processes need limiters that count in a shared store.
const guesses = new RateLimiterMemory({ points: 20, duration: 15 * 60 })

export const router = new Router()

router.get('/basic', withAuth(throttled({ limiter: guesses })(basic)), (ctx) => {
  ctx.body = { httpuser: ctx.request.auth.username }
})
