/** Upgrades under the rules of operations: who gets in, and what a refusal is, byte for byte as over HTTP. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import Koa, { type Middleware, type Request } from 'koa'
import {
  anyOf,
  apiKeyCookie,
  AuthError,
  authSettings,
  httpBasicAuth,
  httpBearer,
  onError,
  throttled,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { onDecision, type Decision } from 'koa-with-auth/events'
import { guardUpgrade, type GuardUpgradeOptions } from 'koa-with-auth/upgrades'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sendLines } from '../support/guardedApp.js'
import { valuesOf, type RawAnswer } from '../support/rawSocket.js'
import { listenWithUpgrades, sendUpgrade, type UpgradeServer } from '../support/upgradeServer.js'

class Handled extends Error {}

let asked: Request[] = []
let records: Decision[] = []
let end = () => {}
beforeEach(() => {
  asked = []
  records = []
  end = onDecision((record) => records.push(record))
})
afterEach(() => end())

const bearer = httpBearer({
  authenticate: (request, token) => {
    asked.push(request)
    if (token === 'down') return E.left(AuthError.unavailable(7))
    if (token === 'old') return E.left(AuthError.expired)
    if (token === 'scope') return E.left(AuthError.insufficient(['read']))
    if (token === 'bug') throw new Error('a secret of the hook')
    if (token === 'handled') throw new Handled()
    if (token === 'hangs') return new Promise<false>(() => {})
    if (token === 'slow') return new Promise<{ user: string }>((resolve) => setTimeout(resolve, 60, { user: 'anna' }))
    return token === 'good' && { user: 'anna' }
  },
})
const cookie = apiKeyCookie({ paramName: 'id', authenticate: (_request, key) => key === 'k1' && { user: 'anna' } })
const full = { consume: () => Promise.reject({ msBeforeNext: 9000 }), reward: async () => undefined }
const limited = throttled({ limiter: full })(httpBasicAuth({ authenticate: () => false }))
const settings = authSettings({
  realm: 'pets',
  timeout: 200,
  trustedOrigins: ['https://app.example'],
  onError: [onError(Handled, () => ({ status: 418, headers: { 'X-Tea': 'pot' }, body: { detail: 'tea' } }))],
  events: { subject: ({ user }: { user: string }) => user },
})

interface Site extends UpgradeServer {
  readonly calls: () => number
}

/** An application whose one operation and whose upgrades have the same guard. */
const withSite = async <A>(
  auth: AuthenticatorLike,
  use: (site: Site) => Promise<A>,
  above: ReadonlyArray<Middleware> = [settings],
  options: GuardUpgradeOptions = {},
): Promise<A> => {
  let calls = 0
  const app = new Koa()
  app.silent = true
  for (const middleware of above) app.use(middleware)
  const router = new Router()
  router.all('/live', withAuth(auth), (ctx) => {
    calls++
    ctx.body = 'in'
  })
  app.use(router.routes())
  const guard = guardUpgrade(app, auth, options)
  const site = await listenWithUpgrades(app, () => guard)
  try {
    return await use({ ...site, calls: () => calls })
  } finally {
    await site.close()
  }
}

const authorization = (token: string) => [`Authorization: Bearer ${token}`]
const comparable = ({ status, headers, body }: RawAnswer) => ({
  status,
  headers: headers.filter(([name]) => name !== 'date').sort(),
  body,
})

describe('an upgrade', () => {
  it('is let in with the principal, its socket untouched, and what was sent ahead kept', async () => {
    await withSite(bearer, async ({ port, admitted, errors, calls }) => {
      const answer = await sendUpgrade(port, 'GET /live', authorization('good'), 'sent ahead')
      expect({ status: answer.status, body: answer.body }).toEqual({ status: 101, body: 'sent ahead' })
      expect(answer.headers).toEqual([
        ['connection', 'Upgrade'],
        ['upgrade', 'websocket'],
      ])
      expect({ admitted, errors, calls: calls() }).toEqual({ admitted: [{ user: 'anna' }], errors: [], calls: 0 })
    })
  })

  it.each([
    { what: 'absent', auth: bearer, lines: [], status: 401 },
    { what: 'malformed', auth: bearer, lines: authorization('?'), status: 401 },
    { what: 'sent twice', auth: bearer, lines: [...authorization('good'), ...authorization('good')], status: 401 },
    { what: 'invalid', auth: bearer, lines: authorization('bad'), status: 401 },
    { what: 'expired', auth: bearer, lines: authorization('old'), status: 401 },
    { what: 'insufficient', auth: bearer, lines: authorization('scope'), status: 403 },
    { what: 'unavailable', auth: bearer, lines: authorization('down'), status: 503 },
    { what: 'too slow', auth: bearer, lines: authorization('hangs'), status: 503 },
    { what: 'raised', auth: bearer, lines: authorization('bug'), status: 500 },
    { what: 'raised, with a handler', auth: bearer, lines: authorization('handled'), status: 418 },
    { what: 'throttled', auth: limited, lines: ['Authorization: Basic YTpi'], status: 429 },
    { what: 'several kinds', auth: anyOf([bearer, cookie]), lines: [], status: 401 },
    { what: 'forged', auth: cookie, lines: ['Cookie: id=k1', 'Origin: https://evil.example'], status: 403 },
    { what: 'forged, by its site', auth: cookie, lines: ['Cookie: id=k1', 'Sec-Fetch-Site: same-site'], status: 403 },
    { what: 'cut off', auth: bearer, lines: [...Array<string>(1000).fill('X: y')], status: 431 },
  ])('that is refused ($what) is answered as over HTTP', async ({ auth, lines, status }) => {
    await withSite(auth, async ({ port, admitted, seen, calls }) => {
      const answer = await sendUpgrade(port, 'GET /live', lines)
      expect(answer.status).toBe(status)
      // POST, because an upgrade is not safe
      expect(comparable(answer)).toEqual(comparable(await sendLines(port, 'POST /live', lines)))
      expect(valuesOf(answer, 'Connection')).toEqual(['close'])
      expect(valuesOf(answer, 'Set-Cookie')).toEqual([])
      expect({ admitted, calls: calls(), done: await seen[0]?.done }).toEqual({
        admitted: [],
        calls: 0,
        done: undefined,
      })
    })
  })
})
