/**
 * Every hostile request of `spec/data/bad-inputs.json` as an upgrade, over raw sockets. It gets the response of the
 * same request as a POST, because an upgrade is not safe: status, challenges, caching and body.
 */
import Router from '@koa/router'
import Koa from 'koa'
import { createSession } from 'koa-session'
import { anyOf, withAuth, type Authenticator, type AuthenticatorLike } from 'koa-with-auth'
import { fromFunction } from 'koa-with-auth/fp'
import { on, type Decision } from 'koa-with-auth/events'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokenBy, bytesOf, corpus, type CorpusRequest, type Macros } from '../support/models/corpus.js'
import { macrosFor, operations, people, signingKeys } from '../support/sites/corpusApp.js'
import { sendRaw, valuesOf, type RawAnswer } from '../support/servers/rawSocket.js'
import { listenWithUpgrades, type UpgradeServer } from '../support/servers/upgradeServer.js'

const authenticatorOf = (auth: (typeof operations)[number][2]): Authenticator<unknown> =>
  typeof auth === 'function' ? fromFunction(auth) : anyOf(auth as readonly [AuthenticatorLike])
const guarded = new Map(operations.map(([, path, auth]) => [`/api${path}`, authenticatorOf(auth)]))
// A path without an operation has the guard of the first
const guardedPath = (target: string): string => {
  const path = target.split('?')[0] ?? ''
  return guarded.has(path) ? path : '/api/pets'
}

let handled = 0
const site = (): Koa => {
  const app = new Koa({ keys: [...signingKeys] })
  app.use(createSession(app))
  const router = new Router()
  router.post('/sign-in/:who', (ctx) => {
    ctx.session = { user: people.get(String(ctx['params'].who)) }
    ctx.body = 'ok'
  })
  for (const [path, auth] of guarded) router.all(path, withAuth(auth), (ctx) => void (ctx.body = `in ${++handled}`))
  app.use(router.routes())
  return app
}

let server: UpgradeServer
let macros: Macros
let records: Decision[] = []
let end = () => {}
beforeAll(async () => {
  const app = site()
  const guards = new Map([...guarded].map(([path, auth]) => [path, guardUpgrade(app, auth, { route: path })]))
  server = await listenWithUpgrades(app, ({ url }) => guards.get(guardedPath(url ?? '')))
  macros = await macrosFor(server.url)
  end = on('decision', (record) => records.push(record))
})
afterAll(async () => {
  end()
  await server.close()
})

const withoutConnection = (request: CorpusRequest) =>
  request.rawHeaders.filter(([name]) => !/^(?:connection|upgrade)$/i.test(name))

const asUpgrade = (request: CorpusRequest): string =>
  bytesOf(
    { ...request, rawHeaders: [['Connection', 'Upgrade'], ['Upgrade', 'websocket'], ...withoutConnection(request)] },
    macros,
  )

// The path of the guard, so that the router finds it
const asPost = (request: CorpusRequest): string => {
  const bytes = bytesOf(
    {
      ...request,
      method: 'POST',
      rawHeaders: [['Connection', 'close'], ['X-Upgrade', 'websocket'], ...withoutConnection(request)],
    },
    macros,
  )
  return bytes.replace(/^(POST )([^ ?]*)/, (_all, method: string, path: string) => method + guardedPath(path))
}

const comparable = (answer: RawAnswer) => ({
  challenges: valuesOf(answer, 'WWW-Authenticate'),
  caching: valuesOf(answer, 'Cache-Control'),
  vary: valuesOf(answer, 'Vary'),
  type: valuesOf(answer, 'Content-Type'),
  body: answer.body,
})

const isHttp1 = ({ httpVersion = '1.1' }: CorpusRequest): boolean => httpVersion !== '0.9'

describe('hostile requests as upgrades', () => {
  it.each(corpus.cases.filter(({ request }) => isHttp1(request)).map((kase) => [kase.id, kase.why, kase] as const))(
    '%s: %s',
    async (_id, _why, { request }) => {
      const head = { ...request, method: request.method === 'HEAD' ? 'GET' : request.method }
      const bare = await sendRaw(server.port, asUpgrade({ ...head, rawHeaders: [] }))
      const [ran, inside] = [handled, server.admitted.length]
      records = []
      const answer = await sendRaw(server.port, asUpgrade(head))
      const entered = server.admitted.length - inside
      expect({ ran: handled - ran, entered }).toEqual({ ran: 0, entered: answer.status === 101 ? 1 : 0 })
      expect(brokenBy(request, macros, answer, 0, JSON.stringify(bare))).toEqual([])
      expect(server.errors).toEqual([])
      // Node itself answers what is not HTTP
      if (records.length === 0) return expect([400, 431]).toContain(answer.status)
      expect(records).toMatchObject([{ level: 'upgrade', status: answer.status }])
      const usual = await sendRaw(server.port, asPost(head))
      expect(answer.status).toBe(usual.status === 200 ? 101 : usual.status)
      if (answer.status === 101) return undefined
      expect(comparable(answer)).toEqual(comparable(usual))
      expect(valuesOf(answer, 'Set-Cookie')).toEqual([])
      return undefined
    },
  )
})

it('some upgrades are accepted, and most are refused', async () => {
  const before = server.admitted.length
  const good = corpus.cases.filter(({ request, must }) => isHttp1(request) && must === 'accept')
  for (const { request } of good) await sendRaw(server.port, asUpgrade({ ...request, method: 'GET' }))
  expect(server.admitted.length - before).toBeGreaterThan(20)
  expect(corpus.cases.length).toBe(410)
})
