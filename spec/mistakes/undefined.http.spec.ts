/**
 * An option that is `undefined` is the same as one that is left out, in every function with options. The names come
 * from the error for an unknown option, so none is forgotten.
 */
import { createHmac } from 'node:crypto'
import Router from '@koa/router'
import Koa from 'koa'
import {
  apiApp,
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  authSettings,
  AuthError,
  Challenge,
  fromHeader,
  httpBasicAuth,
  httpBearer,
  operation,
  perFailure,
  requireScopes,
  sessionAuth,
  throttled,
  UnavailableError,
  withAuth,
  type Authenticator,
} from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { httpIntrospection, httpJwt, protectedResource } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore, redisStore } from 'koa-with-auth/stores'
import { cachedOpenApi, docs, openApi } from 'koa-with-auth/openapi'
import { sessions } from 'koa-with-auth/sessions'
import { begin, emailSignIn, passwordReset, passwordSignIn } from 'koa-with-auth/sign-in'
import { exchange, oauth2, oidc } from 'koa-with-auth/sign-in/oidc'
import { expectGuarded, mergeRequests, mockRequest, withBasic, withBearer, withCookie, withHeader, withPrincipal, withQuery } from 'koa-with-auth/testing' // prettier-ignore
import { laws } from 'koa-with-auth/testing/laws'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { expect, it, vi } from 'vitest'
import { settingsOf } from '../../src/core/Exchange.js'
import { ask, listen } from '../support/servers/server.js'

type Options = Readonly<Record<string, unknown>>

interface Row {
  /** The required options, so that the others can be left out. */
  readonly base: Options
  /** Calls the function, and shows everything that its options can change. */
  readonly run: (options: never) => unknown
}

const credentials = mergeRequests(withBearer('good'), withCookie('key', 'good'), withHeader('key', 'good'))
const requests = [{}, credentials, withBasic('anna', 'good'), withQuery('key', 'good')]

// The text of the value, and what it does with each request
const shown = async (of: Authenticator<unknown>) => {
  const results = []
  for (const spec of requests) results.push(await of.evaluate(mockRequest(spec)))
  return [JSON.stringify(of.description), results]
}
const shownKind =
  <O>(make: (options: O) => Authenticator<unknown>) =>
  (options: O) =>
    shown(make(options))

const authenticate = (_request: unknown, credential: unknown) => ({ credential })
const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const handle = (ctx: Koa.Context) => {
  ctx.body = 'handled'
}
const plain = () => withAuth(bearer)(new Router()).get('/x', handle)
const titled = { title: 'T', version: '1' }

// All responses of an application that its options can change
const served = async <S, C>(app: Koa<S, C>, paths: ReadonlyArray<string>) => {
  const { url } = await listen(app.on('error', () => {}))
  const answers = []
  for (const path of paths) {
    for (const headers of [{}, { Authorization: 'Bearer good' }]) {
      const { status, challenge, text } = await ask(url + path, { headers })
      answers.push([path, status, challenge, text])
    }
  }
  return answers
}

const sessionsOf = async (options: never) => {
  const app = new Koa()
  app.keys = ['a signing key of at least 32 bytes, for tests']
  const { logIn } = sessions(app, options)
  const router = new Router().get('/in', withAuth(null), (ctx) => logIn(ctx, { username: 'anna' }))
  app.use(router.routes())
  const { url } = await listen(app)
  // A cookie has its expiry in seconds
  vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
  try {
    const { status, headers } = await ask(`${url}/in`)
    // Each session has another id
    return [status, headers.getSetCookie().map((cookie) => cookie.replace(/=[^;]*/, ''))]
  } finally {
    vi.useRealTimers()
  }
}

const loggedIn = async (options: never) => {
  const app = new Koa()
  app.keys = ['a signing key of at least 32 bytes, for tests']
  const { logIn } = sessions(app, { loadUser: (username) => ({ username }) })
  const mistakes: unknown[] = []
  const router = new Router().get('/in', withAuth(null), async (ctx) => {
    await logIn(ctx, { username: 'anna' }, options).catch((error: unknown) => mistakes.push(error))
    ctx.body = 'signed in'
  })
  const answers = await served(app.use(router.routes()), ['/in'])
  if (mistakes.length > 0) throw mistakes[0]
  return answers
}

