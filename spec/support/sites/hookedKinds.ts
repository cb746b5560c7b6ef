/** An application with one operation for each kind of authenticator. All hooks return what the test sets. */
import { either as E } from 'fp-ts'
import type Koa from 'koa'
import type { Middleware } from 'koa'
import { createSession } from 'koa-session'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authSettings,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
} from 'koa-with-auth'
import { guardedApp, rawRequest } from './guardedApp.js'
import { sendRaw } from '../servers/rawSocket.js'
import { cookiesIn, type Served } from '../servers/server.js'

/** The credentials that every request to these operations carries. */
export const CREDENTIALS = ['supersecret-token', 'supersecret-password', 'supersecret-key'] as const
const [TOKEN, PASSWORD, KEY] = CREDENTIALS
const basic = Buffer.from(`admin:${PASSWORD}`).toString('base64')

/** The kinds, and a request with credentials for each. */
export const kinds: ReadonlyArray<readonly [kind: string, target: string, lines: ReadonlyArray<string>]> = [
  ['callable', 'GET /callable', []],
  ['bearer', 'GET /bearer', [`Authorization: Bearer ${TOKEN}`]],
  ['basic', 'GET /basic', [`Authorization: Basic ${basic}`]],
  ['query key', `GET /query?key=${KEY}`, []],
  ['header key', 'GET /header', [`key: ${KEY}`]],
  ['cookie key', 'GET /cookie', [`Cookie: key=${KEY}`]],
  ['session', 'GET /session', []],
  ['bare RTE', 'GET /rte', []],
]

const signIn: Middleware = async (ctx, next) => {
  if (ctx.path === '/sign-in') {
    ctx.session = { userId: 1 }
    ctx.body = 'ok'
  } else await next()
}

/** The application. `answerWith` sets what the hooks do from then on. */
export const hookedKinds = (above: (app: Koa) => ReadonlyArray<Middleware> = () => []) => {
  let hook: () => unknown = () => false
  let asked = 0
  const ask = (): unknown => {
    asked++
    return hook()
  }
  const routes = {
    '/callable': () => ask(),
    '/bearer': httpBearer({ authenticate: ask }),
    '/basic': httpBasicAuth({ authenticate: ask }),
    '/query': apiKeyQuery({ authenticate: ask }),
    '/header': apiKeyHeader({ authenticate: ask }),
    '/cookie': apiKeyCookie({ authenticate: ask }),
    '/session': sessionAuth({ loadUser: ask }),
    '/rte': () => async () => E.right(await ask()),
  }
  const under = guardedApp(routes, {
    above: (app) => {
      app.keys = ['a signing key of at least 32 characters']
      return [authSettings({ timeout: 60 }), createSession(app), signIn, ...above(app)]
    },
  })
  let cookies: string | undefined
  const sessionOf = async (url: string) => cookiesIn((await fetch(`${url}/sign-in`)).headers)

  /** Sends the request of a kind. Reports how often its hook was called and its operation ran. */
  const send = async (served: Served, [kind, target, lines]: (typeof kinds)[number], answer: () => unknown) => {
    cookies ??= await sessionOf(served.url)
    hook = answer
    const [ran, before] = [under.calls(), asked]
    const own = kind === 'session' ? [`Cookie: ${cookies}`] : lines
    const got = await sendRaw(served.port, rawRequest(served.port, target, own))
    return { ...got, ran: under.calls() - ran, asked: asked - before }
  }
  return { app: under.app, send }
}
