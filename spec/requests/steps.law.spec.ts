/**
 * What reads a request before it knows the caller takes a few steps for each character of it, whatever a stranger sends. Each
 * regular expression does, too.
 */
import { createSecretKey } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import Router from '@koa/router'
import fc from 'fast-check'
import Koa, { type Middleware } from 'koa'
import compose from 'koa-compose'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  authenticator,
  Challenge,
  clientCertificate,
  formAuth,
  httpBasicAuth,
  httpBearer,
  sessionAuth,
  signedLinks,
  throttled,
  withAuth,
} from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { apiKeys } from 'koa-with-auth/keys'
import { sessions } from 'koa-with-auth/sessions'
import { begin, secondFactor, finish, linkPage, emailSignIn, passwordReset } from 'koa-with-auth/sign-in'
import { backChannelLogout, oidc, afterRpLogout } from 'koa-with-auth/sign-in/oidc'
import { passkeys } from 'koa-with-auth/sign-in/passkeys'
import { httpSignature, webBotAuth } from 'koa-with-auth/signatures'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { fromWebSocketProtocol } from 'koa-with-auth/upgrades'
import { github, slack, standardWebhooks, stripe, webhook } from 'koa-with-auth/webhooks'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { analyse } from 'scslre'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { signingKey } from '../support/servers/identityProvider.js'
import { repository } from '../support/projects/typecheck.js'
import { stepsOf } from '../support/runs/steps.js'
import { strongKey } from '../support/sites/sessionsApp.js'

// --- an application with everything that strangers can ask

const limiter = new RateLimiterMemory({ points: 1_000_000, duration: 900 })
const noUser = () => false
const nothing = () => undefined
const secret = createSecretKey(Buffer.alloc(32))
const keyOf = (keyid: string) => (keyid === 'known' ? { key: secret, owner: 'a partner' } : undefined)

const site = async () => {
  const app = new Koa({ keys: [strongKey], proxy: true })
  const store = memoryStore()
  sessions(app, { loadUser: () => undefined, isActive: noUser, origin: 'https://shop.example', store })
  const provider = oidc({
    issuer: 'https://provider.example',
    client: { id: 'shop', secret: 'a secret of the client' },
    callback: '/callback',
    responseMode: 'form_post',
  })
  const passkey = passkeys({
    rp: { id: 'shop.example', name: 'Shop' },
    origins: ['https://shop.example'],
    store: memoryStore(),
    nameOf: ({ username }) => username,
  })
  const mail = emailSignIn({ limiter, path: '/mail/link', send: nothing })
  const reset = passwordReset({ limiter, path: '/reset/link', send: nothing, accountOf: nothing })
  const code = secondFactor({ factors: [{ method: 'none', verify: () => Promise.resolve(false) }], limiter })
  const { jwk } = await signingKey('ES256', 'one')
  const issuer = { issuer: 'https://provider.example', jwks: { keys: [jwk] } }
  const issued = { issuer, audience: 'shop' }
  const dpop = { dpop: { spent: oneTimeIds(memoryStore()), origin: 'https://shop.example' } }
  const keys = apiKeys({ prefix: 'shop', store: memoryStore() })
  const parsed: Middleware = async (ctx, next) => {
    Object.assign(ctx.request, { body: Object.fromEntries(new URLSearchParams(ctx.querystring)) })
    await next()
  }
  const router = new Router()
  const guarded = {
    '/bearer': httpBearer({ authenticate: noUser }),
    '/basic': throttled({ limiter })(httpBasicAuth({ authenticate: noUser })),
    '/header': apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate }),
    '/cookie': apiKeyCookie({ paramName: 'key', authenticate: noUser }),
    '/query': apiKeyQuery({ paramName: 'key', authenticate: noUser }),
    '/session': sessionAuth(),
    '/jwt': httpJwt(issued),
    '/dpop': httpJwt({ ...issued, bound: dpop }),
    '/signed': httpSignature({ origin: 'https://shop.example', keyOf, spent: oneTimeIds(memoryStore()) }),
    '/signed/covers': httpSignature({ origin: 'https://shop.example', keyOf, components: ['@method'] }),
    '/agent': webBotAuth({ origin: 'https://shop.example', agents: noUser }),
    '/link/signed': signedLinks({ secret: strongKey, maxAge: 60_000 }),
    '/protocol': authenticator({
      challenge: Challenge.make('Bearer'),
      ambient: false,
      extract: fromWebSocketProtocol({ prefix: 'a' }),
      authenticate: noUser,
    }),
    '/certificate': clientCertificate({
      from: { header: 'Client-Cert', proxies: ['203.0.113.0/24'] },
      fingerprints: ['0'.repeat(64)],
      authenticate: noUser,
    }),
    ...Object.fromEntries(
      [standardWebhooks, stripe, github, slack].map((scheme) => [
        `/hook/${scheme.name}`,
        webhook({ scheme, secrets: 'MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' }),
      ]),
    ),
  }
  for (const [path, guard] of Object.entries(guarded)) router.all(path, withAuth(guard), nothing)
  router.post('/form', parsed, withAuth(formAuth({ fields: ['username', 'password'], authenticate: noUser })), nothing)
  const open = withAuth(null)
  for (const one of [mail, reset]) router.all(`/begin/${one.name}`, open, begin(one))
  router.all('/finish/mail', open, finish(mail, noUser))
  router.all('/finish/reset', open, finish(reset, noUser))
  router.all('/finish/code', open, finish(code, noUser))
  router.all('/begin/passkey', open, begin(passkey))
  router.all('/finish/passkey', open, finish(passkey, noUser))
  router.all('/callback', open, finish(provider, noUser))
  router.all('/back-channel', open, backChannelLogout(provider, { user: nothing }))
  router.all('/out', open, afterRpLogout(provider, { callback: '/out' }))
  router.all('/link', open, linkPage({ title: 'Link', button: 'Go' }))
  app.use(router.routes())
  const paths = router.stack.map(({ path }) => String(path))
  return { app, paths, run: compose(app.middleware) }
}