const commandsOf = async (store: (options: never) => object, options: Options, use: string, ...args: unknown[]) => {
  const sent: unknown[] = []
  const command = (line: unknown) => (sent.push(line), Promise.resolve(null))
  const made = store({ ...options, ...(options['command'] !== undefined && { command }) } as never)
  await Promise.resolve(Reflect.apply(Reflect.get(made, use) as () => unknown, made, args)).catch(() => {})
  return sent
}

const jwt = (() => {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const claims = { iss: 'https://login.example', aud: 'api', sub: 'anna', exp: Math.ceil(Date.now() / 1000) + 600 }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', 'a secret of thirty-two bytes, ok!').update(signed).digest('base64url')}`
})()
const issuer = { issuer: 'https://login.example', secret: 'a secret of thirty-two bytes, ok!' }
const shownJwt = async (options: never) => {
  const made = httpJwt(options)
  return [...(await shown(made)), await made.evaluate(mockRequest(withBearer(jwt)))]
}

const issued = async (record: never) => {
  const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
  await keys.issue(record)
  return (await keys.list('anna')).map(({ name, scopes, expiresAt }) => ({ name, scopes, expiresAt }))
}
const adopted = async (record: never) => {
  const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
  await keys.adopt('ab'.repeat(32), record)
  return (await keys.list('anna')).map(({ name, scopes, expiresAt, last4 }) => ({ name, scopes, expiresAt, last4 }))
}

const limiter = { consume: () => Promise.resolve({}), reward: () => Promise.resolve({}) }
const ofNothing: Options = {}

