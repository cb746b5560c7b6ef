/** The application that `spec/data/bad-inputs.json` describes. */
import { BlockList, isIP } from 'node:net'
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import { createSession } from 'koa-session'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authSettings,
  constantTimeEqual,
  httpBasicAuth,
  httpBearer,
  onError,
  sessionAuth,
  sessionAuthIsStaff,
  sessionAuthSuperUser,
  withAuth,
  type Guard,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { BadForm, readForm, SignInForm } from '../../../examples/api/form.js'
import { docs } from '../../../src/openapi/docs.js'
import { corpus, type Macros } from '../models/corpus.js'

const SECRET = 'supersecret'
const users = new Map(Object.entries({ ...corpus.app.basicUsers, ...corpus.app.extraUsers }))
/** The users who can sign in. */
export const people = new Map([
  ['user', { username: 'anna' }],
  ['staff', { username: 'stella', isStaff: true }],
  ['super', { username: 'root', isSuperuser: true }],
])

// The key in the file is shorter than this package accepts
export const signingKeys = corpus.app.session.keys.map((key) => key.padEnd(32, '.'))

const byKey = (_request: unknown, key: string) => constantTimeEqual(key, SECRET) && { key }

const bearer = httpBearer({ authenticate: byKey })
const basic = httpBasicAuth({
  authenticate: (_request, username, password) => {
    const known = users.get(username)
    return constantTimeEqual(password, known ?? '') && known !== undefined && { username }
  },
})
const cookieKey = apiKeyCookie({ paramName: 'X-API-KEY', authenticate: byKey })
const headerKey = apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey })

const allowed = new BlockList()
allowed.addAddress('8.8.8.8')
const onAllowList = ({ socket }: Koa.Request) => {
  const address = socket.remoteAddress ?? ''
  return allowed.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4') && { address }
}

const session = sessionAuth()
const queryKey = apiKeyQuery({ authenticate: byKey })

const { issuer, audience, publicKey } = corpus.app.jwt
const token = httpJwt({ issuer: { issuer, publicKey, algorithms: ['RS256'] }, audience })

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'
type Auth = AuthenticatorLike | readonly [AuthenticatorLike, ...AuthenticatorLike[]]

/** The guard of each operation in the file. */
export const operations: ReadonlyArray<readonly [Method, path: string, Auth]> = [
  ['get', '/pets', session],
  ['post', '/pets', session],
  ['put', '/pets', session],
  ['patch', '/pets', session],
  ['delete', '/pets', session],
  ['get', '/bearer', bearer],
  ['post', '/bearer', bearer],
  ['get', '/basic', basic],
  ['get', '/jwt', token],
  ['get', '/apikey', apiKeyQuery({ paramName: 'api_key', authenticate: byKey })],
  ['get', '/headerkey', headerKey],
  ['get', '/cookiekey', cookieKey],
  ['post', '/cookiekey', cookieKey],
  ['get', '/multiple', [queryKey, headerKey]],
  ['get', '/ipwhitelist', onAllowList],
  ['get', '/protected', session],
  ['get', '/admin-only', sessionAuthSuperUser()],
  ['get', '/staff-area', sessionAuthIsStaff()],
]

// TypeScript chooses an overload by the written argument, not by the type of a table
const guardOf = (auth: Auth): Guard<unknown> => withAuth(auth as AuthenticatorLike)

/** The guards of the five routes of the contract, by the name of the route. */
export const contractGuards: Readonly<Record<string, Guard<unknown>>> = {
  basic: guardOf(basic),
  bearer: guardOf(bearer),
  headerkey: guardOf(headerKey),
  jwt: guardOf(token),
  protected: guardOf(bearer),
}

const badForm = onError(BadForm, (_request, { status, message, fields }) => ({
  status,
  body: { detail: message, fields },
}))

/** The application, and how often any of its operations has run. */
export const corpusApp = () => {
  let calls = 0
  const operation = (ctx: Context): void => {
    calls++
    ctx.body = { auth: Reflect.get(ctx.request, 'auth') }
  }
  const token = async (ctx: Context) => {
    const { username, password } = await readForm(ctx, SignInForm)
    const known = users.get(username)
    const right = constantTimeEqual(password, known ?? '') && known !== undefined
    ctx.set('Cache-Control', 'no-store')
    ctx.status = right ? 200 : 401
    if (!right) ctx.set('WWW-Authenticate', 'Form realm="api"')
    ctx.body = right ? { token: 'issued' } : { detail: 'Invalid credentials' }
  }

  const router = new Router({ prefix: '/api' })
  for (const [method, path, auth] of operations) router[method](path, guardOf(auth), operation)
  router.post('/token', token)
  router.use(docs(router, { title: 'API', version: '1.0.0' }))
  const root = new Router()
  root.post('/sign-in/:who', (ctx) => {
    ctx.session = { user: people.get(String(ctx['params'].who)) }
    ctx.body = 'ok'
  })
  const app = new Koa({ keys: [...signingKeys] })
  app.use(createSession(app)).use(root.routes())
  app.use(
    new Router()
      .use('', authSettings({ onError: [badForm] }))
      .use(router.routes())
      .routes(),
  )
  app.use(new Router().allowedMethods())
  return { app, calls: () => calls }
}

/** The values of the macros in the file, with sessions of real sign-ins. */
export const macrosFor = async (url: string): Promise<Macros> => {
  const { host, hostname } = new URL(url)
  const sessions = await Promise.all(
    [...people.keys()].map(async (who) => {
      const { headers } = await fetch(`${url}/sign-in/${who}`, { method: 'POST' })
      const [pair = '', sig = ''] = headers.getSetCookie().map((cookie) => cookie.split(';')[0] ?? '')
      if (!sig.startsWith('koa.sess.sig=')) throw new Error(`no session for ${who}`)
      return [
        [`cookie.${who}`, `${pair}; ${sig}`],
        [`cookie.${who}.pair`, pair],
        [`cookie.${who}.sig`, sig],
      ] as const
    }),
  )
  return { host, 'host.name': hostname, sid: 'koa.sess', ...Object.fromEntries(sessions.flat()) }
}
