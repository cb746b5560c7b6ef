// The whole specification in one application: every kind of authenticator, an application-wide one, sessions, tokens, and an
// exception with a handler. The rows of the table in README.md are the operations below, in that order.
import type { Client } from '@libsql/client'
import { either as E } from 'fp-ts'
import Koa from 'koa'
import session from 'koa-session'
import {
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  constantTimeEqual,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  withAuth,
} from 'koa-with-auth'
import { ipAllowList } from '../ipAllowList.js'
import { accounts, sessionStore, SessionsUnavailable } from './accounts.js'
import { BadForm, readForm, SignInForm } from './form.js'

/** What the example is started with. */
export interface ExampleOptions {
  readonly database: Client
  /** Signing keys of the session cookie, at least 32 characters each. */
  readonly keys: string[]
  /** Client addresses that GET /ipwhitelist lets in, separated by commas. */
  readonly allowedAddresses: string
}

/** Raised by GET /strict for a bad token; see `onError` below. */
export class InvalidToken extends Error {}

const supersecret = (key: string) => constantTimeEqual(key, 'supersecret') && key

// A database that is down is an outage, not a wrong credential: the layer answers 503
const orUnavailable = <A>(answer: Promise<A>) => answer.catch(() => E.left(AuthError.unavailable()))

/** The example API on Koa, mounted at /api. */
export const exampleApp = ({ database, keys, allowedAddresses }: ExampleOptions): Koa => {
  const { signIn, issueToken, ownerOf, clientOf } = accounts(database)
  const issued = httpBearer({ authenticate: (_request, token) => orUnavailable(ownerOf(token)) })
  const api = apiApp({ title: 'Pets', version: '1.0.0', prefix: '/api', realm: 'pets', auth: issued })

  api.get('/pets', withAuth(sessionLoginAuth), (ctx) => {
    ctx.body = `Authenticated user ${ctx.request.auth.username}`
  })
  api.post('/pets', withAuth(sessionLoginAuth), (ctx) => {
    ctx.status = 201
    ctx.body = { owner: ctx.request.auth.username }
  })

  const bearer = httpBearer({ authenticate: (_request, token) => supersecret(token) })
  api.get('/bearer', withAuth(bearer), (ctx) => {
    ctx.body = { token: ctx.request.auth }
  })

  const basic = httpBasicAuth({
    authenticate: (_request, username, password) => {
      // both are compared, whatever the first says
      const [user, pass] = [constantTimeEqual(username, 'admin'), constantTimeEqual(password, 'secret')]
      return user && pass && username
    },
  })
  api.get('/basic', withAuth(basic), (ctx) => {
    ctx.body = { httpuser: ctx.request.auth }
  })

  const client = apiKeyQuery({ paramName: 'api_key', authenticate: (_request, key) => orUnavailable(clientOf(key)) })
  api.get('/apikey', withAuth(client), (ctx) => {
    ctx.body = `Hello ${ctx.request.auth.name}`
  })

  const headerKey = apiKeyHeader({ paramName: 'X-API-Key', authenticate: (_request, key) => supersecret(key) })
  api.get('/headerkey', withAuth(headerKey), (ctx) => {
    ctx.body = `Token = ${ctx.request.auth}`
  })
  const cookieKey = apiKeyCookie({ paramName: 'X-API-KEY', authenticate: (_request, key) => supersecret(key) })
  api.get('/cookiekey', withAuth(cookieKey), (ctx) => {
    ctx.body = `Token = ${ctx.request.auth}`
  })
  const queryKey = apiKeyQuery({ authenticate: (_request, key) => supersecret(key) })
  api.get('/multiple', withAuth([queryKey, headerKey]), (ctx) => {
    ctx.body = `Token = ${ctx.request.auth}`
  })

  api.get('/ipwhitelist', withAuth(ipAllowList(allowedAddresses)), (ctx) => {
    ctx.body = `Authenticated client, IP = ${ctx.request.auth}`
  })

  api.get('/protected', withAuth(sessionAuth()), (ctx) => {
    ctx.body = { user: ctx.request.auth.username }
  })
  api.get('/admin-only', withAuth(sessionAuthSuperUser()), (ctx) => {
    ctx.body = { message: `Welcome, superuser ${ctx.request.auth.username}` }
  })
  api.get('/staff-area', withAuth(sessionAuthIsStaff()), (ctx) => {
    ctx.body = { message: `Welcome, ${ctx.request.auth.username} of the staff` }
  })

  api.get('/whoami', (ctx) => {
    ctx.body = { principal: ctx.request.auth.username }
  })

  const strict = httpBearer({
    authenticate: (_request, token) => {
      if (!supersecret(token)) throw new InvalidToken()
      return { token }
    },
  })
  api.get('/strict', withAuth(strict), (ctx) => {
    ctx.body = ctx.request.auth
  })
  api.onError(InvalidToken, () => ({ status: 401, body: { detail: 'Invalid token supplied' } }))
  api.onError(BadForm, (_request, { status, message, fields }) => ({
    status,
    body: { detail: message, ...(fields.length > 0 && { fields }) },
  }))

  api.onError(SessionsUnavailable, () => ({
    status: 503,
    headers: { 'Retry-After': '5' },
    body: { detail: 'Sessions are unavailable' },
  }))

  api.post('/token', withAuth(null), async (ctx) => {
    const { username, password } = await readForm(ctx, SignInForm)
    const user = await signIn(username, password)
    ctx.set('Cache-Control', 'no-store')
    ctx.status = user ? 200 : 401
    if (!user) ctx.set('WWW-Authenticate', 'Form realm="pets"')
    ctx.body = user ? { token: await issueToken(user.username) } : { detail: 'Invalid credentials' }
  })
  api.post('/login', withAuth(null), async (ctx) => {
    const { username, password } = await readForm(ctx, SignInForm)
    const user = await signIn(username, password)
    if (!user) {
      ctx.status = 401
      ctx.set('WWW-Authenticate', 'Form realm="pets"')
      ctx.body = { detail: 'Invalid credentials' }
      return
    }
    // Old data goes, and a new id comes: a session that somebody else planted is worth nothing
    ctx['session'] = { user }
    // koa-session declares no types for the context
    await (ctx['session'] as { regenerate: () => Promise<void> }).regenerate()
    ctx.status = 204
  })
  api.post('/logout', withAuth(null), (ctx) => {
    ctx['session'] = null
    ctx.status = 204
  })

  const app = new Koa({ keys })
  app.use(session({ key: 'koa.sess', sameSite: 'lax', store: sessionStore(database) }, app))
  app.use(api.routes()).use(api.allowedMethods())
  return app
}
