/**
 * A site whose users sign in with one provider, as a separate program. Its environment sets it up: KEYS, ORIGIN, ISSUER,
 * SECRET, REDIS_PORT.
 */
import Router from '@koa/router'
import Koa from 'koa'
import { authSettings, defaultErrorMapper, sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { begin, finish } from 'koa-with-auth/sign-in'
import { oidc, upstream } from 'koa-with-auth/sign-in/oidc'
import { serveProgram } from './program.js'
import { storeNamed } from './sessionSiteStores.js'

const { KEYS = '', ORIGIN = '', ISSUER = '', SECRET = '' } = process.env

const app = new Koa({ keys: [KEYS] })
app.silent = true
// failures are JSON for browsers, too
app.use(authSettings({ errorMapper: defaultErrorMapper }))
sessions(app, {
  loadUser: (username) => ({ username, isActive: true }),
  store: await storeNamed('redis', process.env, () => {}),
  origin: ORIGIN,
  name: 'processes',
})
const provider = oidc({ issuer: ISSUER, client: { id: 'shop', secret: SECRET }, callback: '/callback' })
const router = new Router()
router.get('/sign-in', withAuth(null), begin(provider))
router.get(
  '/callback',
  withAuth(null),
  finish(provider, (_ctx, { proof }) => ({ username: String(proof.subject), isActive: true })),
)
router.get('/me', withAuth(sessionAuth()), (ctx) => {
  ctx.body = ctx.request.auth.username
})
const api = upstream(app, { provider, resource: ISSUER })
router.get('/token', withAuth(sessionAuth()), async (ctx) => {
  ctx.body = await api.token(ctx)
})
serveProgram(app.use(router.routes()))
