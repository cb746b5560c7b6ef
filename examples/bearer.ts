/**
 * A bearer token: `Authorization: Bearer <token>` (RFC 6750).
 *
 * The hook gets the token, whose syntax is already checked. A truthy result is `ctx.request.auth`, with its type. A
 * falsy result is a 401, and the handler does not run.
 */
import Router from '@koa/router'
import { constantTimeEqual, httpBearer, withAuth } from 'koa-with-auth'

// Replace this with your own store. Keep digests of tokens there, not the tokens.
const tokens = new Map([['anna', 'supersecret']])

const bearer = httpBearer({
  authenticate: (_request, token) => [...tokens.values()].some((known) => constantTimeEqual(token, known)) && { token },
})

export const router = new Router()

router.get('/bearer', withAuth(bearer), (ctx) => {
  ctx.body = { token: ctx.request.auth.token }
})
