/**
 * Apps and command lines: a token carries their sign-in. An app posts the password to /device/sign-in. A command line asks for a code at
 * /device/code, shows it, and asks /device/token until its user has typed the code at /device, in a browser (RFC 8628).
 */
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { bodyParser } from '@koa/bodyparser'
import type Router from '@koa/router'
import { countFailures, passwordSignIn } from 'koa-with-auth/sign-in'
import { fieldsOf, reasonOf, toAccount } from './account.js'
import type { Account } from './accounts.js'
import { limitersIn } from './limiter.js'
import { formPage } from './pages.js'
import type { Parts } from './parts.js'

const LIFETIME = 600_000
const INTERVAL = 5
// no vowels, so that it is no word (RFC 8628 §6.1)
const letters = 'BCDFGHJKLMNPQRSTVWXZ'

const digest = (secret: string) => createHash('sha256').update(secret).digest('base64url')
const keyOf = (code: string) => `device ${code}`
// as people type it
const codeIn = (typed: unknown) => (typeof typed === 'string' ? typed.toUpperCase().replace(/[^A-Z]/g, '') : '')

export const deviceRoutes = (router: Router, parts: Parts) => {
  const { accounts, auth, byPassword, database, open, settings, user } = parts
  const { store } = database
  router.post('/device/sign-in', open, passwordSignIn<Account>({ ...byPassword, as: 'bearer' }))
  router.get('/device/me', user, (ctx) => (ctx.body = { email: ctx.request.auth.email }))

  const limiter = limitersIn(store, 'device').accountAndAddress
  router.post('/device/code', open, async (ctx) => {
    await limiter.consume(ctx.ip).catch(() => ctx.throw(429))
    const code = Array.from({ length: 8 }, () => letters[randomInt(letters.length)]).join('')
    const secret = randomBytes(32).toString('base64url')
    if (!(await store.insert(keyOf(code), JSON.stringify({ secret: digest(secret) }), LIFETIME))) ctx.throw(503)
    const user_code = `${code.slice(0, 4)}-${code.slice(4)}`
    const verification_uri = `${settings.origin}/device`
    ctx.set('Cache-Control', 'no-store')
    ctx.body = {
      device_code: `${code}.${secret}`,
      user_code,
      verification_uri,
      verification_uri_complete: `${verification_uri}?code=${user_code}`,
      expires_in: LIFETIME / 1000,
      interval: INTERVAL,
    }
  })

  // whoever types the code lets the program in that shows it
  const field = { name: 'userCode', type: 'text', autocomplete: 'off' } as const
  router.get('/device', user, (ctx) => {
    const value = codeIn(ctx.query['code']).replace(/^.{4}/, '$&-')
    ctx.body = formPage(ctx, 'connectDevice', '/device', [value ? { ...field, value } : field])
  })
  const guess = countFailures(limitersIn(store, 'device code'))
  router.post('/device', user, bodyParser(), async (ctx) => {
    const { id } = ctx.request.auth
    const key = keyOf(codeIn(fieldsOf(ctx)['userCode']))
    const allow = async () => {
      const [was] = await store.get([key])
      const known = was === undefined ? {} : JSON.parse(was)
      return (
        'secret' in known && !known.user && store.update(key, JSON.stringify({ ...known, user: id }), LIFETIME, was)
      )
    }
    const refused = await guess(ctx, id, allow).then(() => undefined, reasonOf)
    if (refused === undefined) return toAccount(ctx, 'deviceAllowed')
    Object.assign(ctx, { status: 403, body: formPage(ctx, 'connectDevice', '/device', [field], refused) })
  })

  router.post('/device/token', open, bodyParser(), async (ctx) => {
    const refuse = (error: string): void => void Object.assign(ctx, { status: 400, body: { error } })
    const [code = '', secret = ''] = String(fieldsOf(ctx)['device_code']).split('.')
    const key = keyOf(code)
    const [was] = await store.get([key])
    if (was === undefined) return refuse('expired_token')
    const known = JSON.parse(was)
    if (known.secret !== digest(secret)) return refuse('invalid_grant')
    if (!known.user) return refuse('authorization_pending')
    // of two requests at once, one gets the token
    const isFirst = await store.update(key, '{}', LIFETIME, was)
    const account = isFirst && (await accounts.byId(known.user))
    if (!account) return refuse('invalid_grant')
    const { token, tokenType, expiresIn } = await auth.logIn(ctx, account, {
      as: 'bearer',
      proof: { method: 'device' },
    })
    ctx.set('Cache-Control', 'no-store')
    ctx.body = { access_token: token, token_type: tokenType, expires_in: expiresIn }
  })
}
