/**
 * User name and password: `Authorization: Basic <base64>` (RFC 7617).
 *
 * Do the same work for a user that does not exist as for a wrong password, so that neither answer nor time tells which it
 * was. Browsers send Basic credentials by themselves: writes from other sites are refused (403).
 */
import { randomUUID } from 'node:crypto'
import Router from '@koa/router'
import { constantTimeEqual, httpBasicAuth, withAuth } from 'koa-with-auth'

// Replace this with your own user database, and the comparison with a check of a password hash: see asynchronous.ts.
const passwords = new Map([['admin', 'secret']])

const basic = httpBasicAuth({
  realm: 'back office',
  authenticate: (_request, username, password) =>
    constantTimeEqual(password, passwords.get(username) ?? randomUUID()) && { username },
})

export const router = new Router()

router.get('/basic', withAuth(basic), (ctx) => {
  ctx.body = { httpuser: ctx.request.auth.username }
})
