// The whole specification in one application: every kind of authenticator, one for the application, sessions, tokens,
// and an exception with a handler. The rows of the table in README.md are the operations below. The docs page at
// /api/docs shows their guards, and the descriptions of descriptions.ts.
import { LibsqlError, type Client } from '@libsql/client'
import * as E from 'fp-ts/lib/Either.js'
import Koa from 'koa'
import {
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  AuthError,
  cached,
  constantTimeEqual,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  sessionLoginAuth,
  withAuth,
} from 'koa-with-auth'
import type { ApiKeys } from 'koa-with-auth/keys'
import { sessions } from 'koa-with-auth/sessions'
import type { Store } from 'koa-with-auth/stores'
import { ipAllowList } from '../ipAllowList.js'
import { accounts } from './accounts.js'
import { clientsInMemory } from './clients.js'
import { chapters, described, introduction, schemes } from './descriptions.js'
import { BadForm } from './form.js'
import { home } from './home.js'
import { formOf, guesses, refuse, signedInBy, type LimiterOf } from './signIn.js'
import { databaseTokens, issue, ownerOf, type Tokens } from './tokens.js'

/** The settings of the example. */
export interface ExampleOptions {
  readonly database: Client
  /** Signing keys of the session cookie, at least 32 characters each. */
  readonly keys: string[]
  /** The client addresses that GET /ipwhitelist accepts, separated by commas. */
  readonly allowedAddresses: string
  /** Where sessions are kept. Default: in memory. */
  readonly store?: Store
  /** The API keys of clients. Default: in memory. */
  readonly clients?: ApiKeys<string>
  /** Where issued tokens are kept. Default: in the database. */
  readonly tokens?: Tokens
  /** Counts wrong passwords. Default: in memory, for this process only. */
  readonly limiterOf?: LimiterOf
}

/** Thrown by GET /strict for a bad token; see `onError` below. */
export class InvalidToken extends Error {}

const supersecret = (key: string) => constantTimeEqual(key, 'supersecret') && key

// A database that fails is an outage, not a wrong credential: the response is a 503
const orUnavailable = <A>(answer: Promise<A>) => answer.catch(() => E.left(AuthError.unavailable()))

