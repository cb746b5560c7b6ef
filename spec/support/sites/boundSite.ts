/**
 * A site whose sign-ins are bound to a key (DPoP), and which calls a provider's API, as a separate program. What it reports, logs and
 * stores stays in its memory. `POST /stolen` writes that memory into a file, and answers with its rows and records.
 */
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { sessions } from 'koa-with-auth/sessions'
import { begin, finish } from 'koa-with-auth/sign-in'
import { oidc, upstream } from 'koa-with-auth/sign-in/oidc'
import { memoryStore, oneTimeIds, type Store } from 'koa-with-auth/stores'
import { serveProgram, snapshot } from './program.js'

const [issuer = ''] = process.argv.slice(2)

const rows: unknown[] = []
const inner = memoryStore()
const noted =
  <A extends unknown[], R>(ask: (...args: A) => R) =>
  (...args: A): R => {
    rows.push(args)
    return ask(...args)
  }
const store: Store = {
  ...inner,
  insert: noted(inner.insert),
  update: noted(inner.update),
  end: noted(inner.end),
  add: noted(inner.add),
}

const records: unknown[] = []
for (const channel of ['decision', 'signed-in', 'signed-out', 'upstream', 'store-outage'] as const) {
  on(channel, (record) => records.push(record))
}
Object.assign(globalThis, { rows, records })

const app = new Koa({ keys: ['a key of this site, which is long enough'] })
const { sessionAuth, logIn } = sessions(app, {
  loadUser: (username) => ({ username }),
  store,
  name: 'shop',
  list: true,
  bearer: { dpop: { origin: 'https://api.example', spent: oneTimeIds(store) } },
})
const provider = oidc({ issuer, client: { id: 'shop', secret: 'a secret of the client' }, callback: '/callback' })
const api = upstream(app, { provider, resource: 'https://api.example' })

const router = new Router()
router.post('/sign-in', withAuth(null), async (ctx) => {
  ctx.body = await logIn(ctx, { username: 'anna' }, { as: 'bearer' })
})
router.get('/me', withAuth(sessionAuth()), (ctx) => {
  records.push(ctx.request.auth)
  ctx.body = ctx.request.auth
})
router.get('/fails', withAuth(sessionAuth()), () => {
  throw new Error('the handler failed')
})
router.get('/begin', withAuth(null), begin(provider))
const signedIn = finish(provider, (_ctx, { proof }) => ({ username: String(proof.subject) }))
router.get('/callback', withAuth(null), signedIn)
router.get('/token', withAuth(sessionAuth()), async (ctx) => {
  ctx.body = { user: ctx.request.auth.username, token: await api.token(ctx) }
})
router.post('/stolen', async (ctx) => {
  ctx.body = { heap: await snapshot(String(rows.length)), rows, records }
})
app.on('error', (error: unknown) => {
  records.push(error instanceof Error ? error.stack : error)
})
serveProgram(app.use(router.routes()))