const rows: Readonly<Record<string, Row>> = {
  httpBearer: { base: { authenticate }, run: shownKind(httpBearer) },
  httpBasicAuth: { base: { authenticate }, run: shownKind(httpBasicAuth) },
  apiKeyHeader: { base: { authenticate }, run: shownKind(apiKeyHeader) },
  apiKeyQuery: { base: { authenticate }, run: shownKind(apiKeyQuery) },
  apiKeyCookie: { base: { authenticate }, run: shownKind(apiKeyCookie) },
  sessionAuth: { base: {}, run: (options: never) => JSON.stringify(sessionAuth(options).description) },
  authenticator: {
    base: { challenge: Challenge.make('Own'), ambient: false, extract: fromHeader('key'), authenticate },
    run: shownKind(authenticator),
  },
  throttled: { base: { limiter }, run: (options: never) => shown(throttled(options)(bearer)) },
  'limiters of throttled': {
    base: { accountAndAddress: limiter },
    run: (limiters: never) => shown(throttled({ limiter: limiters })(bearer)),
  },
  requireScopes: { base: { granted: () => 'read' }, run: (o: never) => shown(requireScopes(['read'], o)(bearer)) },
  perFailure: {
    base: ofNothing,
    run: (mappers: never) =>
      [AuthError.absent, AuthError.forged, AuthError.unavailable(1), AuthError.throttled(1)].map((error) =>
        perFailure(mappers)(error, mockRequest()),
      ),
  },
  authSettings: {
    base: ofNothing,
    run: async (options: never) => {
      const { ctx, ...request } = mockRequest()
      await authSettings(options)(ctx, () => Promise.resolve())
      return [Object.keys(request), settingsOf(ctx.request)]
    },
  },
  'events of authSettings': {
    base: { subject: () => 'anna' },
    run: (events: never) => typeof authSettings({ events }),
  },
  apiApp: {
    base: ofNothing,
    run: (options: never) => {
      const api = apiApp(options)
      api.get('/x', withAuth(bearer), handle)
      api.get('/thrown', () => Promise.reject(new Error('thrown')))
      return served(new Koa().use(api.routes()), ['/x', '/docs', '/openapi.json', '/thrown'])
    },
  },
  'docs of apiApp': {
    base: ofNothing,
    run: (page: never) => served(new Koa().use(apiApp({ docs: page }).routes()), ['/docs', '/openapi.json']),
  },
  openApi: { base: titled, run: (options: never) => JSON.stringify(openApi(plain(), options)) },
  cachedOpenApi: { base: titled, run: (options: never) => cachedOpenApi(plain(), options)(mockRequest()) },
  docs: {
    base: titled,
    run: (options: never) => served(new Koa().use(docs(plain(), options)), ['/docs', '/openapi.json']),
  },
  operation: {
    base: ofNothing,
    run: (options: never) =>
      JSON.stringify(openApi(new Router().get('/x', operation(options), withAuth(bearer), handle), titled)),
  },
  seal: { base: ofNothing, run: (options: never) => typeof seal(plain(), options) },
  sessions: { base: { loadUser: (username: string) => ({ username }) }, run: sessionsOf },
  logIn: { base: ofNothing, run: loggedIn },
  redisStore: {
    base: { command: () => null },
    run: (options: never) => commandsOf(redisStore, options, 'get', ['name']),
  },
  httpJwt: { base: { issuer, audience: 'api' }, run: shownJwt },
  'the issuer of httpJwt': { base: issuer, run: (of: never) => shownJwt({ issuer: of, audience: 'api' } as never) },
  'keys of httpJwt': { base: ofNothing, run: (keys: never) => shownJwt({ issuer, audience: 'api', keys } as never) },
  'verified of httpJwt': {
    base: ofNothing,
    run: (verified: never) => shownJwt({ issuer, audience: 'api', verified } as never),
  },
  httpIntrospection: {
    base: { endpoint: 'https://login.example/ask', client: { id: 'api', secret: 's' }, audience: 'api' },
    run: (options: never) => JSON.stringify(httpIntrospection(options).description),
  },
  protectedResource: {
    base: { resource: 'https://api.example', authorizationServers: ['https://login.example'] },
    run: async (options: never) => {
      const { metadata, isAllowedOrigin, adds, ...rest } = protectedResource(options)
      const path = '/.well-known/oauth-protected-resource'
      return [rest, typeof isAllowedOrigin, typeof adds, await served(new Koa().use(metadata), [path])]
    },
  },
  apiKeys: {
    base: { prefix: 'acme', store: memoryStore() },
    run: async (options: never) => {
      const keys = apiKeys(options)
      const { key, id } = await keys.issue({ owner: 'anna' })
      const found = await keys.authenticate(mockRequest(), key)
      return [
        key.replace(/_.*/, ''),
        JSON.stringify(found)
          .replaceAll(id, 'id')
          .replace(/"\w+At":"[^"]*"|"last4":"\w+"/g, ''),
      ]
    },
  },
  'keys.issue': { base: { owner: 'anna' }, run: issued },
  'keys.adopt': { base: { owner: 'anna' }, run: adopted },
  withPrincipal: { base: ofNothing, run: (options: never) => typeof withPrincipal('anna', options)(plain()) },
  expectGuarded: {
    base: ofNothing,
    run: (options: never) => {
      const router = plain()
      return expectGuarded(new Koa().use(router.routes()), router, options)
    },
  },
  checkAuthenticator: {
    base: { valid: ['good'] },
    run: async (options: never) => [
      await laws.authenticator(bearer, { runs: 3, ...(options as Options) } as never).check(),
    ],
  },
  checkErrorMapper: {
    base: ofNothing,
    run: async (options: never) => [await laws.errorMapper(perFailure({}), options).check()],
  },
  guardUpgrade: { base: ofNothing, run: (options: never) => typeof guardUpgrade(new Koa(), bearer, options) },
}

const called = async (row: Row, options: Options): Promise<unknown> => row.run(options as never)

const mistake = (row: Row, options: Options): Promise<string> =>
  called(row, options).then(
    () => 'nothing was refused',
    (error: unknown) => (error instanceof TypeError ? error.message : String(error)),
  )

// Some functions have options that others check. `auth` is the exception.
const namesOf = async (row: Row): Promise<ReadonlyArray<string>> => {
  const [, names = ''] = / there are (.*)$/.exec(await mistake(row, { ...row.base, nonsense: 1 })) ?? []
  return names.split(', ').filter((name) => name !== '' && name !== 'auth')
}

it.each(Object.entries(rows))(
  '%s: an option that is undefined is the same as one that is left out',
  async (_name, row) => {
    const names = await namesOf(row)
    expect(names).not.toStrictEqual([])
    expect(names).toEqual(expect.arrayContaining(Object.keys(row.base)))
    const without = await called(row, row.base)
    for (const name of names.filter((one) => !(one in row.base))) {
      expect(await called(row, { ...row.base, [name]: undefined }), name).toStrictEqual(without)
    }
    for (const name of names.filter((one) => one in row.base)) {
      const { [name]: _, ...rest } = row.base
      const message = await mistake(row, rest)
      expect(message, name).not.toBe('nothing was refused')
      expect(await mistake(row, { ...row.base, [name]: undefined }), name).toBe(message)
    }
  },
)