// --- what strangers send

const pieces = [...'&=;,: .%+"\\[]{}()/?@<>-_~*\t\u0300aB0#', ...['%2e', '[]', '[a]', '::', '..', '{"a":', 'q=0.']]

/** A pattern that is repeated; `#` is another word each time. */
const pattern = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 4 }).map((parts) => parts.join(''))

const filled = (unit: string, length: number): string => {
  let text = ''
  for (let at = 0; text.length < length; at++) text += unit.replaceAll('#', at.toString(36))
  return text.slice(0, length)
}

// What is before it, so that it gets as far as the reader of such a value
const starts = [
  ...['', 'Bearer ', 'Basic ', 'DPoP ', 'key=', 'browser=', 'koa.sess=', 'https://', 'logout_token='],
  ...['handle=', 'state=', '"', '{"handle":"'],
]
const fields = [
  ...['Authorization', 'Cookie', 'X-Key', 'Origin', 'Accept', 'Content-Type', 'DPoP', 'X-Forwarded-For', 'Host'],
  ...['Sec-Fetch-Site', 'Sec-Fetch-Dest', 'Sec-Purpose', 'Content-Length', 'X-Forwarded-Proto', 'X-Forwarded-Host'],
  ...['Signature', 'Signature-Input', 'Signature-Agent', 'Content-Digest', 'Client-Cert', 'Sec-WebSocket-Protocol'],
  ...['Webhook-Signature', 'Webhook-Id', 'Stripe-Signature', 'X-Hub-Signature-256', 'X-Slack-Signature'],
  'If-None-Match',
]
const HEADERS = 15_000
const BODY = 65_000

interface Shape {
  readonly start: string
  readonly unit: string
  readonly isEncoded: boolean
}

const textOf = ({ start, unit, isEncoded }: Shape, length: number): string => {
  const text = filled(unit, length)
  return start + (isEncoded ? Buffer.from(text).toString('base64url').slice(0, length) : text)
}

const shape = fc.record({ start: fc.constantFrom(...starts), unit: pattern, isEncoded: fc.boolean() })
const place = fc.oneof(
  fc.record({ in: fc.constant('header' as const), name: fc.constantFrom(...fields) }),
  fc.record({ in: fc.constant('query' as const), name: fc.constant('') }),
  fc.record({ in: fc.constant('path' as const), name: fc.constant('') }),
  fc.record({
    in: fc.constant('body' as const),
    name: fc.constantFrom('application/x-www-form-urlencoded', 'application/json', 'text/plain'),
  }),
)

