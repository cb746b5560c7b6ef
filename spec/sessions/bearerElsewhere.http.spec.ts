/** Sign-ins by a token where no route of the site decides alone: upgrades, other frameworks, kinds of the root, nonces of DPoP. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import { optional, sessionAuth, sessionAuthIsStaff, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { guardRequest, guardUpgrade } from 'koa-with-auth/upgrades'
import { describe, expect, it, onTestFinished } from 'vitest'
import { linesOf, policyText } from '../../src/audit/policy.js'
import { dpopClient, ORIGIN } from '../support/servers/dpopClient.js'
import { valuesOf } from '../support/servers/rawSocket.js'
import { listenWithUpgrades, sendUpgrade } from '../support/servers/upgradeServer.js'
import { deviceSite, password } from '../support/sites/deviceSite.js'

const by = (token: string) => ({ Authorization: `Bearer ${token}` })
const elsewhere = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
type Fields = Readonly<Record<string, string>>
type Site = Awaited<ReturnType<typeof deviceSite>>
type Asked = readonly [status: number, challenges: string]

/** Guards of `guardUpgrade` and `guardRequest`, asked over sockets. */
const guards: ReadonlyArray<
  readonly [string, (site: Site, a: AuthenticatorLike) => Promise<(fields: Fields) => Promise<Asked>>]
> = [
  [
    'guardUpgrade',
    async ({ app }, a) => {
      const guard = guardUpgrade(app, a)
      const server = await listenWithUpgrades(app, () => guard)
      onTestFinished(server.close)
      return async (fields) => {
        const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}`)
        const answer = await sendUpgrade(server.port, 'GET /me', lines)
        return [answer.status === 101 ? 200 : Number(answer.status), valuesOf(answer, 'WWW-Authenticate').join(', ')]
      }
    },
  ],
  [
    'guardRequest',
    async ({ app }, a) => {
      const guard = guardRequest(app, a, { methods: 'all' })
      const server = createServer((request, response) => {
        void guard(request).then(({ refused, principal }) => {
          if (refused) refused.send(response)
          else response.end(JSON.stringify(principal))
        })
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      onTestFinished(() => void server.close())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/me`
      return async (headers) => {
        const answer = await fetch(url, { method: 'POST', headers })
        return [answer.status, answer.headers.get('WWW-Authenticate') ?? '']
      }
    },
  ],
]

describe.each(guards)('%s', (_name, guarded) => {
  it('takes the token or the cookie, and checks other sites for the cookie alone', async () => {
    const site = await deviceSite()
    const [token, ended] = [await site.signIn(), await site.signIn()]
    const Cookie = site.cookieIn(await site.ask('/cookie', {}, {}))
    const ask = await guarded(site, site.made.sessionAuth())
    await site.ask('/out', by(ended), {})
    const rows: ReadonlyArray<readonly [Fields, number]> = [
      [by(token), 200],
      [{ Cookie }, 200],
      [{ ...elsewhere, ...by(token) }, 200],
      [{ ...elsewhere, Cookie }, 403],
      [{ Cookie, ...by(`${token}x`) }, 401],
      [{ Cookie, ...by(ended) }, 401],
      [{ Cookie, Authorization: 'Basic YTpi' }, 401],
      [{}, 401],
    ]
    for (const [fields, status] of rows) expect([fields, (await ask(fields))[0]]).toEqual([fields, status])
    expect((await ask({}))[1]).toBe('Session realm="api", Bearer realm="api"')
    await site.logOutEverywhere('anna')
    expect((await ask(by(token)))[0]).toBe(401)
  })

  it('demands the proof of the key', async () => {
    const site = await deviceSite({ bearer: { dpop: { origin: ORIGIN, spent: oneTimeIds(memoryStore()) } } })
    const [client, thief] = [await dpopClient(), await dpopClient()]
    const proofAt = (path: string, token?: string, of = client, htm = 'POST') =>
      of.proof(token ?? '', { claims: { htu: ORIGIN + path, htm, ...(token === undefined && { ath: undefined }) } })
    const token = await site.signIn('/device/sign-in', { DPoP: await proofAt('/device/sign-in') })
    const ask = await guarded(site, site.made.sessionAuth())
    const htm = _name === 'guardUpgrade' ? 'GET' : 'POST'
    const Authorization = `DPoP ${token}`
    expect((await ask({ Authorization, DPoP: await proofAt('/me', token, client, htm) }))[0]).toBe(200)
    expect((await ask({ Authorization, DPoP: await proofAt('/me', token, thief, htm) }))[0]).toBe(401)
    expect((await ask({ Authorization }))[0]).toBe(401)
    expect((await ask(by(token)))[0]).toBe(401)
  })
})

