/**
 * Levels: the innermost decision wins, and `null` is a decision.
 *
 * `withAuth(a)(router)` guards the operations of a router that decide nothing themselves, later ones included. It does
 * not change its argument, so one router can be mounted twice with different requirements.
 */
import Router from '@koa/router'
import type { DefaultState } from 'koa'
import { apiKeyHeader, constantTimeEqual, httpBearer, withAuth, type Auth } from 'koa-with-auth'

// Replace these with your own stores.
const staff = httpBearer({
  authenticate: (_request, token) => constantTimeEqual(token, 'supersecret') && { name: 'anna' },
})
const partner = apiKeyHeader({
  paramName: 'X-API-Key',
  authenticate: (_request, key) => constantTimeEqual(key, 'partnerkey') && { name: 'Acme' },
})

export const router = withAuth(staff)(new Router({ prefix: '/levels' }))

router.get('/staff', (ctx) => {
  ctx.body = `Hello ${ctx.request.auth.name}`
})

// An operation overrides its router: the bearer token is not accepted here
router.get('/partner', withAuth(partner), (ctx) => {
  ctx.body = `Hello ${ctx.request.auth.name}`
})

// Only a literal null makes an operation public
router.get('/health', withAuth(null), (ctx) => {
  ctx.body = 'ok'
})

// Decides nothing, and declares which principal its handlers expect; mounting checks that
const reports = new Router<DefaultState, Auth<{ name: string }>>()

reports.get('/reports', (ctx) => {
  ctx.body = `Reports for ${ctx.request.auth.name}`
})

router.use('/inside', reports.routes())
router.use('/outside', withAuth(partner)(reports).routes())