/** The steps of one request, and its length. */
const requested = async (
  { app, run }: Awaited<ReturnType<typeof site>>,
  path: string,
  at: { readonly in: 'header' | 'query' | 'path' | 'body'; readonly name: string },
  given: Shape,
  part = 1,
): Promise<{ readonly steps: number; readonly length: number }> => {
  const text = textOf(given, (at.in === 'body' ? BODY : HEADERS) / part)
  const isBody = at.in === 'body'
  const type = isBody ? at.name : 'application/x-www-form-urlencoded'
  const lines = [
    ['Host', 'shop.example'],
    ['Content-Type', type],
    ...(isBody ? [['Content-Length', String(Buffer.byteLength(text))]] : []),
  ].filter(([name]) => at.in !== 'header' || name !== at.name)
  const request = mockRequest(
    {
      method: at.in === 'query' || at.in === 'path' ? 'GET' : 'POST',
      url: at.in === 'query' ? `${path}?${encodeURI(text)}` : at.in === 'path' ? `${path}/${encodeURI(text)}` : path,
      // Safe: pairs
      fields: [...lines, ...(at.in === 'header' ? [[at.name, text]] : [])] as [string, string][],
      remoteAddress: '203.0.113.7',
    },
    app,
  )
  if (isBody) request.req.push(text)
  request.req.push(null)
  const ctx = request.ctx
  const steps = await stepsOf(() =>
    run(ctx).catch((error: unknown) => {
      const { status = 500 } = error as { status?: number }
      if (status >= 500) throw error
    }),
  )
  return { steps, length: Math.max(text.length, request.url.length) }
}

// A router compares a path with each of its routes
const PER_CHARACTER = 300
const ALWAYS = 50_000

const form = 'application/x-www-form-urlencoded'
type Place = Parameters<typeof requested>[2]

/** What took quadratic time somewhere. */
const known: ReadonlyArray<[Place, Shape]> = [
  [
    { in: 'body', name: form },
    { start: '', unit: '#&', isEncoded: false },
  ],
  [
    { in: 'body', name: form },
    { start: '', unit: 'a=1&', isEncoded: false },
  ],
  [
    { in: 'header', name: 'Accept' },
    { start: '"', unit: ',', isEncoded: false },
  ],
  [
    { in: 'header', name: 'Authorization' },
    { start: 'Basic ', unit: '\u0300\u0334', isEncoded: true },
  ],
  [
    { in: 'header', name: 'Cookie' },
    { start: '', unit: '; ', isEncoded: false },
  ],
  // this one was never quadratic, but the counter once took it for that
  [
    { in: 'header', name: 'Cookie' },
    { start: 'browser=', unit: ';', isEncoded: false },
  ],
]

describe('A-43 a request costs a few steps for each of its characters', () => {
  it('wherever a stranger writes something', async () => {
    const served = await site()
    await fc.assert(
      fc.asyncProperty(place, shape, async (at, given) => {
        for (const path of served.paths) {
          const { steps, length } = await requested(served, path, at, given)
          expect([path, steps < PER_CHARACTER * length + ALWAYS]).toEqual([path, true])
        }
      }),
      { numRuns: 40, examples: known.map((one) => [...one]) },
    )
  })
})

// --- signatures: two fields say which parts of a request are read

/** Fills a part of 15,000 characters of header lines with a unit; `#` is another word each time. */
const signedShape = fc.record({
  path: fc.constantFrom('/signed', '/signed/covers', '/agent'),
  item: fc.constantFrom(
    ...['"@query-param";name="#"', '"priority";key="a#"', '"signature-agent";key="a#"', '"x-#"', '"cookie";bs'],
    ...['"priority";sf;b#', '"content-digest";key="a#"', '"@target-uri"', '"@query";a#'],
  ),
  field: fc.constantFrom('Priority', 'Signature-Agent', 'Content-Digest', 'Cookie'),
  unit: fc.constantFrom('a#, ', 'a#="https://a.example", ', 'a#=:YQ==:, ', 'a#=(1 2);b, ', '#', 'x '),
  query: fc.constantFrom('#&', '#=1&', '%ff&', 'Z&', '??', '&'),
  signatures: fc.constantFrom(1, 2, 8, 100),
  parts: fc.tuple(fc.nat({ max: 4 }), fc.nat({ max: 4 }), fc.nat({ max: 4 })),
  keyid: fc.constantFrom('known', 'other'),
  isBound: fc.boolean(),
})
type SignedShape = typeof signedShape extends fc.Arbitrary<infer S> ? S : never

