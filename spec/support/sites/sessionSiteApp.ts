/**
 * A small site with sessions, as a separate program that `sessionSite.ts` starts. Its environment sets it up: STORE,
 * where the store is, KEYS, TIMEOUT. A user signs in by giving any name. Requests below `/site` have nothing to do with
 * sessions.
 */
import Router from '@koa/router'
import Koa from 'koa'
import { sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { serveProgram } from './program.js'
import { watchLoop } from './sessionSiteLoop.js'
import { storeNamed } from './sessionSiteStores.js'

const { KEYS = '', STORE = '', TIMEOUT = '500', PORT = '0' } = process.env

const calls = { me: 0, notes: 0, open: 0, strangers: 0 }
let failures: Record<string, number> = {}
const failed = (where: string, error: unknown): void => {
  const reported = `${where}: ${error instanceof Error ? error.message : String(error)}`
  failures[reported] = (failures[reported] ?? 0) + 1
}

const loop = watchLoop()

const app = new Koa({ keys: KEYS.split(' ') })
app.silent = true
app.on('error', (error) => failed('site', error))
app.use((ctx, next) => {
  if (ctx.path !== '/site') return next()
  if (ctx.method === 'POST') {
    loop.reset()
    failures = {}
  }
  ctx.body = {
    calls,
    failures,
    heldFor: loop.heldFor(),
    resident: process.memoryUsage.rss(),
  }
  return undefined
})

const { logIn, logOut, logOutEverywhere } = sessions(app, {
  store: await storeNamed(STORE, process.env, failed),
  loadUser: (username) => ({ username, isActive: true }),
  timeout: Number(TIMEOUT),
})

const anybody = withAuth(null)(new Router())
anybody.get('/', (ctx) => {
  ctx.type = 'html'
  ctx.body = '<!doctype html><title>A site</title><link rel="icon" href="data:,">'
})
anybody.get('/open', (ctx) => {
  calls.open++
  ctx.body = { username: 'anonymous', notes: 0 }
})
anybody.post('/login/:user', async (ctx) => {
  await logIn(ctx, { username: String(ctx.params['user']), isActive: true })
  ctx.status = 204
})
anybody.post('/logout', async (ctx) => {
  await logOut(ctx)
  ctx.status = 204
})

// Safe: only `own` writes it
const sessionOf = (ctx: object): { notes?: number } => (ctx as { readonly session: { notes?: number } }).session

const own = withAuth(sessionAuth())(new Router())
const count = (name: 'me' | 'notes', username: string): void => {
  calls[name]++
  if (!username.startsWith('user-')) calls.strangers++
}
own.get('/me', (ctx) => {
  const { username } = ctx.request.auth
  count('me', username)
  ctx.body = { username, notes: sessionOf(ctx).notes ?? 0 }
})
own.post('/notes', async (ctx) => {
  count('notes', ctx.request.auth.username)
  const session = sessionOf(ctx)
  const wait = new URLSearchParams(ctx.querystring).get('wait')
  if (wait !== null) await new Promise((resolve) => setTimeout(resolve, Number(wait)))
  session.notes = (session.notes ?? 0) + 1
  ctx.status = 201
  ctx.body = { notes: session.notes }
})
own.post('/everywhere', async (ctx) => {
  await logOutEverywhere(ctx.request.auth.username)
  ctx.status = 204
})

app.use(withAuth(null)(anybody).routes()).use(own.routes())
// On a busy machine the server must not close a connection that a client is about to use
serveProgram(app, Number(PORT)).keepAliveTimeout = 60_000