describe('the kinds of the root', () => {
  const rootSite = async (options: Parameters<typeof deviceSite>[0] = {}) => {
    const router = new Router({ prefix: '/root' })
    const me = (ctx: { body: unknown }) => void (ctx.body = 'in')
    router.get('/me', withAuth(sessionAuth()), me)
    router.get('/staff', withAuth(sessionAuthIsStaff({ realm: 'back' })), me)
    router.get('/optional', withAuth(optional(sessionAuth())), me)
    const site = await deviceSite(options, undefined, undefined, (outer) => void outer.use(router.routes()))
    return { ...site, router }
  }

  it('take the token, and their challenge and the document name both ways', async () => {
    const { ask, signIn, router } = await rootSite()
    const token = await signIn()
    expect((await ask('/root/me', by(token))).status).toBe(200)
    const challengeOf = async (path: string, fields: Fields) =>
      (await ask(path, fields)).headers.get('WWW-Authenticate')
    expect(await challengeOf('/root/me', {})).toBe('Session realm="api", Bearer realm="api"')
    expect(await challengeOf('/root/staff', {})).toBe('Session realm="back", Bearer realm="back"')
    const invalid = 'Bearer realm="api", error="invalid_token"'
    for (const path of ['/root/me', '/root/optional']) {
      const { status, headers } = await ask(path, by('kwa_x'))
      expect([path, status, headers.get('WWW-Authenticate')]).toEqual([path, 401, expect.stringContaining(invalid)])
    }
    const { paths, components } = openApi(router, { title: 'Shop', version: '1' })
    expect(paths?.['/root/me']?.get?.security).toEqual([{ cookie_session: [] }, { bearer_session: [] }])
    expect(components?.securitySchemes?.['bearer_session']).toMatchObject({ type: 'http', scheme: 'bearer' })
    expect(audit(router).operations[0]?.protection).toBe('session in cookie session or bearer session')
    expect(policyText(linesOf(audit(router)))).toContain(
      'GET /root/me; who=[session in cookie session or bearer session]',
    )
  })
})

describe('a nonce of DPoP', () => {
  const nonce = { keys: ['n'.repeat(32)] as const }
  const bound = async () => {
    const site = await deviceSite({ bearer: { dpop: { origin: ORIGIN, spent: oneTimeIds(memoryStore()), nonce } } })
    const client = await dpopClient()
    const proofAt = async (path: string, given: string | null = null) => ({
      DPoP: await client.proof('', {
        claims: { htu: ORIGIN + path, htm: 'POST', ath: undefined, ...(given !== null && { nonce: given }) },
      }),
    })
    return { ...site, proofAt }
  }

  it('comes with the refusal of a sign-in, and with its answer, and the second try is good', async () => {
    const { ask, proofAt } = await bound()
    const first = await ask('/device/sign-in', await proofAt('/device/sign-in'), password)
    expect([first.status, first.headers.get('WWW-Authenticate')]).toEqual([
      401,
      expect.stringContaining('use_dpop_nonce'),
    ])
    const given = first.headers.get('DPoP-Nonce')
    expect(given).toMatch(/./)
    const second = await ask('/device/sign-in', await proofAt('/device/sign-in', given), password)
    expect([second.status, second.body.token_type, second.headers.get('DPoP-Nonce')]).toEqual([200, 'DPoP', given])
  })

  it('that is missing uses no code up', async () => {
    const { ask, proofAt } = await bound()
    const { body } = await ask('/device/second', {}, {})
    const answer = { handle: body.handle, code: '123456' }
    const first = await ask('/device/second/code', await proofAt('/device/second/code'), answer)
    expect(first.status).toBe(401)
    const given = first.headers.get('DPoP-Nonce')
    expect((await ask('/device/second/code', await proofAt('/device/second/code', given), answer)).status).toBe(200)
  })
})