const signedRequestOf = ({ path, item, field, unit, query, signatures, parts, keyid, isBound }: SignedShape) => {
  const whole = parts[0] + parts[1] + parts[2] + 1
  const [items = '', lines = '', target = ''] = [item, unit, query].map((one, at) =>
    filled(at === 0 ? `${one} ` : one, ((parts[at] ?? 0) * HEADERS) / whole / (at === 0 ? signatures : 1)),
  )
  const covered = [...(isBound ? ['"@method"', '"@target-uri"'] : []), ...items.split(' ').slice(0, -1)].join(' ')
  const now = Math.floor(Date.now() / 1000)
  const parameters = `created=${now};expires=${now + 50};keyid="${keyid}";nonce="n"`
  const tag = path === '/agent' ? ';tag="web-bot-auth"' : ''
  const labels = Array.from({ length: signatures }, (_, at) => `s${at}`)
  const fields: [string, string][] = [
    ['Host', 'shop.example'],
    ['Signature-Input', labels.map((label) => `${label}=(${covered});${parameters}${tag}`).join(', ')],
    ['Signature', labels.map((label) => `${label}=:${'A'.repeat(44)}:`).join(', ')],
    [field, lines],
  ]
  return { method: 'GET', url: `${path}?${target}`, fields, remoteAddress: '203.0.113.7' }
}

const usualShape = { field: 'Priority', unit: 'a#, ', signatures: 1, keyid: 'other', isBound: true } as const
/** What took quadratic time. */
const knownSigned: ReadonlyArray<SignedShape> = [
  { ...usualShape, path: '/signed', item: '"@query-param";name="#"', query: '#&', parts: [2, 0, 2] },
  { ...usualShape, path: '/agent', item: '"@query-param";name="#"', query: '#&', parts: [2, 0, 2], signatures: 8 },
  { ...usualShape, path: '/signed/covers', item: '"priority";key="a#"', query: '&', parts: [2, 4, 0] },
  { ...usualShape, path: '/signed', item: '"priority";key="a#"', query: '&', parts: [2, 4, 0], keyid: 'known' },
  { ...usualShape, path: '/signed', item: '"x-#"', query: 'Z&', parts: [1, 1, 1], signatures: 100, isBound: false },
]

describe('A-43 a signed request costs a few steps for each of its characters', () => {
  it('whatever its signatures cover', async () => {
    const { app, run } = await site()
    await fc.assert(
      fc.asyncProperty(signedShape, async (given) => {
        const spec = signedRequestOf(given)
        const { ctx } = mockRequest(spec, app)
        const steps = await stepsOf(() => run(ctx))
        const length = spec.fields.flat().join('').length + spec.url.length
        expect([given, steps < PER_CHARACTER * length + ALWAYS, steps]).toEqual([given, true, steps])
      }),
      { numRuns: 100, examples: knownSigned.map((one) => [one]) },
    )
  })
})

// --- regular expressions

/** Those that read nothing of a request. */
const elsewhere: Readonly<Record<string, string>> = {
  'audit/paths.ts': 'paths of routes',
  'command/load.ts': 'messages of modules',
  'core/checks.ts': 'an option',
  'core/functionName.ts': 'texts of functions',
  'core/options.ts': 'texts of functions',
  'guesses/Guess.ts': 'an address of at most 100 characters',
  'jwt/httpIntrospection.ts': 'an option',
  'passwords/StoredPassword.ts': 'a hash that the application keeps',
  'stores/sqlite.ts': 'an option',
  'testing/attacks.ts': 'what tests send',
  'webhooks/schemes.ts': 'a secret, which is an option',
}

const src = `${repository}src/`

const slowIn = (file: string): ReadonlyArray<string> => {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isRegularExpressionLiteral(node)) {
      const end = node.text.lastIndexOf('/')
      const { reports } = analyse({ source: node.text.slice(1, end), flags: node.text.slice(end + 1) })
      if (reports.length > 0) found.push(node.text)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, readFileSync(src + file, 'utf8'), ts.ScriptTarget.ES2022))
  return found
}

describe('A-43 each regular expression that reads a request', () => {
  it('takes time in proportion to it', () => {
    const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'))
    expect(files.length).toBeGreaterThan(100)
    expect(files.filter((file) => slowIn(file).length > 0 && !Object.hasOwn(elsewhere, file))).toEqual([])
  })

  it('is noticed if it does not', () => {
    expect(analyse({ source: '^(a+)+$', flags: '' }).reports).not.toEqual([])
    expect(analyse({ source: '\\s*\\n', flags: '' }).reports).not.toEqual([])
  })
})