it('an UnavailableError without retryAfter equals one whose retryAfter is undefined', () => {
  const [one, other] = [new UnavailableError('x', {}), new UnavailableError('x', { retryAfter: undefined })]
  expect(Object.keys(other)).toStrictEqual(Object.keys(one))
})

it('an undefined field of a request that is merged replaces nothing', () => {
  const merged = mergeRequests({ method: 'POST', url: '/a' }, { method: undefined, url: undefined, fields: undefined })
  expect(merged).toStrictEqual({ method: 'POST', url: '/a' })
})

it('an undefined field of an operation is not in the document', () => {
  const router = new Router()
  router.get('/', operation({ summary: undefined, tags: ['a'], requestBody: undefined }), () => {})
  const described = openApi(router, { ...titled, description: undefined, tags: undefined })
  expect(Object.keys(described.paths['/']?.get ?? {}).sort()).toStrictEqual(['responses', 'security', 'tags'])
  expect(Object.keys(described)).not.toContain('tags')
  expect(Object.keys(described.info).sort()).toStrictEqual(['title', 'version'])
})

it.each([
  ['apiApp', () => apiApp({ auth: undefined } as never)],
  ['docs', () => docs(plain(), { ...titled, auth: undefined } as never)],
  ['docs of apiApp', () => apiApp({ docs: { auth: undefined } } as never)],
])('%s: `auth: undefined` is a TypeError, never public', (_name, make) => {
  expect(make).toThrow(TypeError)
  expect(make).toThrow(/undefined(?: \})?\): is it imported before it is defined/)
})

// --- options of a sign-in without which less is checked

const client = { id: 'shop', secret: 's' }
const ofOidc = { issuer: 'https://login.example', client, callback: '/callback' }
const plainProvider = {
  ...{
    name: 'plain',
    authorize: 'https://plain.example/a',
    token: 'https://plain.example/t',
    client,
    callback: '/callback',
  },
  subject: () => 1,
}
const ofExchange = { tokenEndpoint: 'https://login.example/token', client, audience: 'billing' }
const ofReset = { path: '/reset', accountOf: () => undefined, send: () => {} }
const mail = emailSignIn({ path: '/link', send: () => {} })

const demands: ReadonlyArray<readonly [string, ReadonlyArray<string>, (options: never) => unknown, Options]> = [
  ['oidc', ['maxAge', 'acrValues', 'idTokenAlgorithm'], oidc, ofOidc],
  ['oauth2', ['issuer'], oauth2, plainProvider],
  ['exchange', ['scope'], exchange, ofExchange],
  ['passwordSignIn', ['factors'], passwordSignIn, { accountOf: () => undefined }],
  ['passwordReset', ['isGood'], passwordReset, ofReset],
  ['begin', ['ask'], (options: never) => begin(mail, options), {}],
]

it.each(demands)('%s: an undefined option that would drop a check is a TypeError: %s', (_caller, names, make, base) => {
  expect(make(base as never)).toBeDefined()
  for (const name of names) {
    const call = () => make({ ...base, [name]: undefined } as never)
    expect(call).toThrow(new RegExp(`${name}.* is undefined; is a variable not set`))
    expect(call).toThrow(TypeError)
  }
})

it.each<[string, (of: never) => unknown]>([
  ['oidc', (of) => oidc({ ...ofOidc, client: of })],
  ['oauth2', (of) => oauth2({ ...plainProvider, client: of })],
  ['exchange', (of) => exchange({ ...ofExchange, client: of })],
])('%s: a client whose secret or key is undefined is a TypeError, never public', (caller, make) => {
  for (const name of ['secret', 'key']) {
    const call = () => make({ id: 'shop', [name]: undefined } as never)
    expect(call).toThrow(TypeError)
    expect(call).toThrow(`${caller}({ client }): ${name} is undefined, so anybody could be this client`)
    expect(make({ id: 'shop', secret: 's', key: undefined } as never)).toBeDefined()
    expect(make({ id: 'shop', [name]: undefined, authentication: 'none' } as never)).toBeDefined()
  }
  expect(make({ id: 'shop' } as never)).toBeDefined()
})
