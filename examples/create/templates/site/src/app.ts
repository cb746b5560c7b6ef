/**
 * A site with accounts. DATABASE_URL is an SQLite file; with REDIS_URL sessions are in Redis. KEYS are secrets of 32 characters or
 * more, separated by commas. ORIGIN is the public origin. Whoever has the address ADMIN is the administrator.
 */
import { randomBytes } from 'node:crypto'
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { authSettings, authorize, defaultErrorMapper, optional, unchecked, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { hash } from 'koa-with-auth/passwords'
import { redisStore, sqliteStore } from 'koa-with-auth/stores'
import { sessions } from 'koa-with-auth/sessions'
import {
  begin,
  secondFactor,
  finish,
  countFailures,
  linkPage,
  passwordSignIn,
  recoveryCodes,
  passwordReset,
  totp,
} from 'koa-with-auth/sign-in'
import { passkeys } from 'koa-with-auth/sign-in/passkeys'
import { createClient } from 'redis'
import { openAccounts, type Account } from './accounts.js'
import { accountPage, enrolPage, errorPage, homePage, listPage, pageOf, script, style } from './pages.js'

const { ADMIN, KEYS, NODE_ENV = 'development', REDIS_URL, DATABASE_URL = 'file:app.db', PORT = '3000' } = process.env
const { HOST = '127.0.0.1', ORIGIN = `http://localhost:${PORT}` } = process.env
// PROXY=0: no proxy is in front, which says whose address a request has
const { PROXY = NODE_ENV === 'production' ? '1' : '0' } = process.env
// Only on this machine there are keys that a restart forgets
const isTrial = ['development', 'test'].includes(NODE_ENV) && ['127.0.0.1', '::1', 'localhost'].includes(HOST)
const DAY = 86_400_000
const devices = [/Firefox|Edg|Chrome|Safari/, /Android|iPhone|iPad|Windows|Mac OS|Linux/]
/** Replace this with your mailer. */
const print = async (to: string, text: string): Promise<void> => console.log(`Mail to ${to}: ${text}`)

export const site = async (databaseUrl = DATABASE_URL, send = print, origin = ORIGIN) => {
  if (KEYS === undefined && !isTrial) throw new TypeError('set KEYS to a secret of 32 characters')
  const accounts = await openAccounts(databaseUrl)
  const redis = REDIS_URL && (await createClient({ url: REDIS_URL }).on('error', console.error).connect())
  const store = redis ? redisStore({ command: (args) => redis.sendCommand(args) }) : sqliteStore({ url: databaseUrl })
  const app = new Koa({ keys: KEYS?.split(',') ?? [randomBytes(32).toString('hex')], proxy: PROXY === '1' })
  const { sessionAuth, logOut, logOutEverywhere, listSessions, endSession } = sessions(app, {
    loadUser: accounts.find,
    identify: ({ email }) => email,
    store,
    origin,
    pages: pageOf,
    list: { label: (request) => devices.map((one) => one.exec(request.get('User-Agent'))?.[0]).join(' ') },
  })
  app.use(async function notFound(ctx, next) {
    await next()
    if (ctx.status === 404 && !ctx.body) Object.assign(ctx, { body: errorPage(ctx, 'notFound'), status: 404 })
  })
  // 401 leads to the sign-in page and back; other failures are pages
  app.use(
    authSettings({
      errorMapper: (error, request) => {
        const response = defaultErrorMapper(error, request)
        if (request.accepts('json', 'html') !== 'html') return response
        const isToSignIn = error._tag === 'absent' || (error._tag === 'insufficient' && error.proof !== undefined)
        const Location = `/sign-in?returnTo=${encodeURIComponent(request.method === 'GET' ? request.originalUrl : '/account')}`
        if (isToSignIn) return { status: 303, headers: { Location } }
        return { status: response.status, headers: response.headers, body: errorPage(request.ctx, error._tag) }
      },
    }),
  )
  const secretOf = async (email: string) => (await accounts.find(email))?.totp ?? undefined
  const authenticatorApp = totp({ issuer: new URL(origin).host, keys: () => app.keys, secretOf, store })
  const recovery = recoveryCodes({ keys: () => app.keys, use: accounts.useRecovery })
  const signIn = passwordSignIn<Account>({
    accountOf: async (typed) => {
      const user = await accounts.find(typed.trim().toLowerCase())
      return user && { user, hash: user.hash }
    },
    fields: { username: 'email' },
    factors: secondFactor({ factors: [authenticatorApp, recovery] }),
    save: accounts.renew,
    idle: ({ remember }) => remember && 30 * DAY,
    absolute: ({ remember }) => remember && 60 * DAY,
  })
  // Signing up and a forgotten password are one mail, so a stranger cannot learn who has an account
  const password = passwordReset({
    path: '/password',
    isGood: (typed) => typed.length >= 10,
    accountOf: async (email) => ({ id: email, stamp: (await accounts.find(email))?.hash ?? '' }),
    send: ({ address, link }) => send(address, `Set your password: ${link}`),
  })
  const passkey = passkeys<Account>({
    rp: { id: new URL(origin).hostname, name: new URL(origin).host },
    origins: [origin],
    store,
    nameOf: ({ email }) => email,
  })

  const guess = countFailures()
  const router = new Router()
  const [open, user] = [withAuth(null), withAuth(sessionAuth())]
  const fresh = withAuth(sessionAuth({ proof: { maxAge: 900_000 } }))
  const toAccount = (ctx: Context, flash: 'removed' | 'ended' | 'wrong') => {
    ctx.session = { ...ctx.session, flash }
    ctx.redirect('/account')
  }
  router.get('/', withAuth(optional(sessionAuth())), (ctx) => (ctx.body = homePage(ctx, ctx.request.auth)))
  router.get('/style.css', open, (ctx) => Object.assign(ctx, { type: 'css', body: style }))
  router.get('/passkeys.js', open, (ctx) => Object.assign(ctx, { type: 'js', body: script }))
  router.get('/sign-in', open, signIn)
  router.post('/sign-in', open, signIn)
  router.get('/sign-up', open, begin(password))
  router.post('/sign-up', open, begin(password))
  router.get('/password', open, linkPage(password))
  const set = finish(password, async (_ctx, { proof: { subject, stamp }, body }) => {
    const role = subject === ADMIN ? 'admin' : 'member'
    const isSet = await accounts.setPassword(subject, stamp, await hash(String(body['password'])), role)
    if (isSet) await logOutEverywhere(subject)
    return isSet
  })
  router.post('/password', open, set)
  router.post('/sign-out', open, async (ctx) => {
    await logOut(ctx)
    ctx.redirect('/')
  })
  router.post('/passkey/options', open, begin(passkey))
  const byPasskey = finish(passkey, (_ctx, { proof }) => accounts.find(proof.subject))
  router.post('/passkey', open, byPasskey)

  router.get('/account', user, async (ctx) => {
    const flash = String(ctx.session?.['flash'] ?? '')
    delete ctx.session?.['flash']
    ctx.body = accountPage(ctx, ctx.request.auth, await listSessions(ctx), flash)
  })
  const own = withAuth(sessionAuth(), unchecked('id', 'endSession finds it among the sessions of the user'))
  router.post('/account/sessions/:id', own, async (ctx) => {
    await endSession(ctx.request.auth.email, String(ctx.params['id']))
    toAccount(ctx, 'ended')
  })
  router.post('/account/app', fresh, async (ctx) => {
    const made = authenticatorApp.enrol(ctx.request.auth.email)
    await accounts.setPending(ctx.request.auth.email, made.sealed)
    ctx.body = enrolPage(ctx, made)
  })
  router.post('/account/app/confirm', fresh, bodyParser(), async (ctx) => {
    const { email, pending } = ctx.request.auth
    const { code: typed } = ctx.request.body as { readonly code?: unknown }
    const confirm = () => pending !== null && authenticatorApp.confirm(email, pending, typed)
    const isRight = await guess(ctx, email, confirm).catch(() => false)
    if (!isRight) return toAccount(ctx, 'wrong')
    const made = recovery.make(email)
    await accounts.setTotp(email, pending, made.digests)
    ctx.body = listPage(ctx, 'recovery', made.codes)
  })
  router.post('/account/app/remove', fresh, async (ctx) => {
    await accounts.setTotp(ctx.request.auth.email, null, [])
    toAccount(ctx, 'removed')
  })
  router.post('/account/passkey/options', fresh, begin(passkey.register))
  router.post('/account/passkey', user, finish(passkey.register))
  const admin = withAuth(authorize((one: Account) => one.role === 'admin')(sessionAuth()))
  router.get('/admin', admin, async (ctx) => (ctx.body = listPage(ctx, 'admin', await accounts.all())))

  const pages = ['/', '/style.css', '/passkeys.js', '/sign-in', '/sign-up', '/password'].map((path) => `GET ${path}`)
  const forms = ['/sign-in', '/sign-up', '/password', '/sign-out', '/passkey/options', '/passkey']
  seal(router, { public: [...pages, ...forms.map((path) => `POST ${path}`)], objects: true })
  app.use(router.routes()).use(router.allowedMethods())
  return app
}

/** The application, for `koa-with-auth audit`. */
export default () => site('file::memory:')
