/**
 * An API key in its three places: query string, header, cookie.
 *
 * The three have the same hook. Prefer the header: URLs end up in logs and histories. Browsers send a cookie by
 * themselves, so writes that other sites cause are refused (403).
 */
import Router from '@koa/router'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, constantTimeEqual, withAuth } from 'koa-with-auth'

// Replace this with your own client records.
const clients = new Map([['Acme', { name: 'Acme', key: 'supersecret' }]])

const authenticate = (_request: unknown, key: string) =>
  [...clients.values()].find((client) => constantTimeEqual(key, client.key))

export const router = new Router()

router.get('/apikey', withAuth(apiKeyQuery({ paramName: 'api_key', authenticate })), (ctx) => {
  ctx.body = `Hello ${ctx.request.auth.name}`
})

router.get('/headerkey', withAuth(apiKeyHeader({ paramName: 'X-API-Key', authenticate })), (ctx) => {
  ctx.body = `Token = ${ctx.request.auth.key}`
})

router.get('/cookiekey', withAuth(apiKeyCookie({ paramName: 'X-API-KEY', authenticate })), (ctx) => {
  ctx.body = `Token = ${ctx.request.auth.key}`
})
