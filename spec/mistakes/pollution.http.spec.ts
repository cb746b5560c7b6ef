/**
 * A merge elsewhere in the process that writes to `Object.prototype` sets no option of this package: an option that is
 * left out has its default. Each case behaves the same with and without the polluted prototype.
 */
import { createHmac } from 'node:crypto'
import Router from '@koa/router'
import Koa, { type Middleware } from 'koa'
import {
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  authSettings,
  formAuth,
  httpBasicAuth,
  httpBearer,
  perFailure,
  sessionAuthSuperUser,
  throttled,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, protectedResource } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { sessions } from 'koa-with-auth/sessions'
import { mockRequest, withBearer } from 'koa-with-auth/testing'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { describe, expect, it } from 'vitest'
import { polluted } from '../support/runs/pollute.js'
import { rawRequest } from '../support/sites/guardedApp.js'
import { sendRaw } from '../support/servers/rawSocket.js'
import { listen } from '../support/servers/server.js'
import { listenWithUpgrades, sendUpgrade } from '../support/servers/upgradeServer.js'

const cookie = apiKeyCookie({ paramName: 'id', authenticate: (_request, key) => key === 'k1' && { user: 'anna' } })
const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const forged = ['Cookie: id=k1', 'Origin: https://evil.example']

// The response to one request to `/x`, with settings of an application or of a router
const answered = async (
  above: ReadonlyArray<Middleware>,
  auth: AuthenticatorLike,
  lines: ReadonlyArray<string>,
): Promise<unknown> => {
  const app = new Koa({ keys: ['k'.repeat(40)] })
  app.silent = true
  for (const one of above) app.use(one)
  const router = new Router().all('/x', withAuth(auth), (ctx) => {
    ctx.body = { auth: ctx.request.auth, state: ctx.state }
  })
  const { port, close } = await listen(app.use(router.routes()))
  const { status, headers, body } = await sendRaw(port, rawRequest(port, 'POST /x', lines))
  await close()
  return { status, headers: headers.filter(([name]) => name !== 'date'), body }
}

