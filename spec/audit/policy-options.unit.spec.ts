/**
 * Every option of every kind and condition: a change of it changes a line of the policy file, or it is named here with the reason why it
 * lets in no further caller. A new option is in neither table, so this spec fails until it is.
 */
import Router from '@koa/router'
import Koa from 'koa'
import * as t from 'io-ts'
import * as root from 'koa-with-auth'
import { fromHeader, httpBearer, Challenge } from 'koa-with-auth'
import * as fp from 'koa-with-auth/fp'
import * as jwt from 'koa-with-auth/jwt'
import { sessions } from 'koa-with-auth/sessions'
import * as signatures from 'koa-with-auth/signatures'
import * as webhooks from 'koa-with-auth/webhooks'
import { generateKeyPairSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { linesFor, textsFor } from '../support/models/audits.js'
import { guardOf } from '../support/models/levels.js'

const entries: Readonly<Record<string, object>> = { root, fp, jwt, signatures, webhooks }

// What a function takes, as it says itself when it gets an option that it does not know
const optionsOf = (make: unknown): ReadonlyArray<string> => {
  if (typeof make !== 'function') return []
  for (const args of [[{ nope: 1 }], [() => true, { nope: 1 }], [['a'], { nope: 1 }], ['x', { nope: 1 }]]) {
    try {
      // a reader of requests rejects what is none
      Promise.resolve(Reflect.apply(make, undefined, args)).catch(() => undefined)
    } catch (error) {
      const [, names] = /no option "nope"; there are (.*)/.exec(String(error)) ?? []
      if (names !== undefined) return names.split(', ')
    }
  }
  return []
}

// -------------------------------------------------------------------------------------
// the tables
// -------------------------------------------------------------------------------------

/** Two values that differ in who gets in, or the reason why no two do. */
type Row = readonly [was: object, is: object] | string

const HOOK = 'a hook: the file cannot say what it decides; two kinds of the same words are refused'
const TEXTS = 'only what documents and challenges say'
const LENGTH = 'longer credentials never reach the hook'
const COST = 'how long and how much is kept or awaited; the answer is the same, or 503'

const hook = () => ({ id: 1 })
const schemeName: Row = [{ schemeName: 'one' }, { schemeName: 'other' }]
const shown = { realm: TEXTS, description: TEXTS, maxLength: LENGTH, authenticate: HOOK, schemeName } as const
const paramName: Row = [{ paramName: 'One' }, { paramName: 'Other' }]
const limiter = (points: number) => ({ points, duration: 900, consume: async () => {}, reward: async () => {} })
const spent = { use: async () => true, release: async () => {} }
const { publicKey } = generateKeyPairSync('ed25519')
const issuer = { issuer: 'https://login.example', publicKey }
const dpop = (more: object) => ({ bound: { dpop: { spent, origin: 'https://api.example', ...more } } })
const server = { resource: 'https://api.example', authorizationServers: 'https://login.example' }
const resource = (more: object) => ({ protectedResource: jwt.protectedResource({ ...server, ...more }) })
const tls = (name: string) => ({ scheme: { type: 'mutualTLS' }, schemeName: name })
const late = (tolerance: number) => ({ scheme: webhooks.slack, tolerance })
const client = { id: 'api', secret: 's' }
const own = { challenge: Challenge.make('Own'), ambient: false, extract: fromHeader('X-Own'), authenticate: hook }
const bearer = httpBearer({ authenticate: hook })
const fingerprints = ['a', 'b'].map((one) => one.repeat(64))

interface Kind {
  /** The line of an operation with these options. */
  readonly guard: (options: object) => unknown
  readonly options: Readonly<Record<string, Row>>
}

const make = (f: unknown, given: object) => (options: object) =>
  Reflect.apply(f as () => unknown, undefined, [{ ...given, ...options }])
const keyed = (f: unknown): Kind => ({ guard: make(f, { authenticate: hook }), options: { ...shown, paramName } })
const condition = (f: unknown, given: object) => (options: object) =>
  (make(f, given)(options) as (of: unknown) => unknown)(bearer)

const tokenOptions = {
  ...shown,
  audience: [{ audience: 'one' }, { audience: 'other' }],
  authorizedParties: [{}, { authorizedParties: ['web'] }],
  from: [{}, { from: fromHeader('X-Token') }],
  ambient: [{ from: fromHeader('X-Token') }, { from: fromHeader('X-Token'), ambient: true }],
  // the body of an inline hook, which has the name of the option
  revoked: [{ revoked: () => false }, { revoked: () => 0 }],
  claims: [{ claims: t.type({ sub: t.string }, 'One') }, { claims: t.type({ sub: t.string }, 'Other') }],
  protectedResource: [resource({}), resource({ origins: ['https://app.example'] })],
} as const satisfies Readonly<Record<string, Row>>

const sessionOptions = {
  ...shown,
  cookieName: [{ cookieName: 'one' }, { cookieName: 'other' }],
  loadUser: HOOK,
  proof: [{ proof: { maxAge: 60_000 } }, { proof: { maxAge: 120_000 } }],
  refuse: [{}, { refuse: 'insufficient' }],
} as const satisfies Readonly<Record<string, Row>>

const signatureOptions = {
  realm: TEXTS,
  description: TEXTS,
  schemeName,
  origin: [{}, { origin: 'https://other.example' }],
  maxAge: [{}, { maxAge: 90_000 }],
  maxLength: [{}, { maxLength: 1000 }],
  spent: [{}, { spent }],
} as const satisfies Readonly<Record<string, Row>>

const kinds: Readonly<Record<string, Kind>> = {
  'root.authenticator': {
    guard: make(root.authenticator, own),
    options: {
      ...shown,
      schemeName: [tls('one'), tls('other')],
      scheme: [{ scheme: { type: 'http', scheme: 'one' } }, { scheme: { type: 'http', scheme: 'other' } }],
      schemeFor: [{}, { schemeFor: () => ({ type: 'http', scheme: 'one' }) }],
      demands: [{}, { demands: 'a superuser' }],
      ambient: [{}, { ambient: true }],
      challenge: TEXTS,
      extract: HOOK,
      credentials: 'it decodes what the hook then judges',
    },
  },
  'root.authorize': {
    guard: (options) => root.authorize(() => true, options)(bearer),
    options: { name: [{ name: 'one' }, { name: 'other' }] },
  },
  'root.requireScopes': {
    guard: (options) => root.requireScopes(['read'], { granted: () => [], ...options })(bearer),
    options: { granted: HOOK },
  },
  'root.throttled': {
    guard: condition(root.throttled, { limiter: limiter(5) }),
    options: {
      limiter: [{ limiter: limiter(5) }, { limiter: limiter(50) }],
      keys: [{ keys: () => ({}) }, { keys: () => ({ account: 'anna' }) }],
      onStoreError: [{}, { onStoreError: 'unthrottled' }],
    },
  },
  'root.cached': {
    guard: (options) => httpBearer({ authenticate: root.cached(() => true, { maxAge: 1, ...options }) }),
    options: { maxAge: [{ maxAge: 1 }, { maxAge: 2 }], size: COST },
  },
  'root.rateLimit': {
    guard: condition(root.rateLimit, { limiter: limiter(5), by: () => 'anna' }),
    options: {
      limiter: [{ limiter: () => limiter(5) }, { limiter: () => limiter(50) }],
      by: [{}, { by: () => 'bert' }],
      points: [{ points: () => 1 }, { points: () => 2 }],
      onStoreError: [{}, { onStoreError: 'unthrottled' }],
    },
  },
  'root.apiKeyCookie': keyed(root.apiKeyCookie),
  'root.apiKeyHeader': keyed(root.apiKeyHeader),
  'root.apiKeyQuery': keyed(root.apiKeyQuery),
  'root.signedLinks': {
    guard: make(root.signedLinks, { secret: 'k'.repeat(32), maxAge: 60_000 }),
    options: {
      ...shown,
      secret: [{}, { secret: ['y'.repeat(32), 'x'.repeat(32)] }],
      maxAge: [{}, { maxAge: 120_000 }],
      paramName,
    },
  },
  'root.formAuth': {
    guard: make(root.formAuth, { fields: ['a', 'b'], authenticate: hook }),
    options: { ...shown, fields: [{ fields: ['a', 'b'] }, { fields: ['a', 'c'] }] },
  },
  'root.clientCertificate': {
    guard: make(root.clientCertificate, { from: 'socket', authenticate: hook, fingerprints: [fingerprints[0]] }),
    options: {
      ...shown,
      from: [{}, { from: { header: 'Client-Cert', proxies: ['10.0.0.1'] } }],
      authorities: 'as fingerprints, in the spec of the kind',
      fingerprints: [{}, { fingerprints: [fingerprints[1]] }],
    },
  },
  'root.httpBasicAuth': { guard: make(root.httpBasicAuth, { authenticate: hook }), options: shown },
  'root.httpBearer': {
    guard: make(root.httpBearer, { authenticate: hook }),
    options: {
      ...shown,
      challenge: TEXTS,
      bearerFormat: TEXTS,
      schemes: [{}, { schemes: ['Bearer', 'Token'] }],
      syntax: 'other strings only reach the hook',
    },
  },
  'root.sessionAuth': { guard: make(root.sessionAuth, {}), options: sessionOptions },
  'root.sessionAuthIsStaff': { guard: make(root.sessionAuthIsStaff, {}), options: sessionOptions },
  'root.sessionAuthSuperUser': { guard: make(root.sessionAuthSuperUser, {}), options: sessionOptions },
  'jwt.httpJwt': {
    guard: make(jwt.httpJwt, { issuer, audience: 'api' }),
    options: {
      ...tokenOptions,
      issuer: [{ issuer: { ...issuer, audience: 'one' } }, { issuer: { ...issuer, audience: 'other' } }],
      algorithms: [{}, { algorithms: ['EdDSA', 'PS256'] }],
      profile: [{}, { profile: 'rfc9068' }],
      clockTolerance: [{}, { clockTolerance: 60_000 }],
      maxTokenAge: [{ maxTokenAge: 60_000 }, { maxTokenAge: 120_000 }],
      bound: [dpop({}), dpop({ maxAge: 90_000 })],
      keys: [{}, { keys: { maxAge: 60_000 } }],
      verified: [{}, { verified: { maxAge: 5_000 } }],
    },
  },
  'jwt.httpIntrospection': {
    guard: make(jwt.httpIntrospection, { endpoint: 'https://a.example/i', client, audience: 'api' }),
    options: {
      ...tokenOptions,
      endpoint: [{}, { endpoint: 'https://b.example/i' }],
      issuer: [{}, { issuer: 'https://login.example', endpoint: undefined }],
      client: 'the credentials of this server, which are a secret',
      cache: [{}, { cache: { maxAge: 86_400_000 } }],
      timeout: COST,
    },
  },
  'jwt.requireAuthentication': {
    guard: (options) =>
      jwt.requireAuthentication(Object.keys(options).length > 0 ? (options as never) : { acr: ['a'] })(
        make(jwt.httpJwt, { issuer, audience: 'api' })({}) as never,
      ),
    options: {
      acr: [{ acr: ['a'] }, { acr: ['b'] }],
      maxAge: [{ maxAge: 60_000 }, { maxAge: 120_000 }],
      claims: HOOK,
    },
  },
  'signatures.httpSignature': {
    guard: make(signatures.httpSignature, { origin: 'https://api.example', keyOf: function one() {} }),
    options: {
      ...signatureOptions,
      keyOf: [{}, { keyOf: function other() {} }],
      components: [{}, { components: ['@method'] }],
      tag: [{}, { tag: 'mine' }],
      algorithms: [{}, { algorithms: ['ed25519'] }],
    },
  },
  'signatures.webBotAuth': {
    guard: make(signatures.webBotAuth, { origin: 'https://api.example', agents: ['https://a.example'] }),
    options: {
      ...signatureOptions,
      agents: [{}, { agents: ['https://b.example'] }],
      directory: [{}, { directory: { maxAge: 1000 } }],
    },
  },
  'webhooks.webhook': {
    guard: make(webhooks.webhook, { scheme: webhooks.github, secrets: 'x'.repeat(32) }),
    options: {
      ...shown,
      scheme: [{}, { scheme: webhooks.shopify }],
      secrets: [{}, { secrets: function ofTenant() { return 'x'.repeat(32) } }], // prettier-ignore
      repeated: [{ spent }, { spent, repeated: 'refuse' }],
      tolerance: [late(60_000), late(120_000)],
      spent: [{}, { spent }],
    },
  },
}

// They make no guard, or say nothing about who gets in
const others: Readonly<Record<string, string>> = {
  'root.owned': 'its parameter, functions and answer are in the spec of objects',
  'root.withAuth': 'its `then` is the field `behind`',
  'root.guardApp': 'its middleware has lines of its own',
  'root.authSettings':
    'csrf, forwarded and trustedOrigins are in fields; the others make responses, records and documents',
  'root.operation': 'undocumented is the field `docs`; the others are documents',
  'root.apiApp': 'a level and settings, as above',
  'root.perFailure': 'makes responses',
  'jwt.protectedResource': 'an option of the kinds of tokens, which see it',
  'webhooks.rawBody': 'a reader; the kind that calls it decides',
  'webhooks.webhookScheme': 'an option of `webhook`, which sees its name',
}

const lineOf = (guard: unknown): string => {
  const router = new Router().post('/x', guardOf(guard) as never, () => {})
  return textsFor(router).join('\n')
}

describe('every option of a kind or condition', () => {
  const found = Object.entries(entries).flatMap(([entry, all]) =>
    Object.entries(all).flatMap(([name, f]: [string, unknown]) => {
      const options = optionsOf(f)
      return options.length === 0 ? [] : [[`${entry}.${name}`, options] as const]
    }),
  )

  it('is known: each function that takes options is in a table', () => {
    const missing = found.filter(([name]) => kinds[name] === undefined && others[name] === undefined)
    expect(missing).toEqual([])
    expect(found.length).toBeGreaterThan(20)
  })

  it.each(found.filter(([name]) => kinds[name] !== undefined))('%s', (name, options) => {
    const { guard, options: rows } = kinds[name]!
    const unknown = options.filter((option) => rows[option] === undefined)
    expect(unknown, 'neither changes the line, nor is named with a reason').toEqual([])
    for (const option of options) {
      const row = rows[option]!
      if (typeof row === 'string') continue
      expect(lineOf(guard(row[0])), option).not.toBe(lineOf(guard(row[1])))
    }
  })
})

describe('what is inside of an option', () => {
  const nonce = { keys: ['k'.repeat(32)] }
  const bound = { ...dpop({}).bound, certificate: { from: 'socket' } }
  const token = (more: object) => lineOf(kinds['jwt.httpJwt']!.guard(more))
  it.each<[string, object, object]>([
    ['the origin of proofs', dpop({}), dpop({ origin: 'https://evil.example' })],
    ['the nonce of proofs', dpop({ nonce }), dpop({})],
    ['its lifetime', dpop({ nonce }), dpop({ nonce: { ...nonce, lifetime: 999_000 } })],
    ['the algorithms of proofs', dpop({}), dpop({ algorithms: ['ES256'] })],
    ['whether a binding is demanded', { bound }, { bound: { ...bound, required: true } }],
    ['the algorithms of one issuer', { issuer }, { issuer: { ...issuer, algorithms: ['EdDSA'] } }],
  ])('%s', (_what, was, is) => expect(token(was)).not.toBe(token(is)))

  it('whether fields that name a method count for safe methods', () => {
    const own = root.apiKeyCookie({ authenticate: hook })
    const under = (forwarded: boolean) => {
      const router = new Router().get('/x', root.withAuth(own), () => {})
      const app = new Koa().use(root.authSettings({ forwarded })).use(router.routes())
      return textsFor(app).join('\n')
    }
    expect(under(true)).not.toBe(under(false))
  })

  it('R24 the functions that say who is a superuser, of staff, or active', () => {
    const runs = (options: object) => {
      const app = new Koa({ keys: ['k'.repeat(32)] })
      sessions(app, { loadUser: () => ({ username: 'anna' }), ...options })
      return linesFor(app.use(new Router().routes()))[0]?.runs
    }
    expect(runs({})).toStrictEqual(['sessions'])
    for (const name of ['isActive', 'isSuperuser', 'isStaff']) {
      const said = [() => true, (user: { role?: string }) => user.role === 'root'].map((f) => runs({ [name]: f })?.[0])
      expect(said[0]).toMatch(new RegExp(`^sessions ${name} (function )?[0-9a-f]{12}$`))
      expect(said[0]).not.toBe(said[1])
    }
    // R09: an inherited function decides nothing
    Object.defineProperty(Object.prototype, 'isStaff', { value: () => true, configurable: true })
    try {
      expect(runs({})).toStrictEqual(['sessions'])
    } finally {
      Reflect.deleteProperty(Object.prototype, 'isStaff')
    }
  })

  it('a schema of claims is not compared, and the file says so', () => {
    const claims = { '~standard': { version: 1, vendor: 'zod', validate: () => ({ value: {} }) } }
    expect(token({ claims })).toContain('claims of zod, not compared')
  })

  it('a secret is never in the file', () => {
    const shared = { issuer: 'https://login.example', secret: 'k'.repeat(32) }
    expect(token({ ...dpop({ nonce }), issuer: shared })).not.toContain('kkk')
  })
})
