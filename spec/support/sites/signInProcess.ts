/**
 * A site with passkeys, codes by mail and one-time ids, as a separate program that `sessionSite.ts` starts. Its environment sets it
 * up: KEYS, and SQLITE_URL or REDIS_PORT.
 */
import Router from '@koa/router'
import { withAuth } from 'koa-with-auth'
import { oneTimeIds, redisStore, sqliteStore } from 'koa-with-auth/stores'
import { begin, finish, emailSignIn } from 'koa-with-auth/sign-in'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { passkeySite } from './passkeySite.js'
import { serveProgram } from './program.js'

const { KEYS = '', SQLITE_URL = '', REDIS_PORT = '' } = process.env

const storesOf = async () => {
  if (REDIS_PORT === '') {
    return { sessionStore: sqliteStore({ url: SQLITE_URL }), store: sqliteStore({ url: SQLITE_URL }) }
  }
  const client = createClient({ socket: { host: '127.0.0.1', port: Number(REDIS_PORT) } })
  client.on('error', () => {})
  await client.connect()
  const command = (args: ReadonlyArray<string>) => client.sendCommand([...args])
  return { sessionStore: redisStore({ command }), store: redisStore({ command }) }
}

const stores = await storesOf()
const { app, calls } = passkeySite({ ...stores, keys: KEYS.split(' ') })
app.silent = true

const { use } = oneTimeIds(stores.sessionStore, 'site')
const mails = new Map<string, string>()
const mail = emailSignIn({
  path: '/sign-in/mail/link',
  limiter: new RateLimiterMemory({ points: 1000, duration: 900 }),
  send: ({ address, code }) => mails.set(address, code),
})
const router = new Router()
router.get('/calls', withAuth(null), (ctx) => (ctx.body = calls))
router.get('/mails/:address', withAuth(null), (ctx) => (ctx.body = { code: mails.get(String(ctx.params['address'])) }))
router.post('/use/:id', withAuth(null), async (ctx) => {
  ctx.body = { is: await use(String(ctx.params['id']), 60_000) }
})
router.post('/sign-in/mail', withAuth(null), begin(mail))
router.post(
  '/sign-in/mail/code',
  withAuth(null),
  finish(mail, (_ctx, { proof }) => {
    calls.signedIn += 1
    return { username: proof.subject.split('@')[0] ?? '', isActive: true }
  }),
)
serveProgram(app.use(router.routes()))
