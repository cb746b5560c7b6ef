/**
 * A list: authenticators are tried in order, and the first that passes wins.
 *
 * If all fail, the 401 has a challenge for each of them. An outage or an exception in one ends the list: a weaker key
 * must not replace a stronger one that cannot be checked.
 */
import Router from '@koa/router'
import { apiKeyHeader, apiKeyQuery, constantTimeEqual, withAuth } from 'koa-with-auth'

// Replace this with your own keys.
const keys = new Map([['Acme', 'supersecret']])

const authenticate = (_request: unknown, key: string) =>
  [...keys.values()].some((known) => constantTimeEqual(key, known)) && key

const queryKey = apiKeyQuery({ authenticate })
const headerKey = apiKeyHeader({ paramName: 'X-API-Key', authenticate })

export const router = new Router()

router.get('/multiple', withAuth([queryKey, headerKey]), (ctx) => {
  ctx.body = `Token = ${ctx.request.auth}`
})