/** The example API on Koa, mounted at /api. */
export const exampleApp = (options: ExampleOptions): Koa => {
  const { database, keys, allowedAddresses, store, clients, tokens, limiterOf } = options
  const { signIn, userOf } = accounts(database)
  // A password can be guessed, because people choose it: wrong ones are counted before a comparison. Keys and tokens
  // are random, like those that are issued here, and cannot be guessed; only `supersecret` is for demonstration.
  const counted = guesses(limiterOf)
  const signedIn = signedInBy(counted(formOf(signIn)))
  const clientKeys = clients ?? clientsInMemory()
  const issuedTokens = tokens ?? databaseTokens(database)
  const app = new Koa({ keys })
  // The session contains a name. The user and the rights are loaded at each request.
  const { logIn, logOut, logOutEverywhere } = sessions(app, {
    loadUser: (username) => orUnavailable(userOf(username)),
    ...(store !== undefined && { store }),
  })

  const bearerOf = async (token: string) => {
    const username = await ownerOf(issuedTokens, token)
    return username === undefined ? undefined : userOf(username)
  }
  const issued = httpBearer({
    ...schemes.issuedToken,
    authenticate: (_request, token) => orUnavailable(bearerOf(token)),
  })
  const api = apiApp({
    title: 'Pets',
    version: '1.0.0',
    prefix: '/api',
    realm: 'pets',
    auth: issued,
    docs: { description: introduction, tags: chapters },
  })

  const bearer = httpBearer({ ...schemes.demoToken, authenticate: (_request, token) => supersecret(token) })
  api.get('/bearer', described.bearer, withAuth(bearer), (ctx) => {
    ctx.body = { token: ctx.request.auth }
  })

  const basic = httpBasicAuth({
    ...schemes.demoUser,
    // Basic sends the password with each request, so a verification is kept for a minute
    authenticate: cached(
      (_request, username: string, password: string) => {
        // Both are compared, whatever the result of the first is
        const [user, pass] = [constantTimeEqual(username, 'admin'), constantTimeEqual(password, 'secret')]
        return user && pass && username
      },
      { maxAge: 60_000 },
    ),
  })
  api.get('/basic', described.basic, withAuth(basic, counted), (ctx) => {
    ctx.body = { httpuser: ctx.request.auth }
  })

  const client = apiKeyQuery({
    paramName: 'api_key',
    ...schemes.clientKey,
    authenticate: clientKeys.authenticate,
  })
  api.get('/apikey', described.apikey, withAuth(client), (ctx) => {
    ctx.body = `Hello ${ctx.request.auth.owner}`
  })

  const headerKey = apiKeyHeader({
    paramName: 'X-API-Key',
    ...schemes.headerKey,
    authenticate: (_request, key) => supersecret(key),
  })
  api.get('/headerkey', described.headerkey, withAuth(headerKey), (ctx) => {
    ctx.body = `Token = ${ctx.request.auth}`
  })
  const cookieKey = apiKeyCookie({
    paramName: 'X-API-KEY',
    ...schemes.cookieKey,
    authenticate: (_request, key) => supersecret(key),
  })
  api.get('/cookiekey', described.cookiekey, withAuth(cookieKey), (ctx) => {
    ctx.body = `Token = ${ctx.request.auth}`
  })
  const queryKey = apiKeyQuery({
    ...schemes.queryKey,
    authenticate: (_request, key) => supersecret(key),
  })
  api.get('/multiple', described.multiple, withAuth([queryKey, headerKey]), (ctx) => {
    ctx.body = `Token = ${ctx.request.auth}`
  })

  api.get('/ipwhitelist', described.ipwhitelist, withAuth(ipAllowList(allowedAddresses)), (ctx) => {
    ctx.body = `Authenticated client, IP = ${ctx.request.auth}`
  })

  api.get('/pets', described.readPets, withAuth(sessionLoginAuth), (ctx) => {
    ctx.body = `Authenticated user ${ctx.request.auth.username}`
  })
  api.post('/pets', described.addPet, withAuth(sessionLoginAuth), (ctx) => {
    ctx.status = 201
    ctx.body = { owner: ctx.request.auth.username }
  })
  api.get('/protected', described.protected, withAuth(sessionAuth()), (ctx) => {
    ctx.body = { user: ctx.request.auth.username }
  })
  api.get('/admin-only', described.adminOnly, withAuth(sessionAuthSuperUser()), (ctx) => {
    ctx.body = { message: `Welcome, superuser ${ctx.request.auth.username}` }
  })
  api.get('/staff-area', described.staffArea, withAuth(sessionAuthIsStaff()), (ctx) => {
    ctx.body = { message: `Welcome, ${ctx.request.auth.username} of the staff` }
  })

  api.get('/whoami', described.whoami, (ctx) => {
    ctx.body = { principal: ctx.request.auth.username }
  })

  const strict = httpBearer({
    ...schemes.strictToken,
    authenticate: (_request, token) => {
      if (!supersecret(token)) throw new InvalidToken()
      return { token }
    },
  })
  api.get('/strict', described.strict, withAuth(strict), (ctx) => {
    ctx.body = ctx.request.auth
  })
  api.onError(InvalidToken, () => ({ status: 401, body: { detail: 'Invalid token supplied' } }))
  api.onError(BadForm, (_request, { status, message, fields }) => ({
    status,
    body: { detail: message, ...(fields.length > 0 && { fields }) },
  }))

  api.onError(LibsqlError, () => ({
    status: 503,
    headers: { 'Retry-After': '5' },
    body: { detail: 'The database is unavailable' },
  }))

  api.post('/token', described.issueToken, withAuth(null), async (ctx) => {
    const user = await signedIn(ctx)
    ctx.set('Cache-Control', 'no-store')
    if (E.isLeft(user)) return refuse(ctx, user.left)
    ctx.body = { token: await issue(issuedTokens, user.right.username) }
  })
  api.post('/login', described.login, withAuth(null), async (ctx) => {
    const user = await signedIn(ctx)
    if (E.isLeft(user)) return refuse(ctx, user.left)
    await logIn(ctx, user.right)
    ctx.status = 204
  })
  api.post('/logout', described.logout, withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  api.post('/logout-everywhere', described.logoutEverywhere, withAuth(sessionAuth()), async (ctx) => {
    await issuedTokens.end(ctx.request.auth.username)
    await logOutEverywhere(ctx.request.auth.username)
    ctx.status = 204
  })

  app.use(api.routes()).use(api.allowedMethods())
  app.use(home({ signedIn, logIn, logOut }).routes())
  return app
}