const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const secret = Buffer.alloc(32, 7)
const now = Math.floor(Date.now() / 1000)
const signed = (claims: object): string => {
  const input = `${base64url({ alg: 'HS256' })}.${base64url({ iss: 'us', aud: 'api', exp: now + 600, ...claims })}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}
const verdict = (auth: AuthenticatorLike & { evaluate?: unknown }, token: string): unknown =>
  // Safe: an authenticator has `evaluate`
  (auth as ReturnType<typeof httpBearer>).evaluate(mockRequest(withBearer(token)))

interface Case {
  readonly of: string
  readonly fields: object
  /** Makes a value while the prototype is polluted. */
  readonly make: () => unknown
  /** What the value does afterwards. */
  readonly probe: (made: never) => unknown
}

const of = <T>(what: string, fields: object, make: () => T, probe: (made: T) => unknown = () => 'made'): Case => ({
  of: what,
  fields,
  make,
  probe,
})

const jwt = () => httpJwt({ issuer: { issuer: 'us', secret }, audience: 'api' })
const token = (claims: object) => (made: AuthenticatorLike) => verdict(made, signed(claims))
const settled =
  (lines: ReadonlyArray<string>, auth: AuthenticatorLike = cookie) =>
  (made: Middleware) =>
    answered([made], auth, lines)
const anyone = () => ({ user: 'root' })
const openRouter = () => new Router().get('/open', withAuth(null), () => {})

const cases: ReadonlyArray<Case> = [
  of('authSettings', { csrf: false }, () => authSettings({}), settled(forged)),
  of('authSettings', { trustedOrigins: ['https://evil.example'] }, () => authSettings({}), settled(forged)),
  of('authSettings', { errorMapper: () => ({ status: 200, body: 'in' }) }, () => authSettings({}), settled([])),
  of('authSettings', { explain: true }, () => authSettings({}), settled([])),
  of('authSettings', { state: 'user' }, () => authSettings({}), settled(['Cookie: id=k1'])),
  of('authSettings', { realm: 'evil', timeout: 1, events: 7, onError: [7] }, () => authSettings({}), settled([])),
  of(
    'apiApp',
    { csrf: false, realm: 'evil' },
    () => {
      const api = apiApp({ auth: cookie, docs: false })
      api.post('/x', (ctx) => {
        ctx.body = 'in'
      })
      return api
    },
    async (api) => {
      const { port, close } = await listen(new Koa().use(api.routes()))
      const answers = [
        await sendRaw(port, rawRequest(port, 'POST /x', forged)),
        await sendRaw(port, rawRequest(port, 'POST /x')),
      ]
      await close()
      return answers.map(({ status }) => status)
    },
  ),
  of(
    'apiApp without auth',
    { auth: bearer, then: [7] },
    () => apiApp({ docs: false }),
    (api) => api.stack.length,
  ),
  of(
    'withAuth',
    { then: [7] },
    () => withAuth(bearer, {}),
    (guard) => (guard as { then?: unknown }).then,
  ),
  of(
    'seal',
    { public: ['GET /open'] },
    () => {
      try {
        return seal(openRouter(), {})
      } catch (error) {
        return String(error)
      }
    },
    (made) => typeof made,
  ),
  of(
    'perFailure',
    { absent: () => ({ status: 200, body: 'in' }) },
    () => perFailure({}),
    (mapper) => settled([])(authSettings({ errorMapper: mapper })),
  ),
  of(
    'httpBearer',
    { maxLength: 1, schemes: ['Token'], realm: 'x' },
    () => httpBearer({ authenticate: (_request, sent) => sent === 'good' && { user: 'anna' } }),
    (made) => verdict(made, 'good'),
  ),
  of(
    'httpBasicAuth',
    { maxLength: 1 },
    () => httpBasicAuth({ authenticate: (_request, username) => ({ username }) }),
    (made) => answered([], made, ['Authorization: Basic YTpi']),
  ),
  of(
    'apiKeyHeader',
    { paramName: 'X-Evil' },
    () => apiKeyHeader({ authenticate: (_request, key) => ({ key }) }),
    (made) => answered([], made, ['X-Evil: k']),
  ),
  of(
    'formAuth',
    {
      around: () => () => ({ _tag: 'Right', right: anyone() }),
      notes: { wrappers: ['evil'] },
      scheme: { type: 'http', scheme: 'evil' },
      demands: 'evil',
      maxLength: 1,
    },
    () => formAuth({ fields: ['name'], authenticate: (_request, { name }) => ({ name }) }),
    (made) => [
      made.evaluate(Object.assign(mockRequest(), { body: { name: 'anna' } })),
      ...['wrappers', 'scheme', 'demands'].map((name): unknown => Reflect.get(made.description, name)),
    ],
  ),
  of(
    'sessionAuthSuperUser',
    { refuse: 'insufficient', loadUser: () => ({ username: 'root', isSuperuser: true }) },
    () => sessionAuthSuperUser(),
    (made) => {
      const request = mockRequest()
      Object.assign(request.ctx, { session: { user: { username: 'anna' } } })
      return made.evaluate(request)
    },
  ),
  of(
    'throttled',
    { onStoreError: 'unthrottled', keys: () => ({}) },
    () => {
      const limiter = { consume: () => Promise.reject(new Error('down')), reward: () => Promise.resolve() }
      return throttled({ limiter })(httpBasicAuth({ authenticate: (_request, username) => ({ username }) }))
    },
    (made) => answered([], made, ['Authorization: Basic YTpi']),
  ),
  of('httpJwt', { clockTolerance: 1e9 }, jwt, token({ exp: now - 60 })),
  of('httpJwt', { authenticate: anyone }, jwt, token({ sub: 'anna' })),
  of('httpJwt', { claims: { decode: () => ({ _tag: 'Right', right: anyone() }) } }, jwt, token({ sub: 'anna' })),
  of('httpJwt', { audience: 'elsewhere', jwks: { keys: [] } }, jwt, token({ aud: 'elsewhere' })),
  of('httpJwt', { algorithms: ['HS512'] }, jwt, token({})),
  of('httpJwt', { maxLength: 10, profile: 'rfc9068', maxTokenAge: 1000, authorizedParties: 'x' }, jwt, token({})),
  of('httpJwt of an issuer by its name', { audience: [7], algorithms: ['none'] }, () =>
    httpJwt({ issuer: 'https://login.example', audience: 'api' }),
  ),
  of('httpIntrospection', { issuer: 'https://evil.example', cache: false }, () =>
    httpIntrospection({ endpoint: 'https://login.example/', client: { id: 'a', secret: 'b' }, audience: 'api' }),
  ),
  of(
    'protectedResource',
    { origins: ['https://evil.example'] },
    () => protectedResource({ resource: 'https://api.example', authorizationServers: ['https://login.example'] }),
    (made) => made.isAllowedOrigin?.(mockRequest({ fields: [['Origin', 'https://evil.example']] })),
  ),
  of(
    'apiKeys',
    { adopted: /./, pepper: secret, touch: false },
    () => apiKeys({ prefix: 'acme', store: memoryStore() }),
    (keys) => keys.authenticate(mockRequest(), 'anything'),
  ),
  of(
    'sessions',
    { sameSite: 'none', https: false, cookieName: 'evil', identify: anyone, store: 7, maxLength: 1 },
    () => {
      const app = new Koa({ keys: ['k'.repeat(40)] })
      const { logIn } = sessions(app, { loadUser: (username) => ({ username }) })
      const router = new Router().post('/', withAuth(null), async (ctx) => {
        await logIn(ctx, { username: 'anna' })
        ctx.status = 204
      })
      return app.use(router.routes())
    },
    async (app) => {
      const { port, close } = await listen(app)
      const { status, headers } = await sendRaw(port, rawRequest(port, 'POST /'))
      await close()
      const cookies = headers.filter(([name]) => name === 'set-cookie')
      return {
        status,
        cookies: cookies
          .map(([, value]) => value.replace(/=[^;]*;|expires=[^;]*;/, '=;'))
          .map((one) => one.replace(/expires=[^;]*;/, '')),
      }
    },
  ),
  of(
    'guardUpgrade',
    { csrf: false, trustedOrigins: ['https://evil.example'], bearerProtocol: 'bearer.' },
    () => {
      const app = new Koa()
      return [app, guardUpgrade(app, cookie), guardUpgrade(app, bearer, { realm: 'x' })] as const
    },
    async ([app, first, second]) => {
      const { port, close } = await listenWithUpgrades(app, ({ url }) => (url === '/1' ? first : second))
      const answers = [
        await sendUpgrade(port, 'GET /1', forged),
        await sendUpgrade(port, 'GET /2', ['Sec-WebSocket-Protocol: bearer.good']),
      ]
      await close()
      return answers.map(({ status }) => status)
    },
  ),
]

describe('an option that every object inherits', () => {
  it.each(cases.map((one) => ({ ...one, names: Object.keys(one.fields).join() })))(
    'sets no option of $of: $names',
    async ({ fields, make, probe }) => {
      const expected = await probe(make() as never)
      const made = polluted(fields, make)
      expect(await probe(made as never)).toEqual(expected)
    },
  )

  it('sets no option while a request is answered', async () => {
    const fields = {
      csrf: false,
      headers: { 'X-Evil': '1' },
      within: {},
      events: { subject: () => 'evil' },
      explain: true,
    }
    const expected = await answered([], cookie, forged)
    const app = new Koa()
    app.use((_ctx, next) => polluted(fields, next))
    const router = new Router().post('/x', withAuth(cookie), () => {})
    const { port, close } = await listen(app.use(router.routes()))
    const { status, headers, body } = await sendRaw(port, rawRequest(port, 'POST /x', forged))
    await close()
    expect({ status, headers: headers.filter(([name]) => name !== 'date'), body }).toEqual(expected)
  })

  it('and one of a class or of another object is a TypeError, because it could be one that all inherit', () => {
    class Own {
      get csrf(): boolean {
        return false
      }
    }
    for (const given of [new Own(), Object.create({ csrf: false }) as Own]) {
      expect(() => authSettings(given)).toThrow('authSettings takes an object of options, not an instance of a class')
    }
  })
})
