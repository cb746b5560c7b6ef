/** Which deliveries of which senders pass, and what the others are answered. H-04, H-05. */
import { createHmac, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { bodyParser } from '@koa/bodyparser'
import Router from '@koa/router'
import Koa from 'koa'
import { authSettings, withAuth } from 'koa-with-auth'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import {
  github,
  rawBody,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  svix,
  webhook,
  webhookScheme,
  type WebhookOptions,
} from 'koa-with-auth/webhooks'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { listen } from '../support/servers/server.js'

type Headers = Record<string, string>

const site = async (options: WebhookOptions) => {
  const seen: unknown[] = []
  const router = new Router()
  router.post('/hook', withAuth(webhook(options)), (ctx) => {
    const { id, at, text: body } = ctx.request.auth
    seen.push({ id, at: at?.toISOString(), text: body() })
    ctx.status = 204
  })
  const served = await listen(new Koa().use(authSettings({ explain: true })).use(router.routes()))
  const send = async (body: string, headers: Headers | ReadonlyArray<[string, string]>) => {
    // `fetch` would join two lines
    const lines = Array.isArray(headers) ? (headers as ReadonlyArray<[string, string]>) : Object.entries(headers)
    const req = request(`${served.url}/hook`, { method: 'POST' })
    for (const name of new Set(lines.map(([one]) => one))) {
      const values = lines.flatMap(([one, value]) => (one === name ? [value] : []))
      req.setHeader(name, values.length === 1 ? (values[0] ?? '') : values)
    }
    req.end(body)
    const [response] = (await once(req, 'response')) as [IncomingMessage]
    const answer = await text(response)
    // Safe: the body of a failure
    const { tried: [first] = [] } = (answer.startsWith('{') ? JSON.parse(answer) : {}) as {
      tried?: [{ failure?: string; why?: string }]
    }
    return [response.statusCode, first?.failure, first?.why].filter((one) => one !== undefined).join(' ')
  }
  return { seen, send, ...served }
}

const at = (seconds: number): void => stoppedClock().set(seconds * 1000 - Date.now())

describe("the senders' own examples", () => {
  it('Slack', async () => {
    at(1531420619)
    const { send } = await site({ scheme: slack, secrets: '8f742231b10e8888abcd99yyyzzz85a5' })
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
    const headers = {
      'X-Slack-Request-Timestamp': '1531420618',
      'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    }
    expect(await send(body, headers)).toBe('204')
  })
})

const SECRET = 'an-example-secret'
const BASE64 = `whsec_${Buffer.from(SECRET).toString('base64')}`
const hmac = (text: string, encoding: 'hex' | 'base64' = 'hex', secret = SECRET) =>
  createHmac('sha256', secret).update(text).digest(encoding)
const now = (): number => Math.floor(Date.now() / 1000)

const standardHeaders = (body: string, { id = 'msg_1', time = String(now()), prefix = 'Webhook' } = {}): Headers => ({
  [`${prefix}-Id`]: id,
  [`${prefix}-Timestamp`]: time,
  [`${prefix}-Signature`]: `v1,${hmac(`${id}.${time}.${body}`, 'base64')}`,
})
const stripeHeaders = (body: string, time = String(now())): Headers => ({
  'Stripe-Signature': `t=${time},v1=${hmac(`${time}.${body}`)}`,
})
const slackHeaders = (body: string, time = String(now())): Headers => ({
  'X-Slack-Request-Timestamp': time,
  'X-Slack-Signature': `v0=${hmac(`v0:${time}:${body}`)}`,
})
const standard = (prefix: string) => (body: string, time?: string) =>
  standardHeaders(body, { prefix, ...(time !== undefined && { time }) })
const githubHeaders = (body: string): Headers => ({ 'X-Hub-Signature-256': `sha256=${hmac(body)}` })
const shopifyHeaders = (body: string): Headers => ({ 'X-Shopify-Hmac-Sha256': hmac(body, 'base64') })
const timed = [
  { name: 'standardWebhooks', scheme: standardWebhooks, secrets: BASE64, headers: standard('Webhook') },
  { name: 'svix', scheme: svix, secrets: BASE64, headers: standard('Svix') },
  { name: 'stripe', scheme: stripe, secrets: SECRET, headers: stripeHeaders },
  { name: 'slack', scheme: slack, secrets: SECRET, headers: slackHeaders },
]

describe.each(timed)('$name', ({ scheme, secrets, headers }) => {
  it('accepts a time of the last five minutes, and of a clock that is 5 s ahead', async () => {
    stoppedClock()
    const { send } = await site({ scheme, secrets })
    for (const [after, expected] of [
      [0, '204'],
      [-295, '204'],
      [5, '204'],
      [-302, '401 invalid expired'],
      [30, '401 invalid not yet'],
    ] as const) {
      expect(await send('a', headers('a', String(now() + after)))).toBe(expected)
    }
  })

  it('accepts only times in plain digits', async () => {
    const { send } = await site({ scheme, secrets })
    for (const wrong of [`${now()}.0`, `0${now()}`, `+${now()}`, `${now()}e0`, '', '0x6', `${now()}000`, '-1', 'NaN']) {
      expect(await send('a', headers('a', wrong))).toMatch(/^401 (?:malformed|invalid)/)
    }
  })

  it('has another tolerance by option', async () => {
    const { send } = await site({ scheme, secrets, tolerance: 10_000 })
    expect(await send('a', headers('a', String(now() - 5)))).toBe('204')
    expect(await send('a', headers('a', String(now() - 12)))).toBe('401 invalid expired')
  })
})

const all = [
  ...timed,
  { name: 'github', scheme: github, secrets: SECRET, headers: githubHeaders },
  { name: 'shopify', scheme: shopify, secrets: SECRET, headers: shopifyHeaders },
]

describe.each(all)('$name', ({ scheme, secrets, headers }) => {
  it('refuses what is not signed, or by another secret, or is another body; and the handler does not run', async () => {
    const { send, seen } = await site({ scheme, secrets })
    const other = Buffer.from('another-secret').toString('base64')
    expect(await send('a', {})).toBe('401 absent')
    expect(await send('b', headers('a'))).toBe('401 invalid signature')
    expect(await send('', headers('a'))).toBe('401 invalid signature')
    const { send: sendOther } = await site({ scheme, secrets: other })
    expect(await sendOther('a', headers('a'))).toBe('401 invalid signature')
    expect(seen).toStrictEqual([])
  })

  it('refuses each header that was sent twice', async () => {
    const { send, seen } = await site({ scheme, secrets })
    const lines = Object.entries(headers('a'))
    for (const [name, value] of lines) {
      expect(await send('a', [...lines, [name, value]])).toMatch(/^401 (?:malformed twice|invalid signature)$/)
      expect(await send('a', [...lines, [name, 'x']])).toMatch(/^401/)
    }
    expect(seen).toStrictEqual([])
  })

  it('accepts two secrets while one replaces the other, in any order, or those that a function finds', async () => {
    const other = Buffer.from('another-secret').toString('base64')
    for (const list of [[secrets, other], [other, secrets], () => Promise.resolve([other, secrets]), () => secrets]) {
      const { send } = await site({ scheme, secrets: list })
      expect(await send('a', headers('a'))).toBe('204')
    }
    for (const none of [() => undefined, () => null, () => []]) {
      const { send } = await site({ scheme, secrets: none })
      expect(await send('a', headers('a'))).toBe('401 invalid key')
    }
    for (const wrong of [() => '', () => ['']]) {
      const { send, seen } = await site({ scheme, secrets: wrong })
      expect(await send('a', headers('a'))).toMatch(/^500/)
      expect(seen).toStrictEqual([])
    }
  })
})

describe('Standard Webhooks', () => {
  const keys = generateKeyPairSync('ed25519')
  const raw = Buffer.from(keys.publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const v1a = (text: string) => `v1a,${sign(null, Buffer.from(text), keys.privateKey).toString('base64')}`

  it('accepts v1a (Ed25519) with the public key, beside signatures of other versions', async () => {
    const { send } = await site({ scheme: standardWebhooks, secrets: [`whpk_${raw.toString('base64')}`, BASE64] })
    const time = String(now())
    const headers = { 'Webhook-Id': 'm', 'Webhook-Timestamp': time }
    const good = v1a(`m.${time}.a`)
    const behind = (count: number) => [...Array<string>(count).fill('v1,AAAA'), good].join(' ')
    for (const [signature, expected] of [
      [good, '204'],
      [`v1,AAAA v2,x ${good}`, '204'],
      [`v1,${hmac(`m.${time}.a`, 'base64')} v1a,AAAA`, '204'],
      [behind(19), '204'],
      [behind(20), '401 malformed syntax'],
      [v1a(`m.${time}.b`), '401 invalid signature'],
      [good.replace(/=+$/, ''), '401 invalid signature'],
      [`,${good}`, '401 malformed syntax'],
      [`${good},`, '401 malformed syntax'],
      // a signature of one version is none of the other
      [good.replace('v1a', 'v1'), '401 invalid signature'],
    ] as const) {
      expect(await send('a', { ...headers, 'Webhook-Signature': signature })).toBe(expected)
    }
  })

  it('refuses an id with a full stop, because it could be moved between id and time', async () => {
    const { send } = await site({ scheme: standardWebhooks, secrets: BASE64 })
    expect(await send('a', standardHeaders('a', { id: 'msg.1' }))).toBe('401 malformed syntax')
    expect(await send('a', standardHeaders('a', { id: '' }))).toBe('401 malformed syntax')
    expect(await send('a', standardHeaders('a'))).toBe('204')
    const written = { ...standardHeaders('a'), 'Webhook-Timestamp': `0${now()}` }
    expect(await send('a', written)).toBe('401 malformed syntax')
  })
})

it.each<[string, WebhookOptions['scheme'], Headers]>([
  ['GitHub', github, { 'X-Hub-Signature-256': `sha512=${hmac('a')}` }],
  ['Slack', slack, { ...slackHeaders('a'), 'X-Slack-Signature': `v1=${hmac(`v0:${now()}:a`)}` }],
])('a signature of another version is none: %s', async (_name, scheme, headers) => {
  const { send } = await site({ scheme, secrets: SECRET })
  expect(await send('a', headers)).toBe('401 malformed syntax')
})

it('the challenge names the header', async () => {
  const { url } = await site({ scheme: stripe, secrets: SECRET, realm: 'hooks' })
  const { headers } = await fetch(`${url}/hook`, { method: 'POST' })
  expect(headers.get('www-authenticate')).toBe('Webhook realm="hooks", header="Stripe-Signature"')
})

it.each<[string, WebhookOptions['scheme'], (body: string) => Headers, number, number]>([
  ['is tried again, if it has an id', standardWebhooks, (body) => standardHeaders(body), 600_000, 259_200_000],
  ['could come again', stripe, (body) => stripeHeaders(body), 26_000, 26_000],
  ['is tried again, if it has no time', github, githubHeaders, 600_000, 2_592_000_000],
])('a delivery is taken for as long as it %s', async (_what, scheme, headers, lease, lifetime) => {
  const lifetimes: number[] = []
  const spent = {
    use: async (_id: string, ms: number) => lifetimes.push(ms) > 0,
    release: async (_id: string, ms = 0) => void lifetimes.push(ms),
  }
  const own = scheme.isTimed === false ? {} : { tolerance: 10_000 }
  const { send } = await site({ scheme, secrets: scheme === standardWebhooks ? BASE64 : SECRET, spent, ...own })
  expect(await send('a', headers('a'))).toBe('204')
  // that its handler runs, and the delivery, which ends first if the process does; then the delivery for good
  await expect.poll(() => lifetimes).toEqual([lease, 0.9 * lease, lifetime, 0])
})

describe('Stripe', () => {
  it('may sign with two secrets, and with versions of another kind', async () => {
    const { send } = await site({ scheme: stripe, secrets: SECRET })
    const time = String(now())
    const good = hmac(`${time}.a`)
    const behind = (count: number) => `t=${time},${`v1=${'0'.repeat(64)},`.repeat(count)}v1=${good}`
    for (const accepted of [`${behind(1)},v0=${good}`, behind(19)])
      expect(await send('a', { 'Stripe-Signature': accepted })).toBe('204')
    for (const refused of [
      `t=${time},v0=${good}`,
      `t=${time},t=${time},v1=${good}`,
      `v1=${good}`,
      behind(20),
      `t=${time},v1=${good},rubbish`,
    ]) {
      expect(await send('a', { 'Stripe-Signature': refused })).toBe('401 malformed syntax')
    }
  })
})

describe('a scheme of your own', () => {
  const scheme = webhookScheme({
    header: 'X-Acme',
    encoding: 'base64',
    read: (value, get) => {
      const id = get('X-Acme-Id')
      return id === undefined
        ? undefined
        : { signatures: value.match(/[^;]+/g) ?? [], id, at: new Date(Number(get('X-Acme-Time'))) }
    },
    // a function with these types, which was written apart, is one, too
    content: ({ id, at: time, body }: { id: string | undefined; at: Date | undefined; body: Buffer }) => [
      `${id}\n${time?.getTime()}\n`,
      body,
    ],
  })

  it('reads its headers, and says what is signed', async () => {
    const { send, seen } = await site({ scheme, secrets: SECRET })
    const time = Date.now()
    const signed = { 'X-Acme-Id': '7', 'X-Acme-Time': String(time), 'X-Acme': `x;${hmac(`7\n${time}\na`, 'base64')}` }
    expect(await send('a', signed)).toBe('204')
    expect(seen).toStrictEqual([{ id: '7', at: new Date(time).toISOString(), text: 'a' }])
    for (const wrong of [{ 'X-Acme-Time': 'x' }, { 'X-Acme': ';' }])
      expect(await send('a', { ...signed, ...wrong })).toBe('401 malformed syntax')
    expect(await send('a', { ...signed, 'X-Acme-Time': String(time + 1) })).toBe('401 invalid signature')
    expect(await send('a', [...Object.entries(signed), ['X-Acme-Id', '7']])).toBe('401 malformed twice')
  })
})

describe('other algorithms', () => {
  it.each([
    ['sha1', 'base64'],
    ['sha256', 'hex'],
    ['sha512', 'hex'],
  ] as const)('HMAC by %s', async (algorithm, encoding) => {
    const read = (value: string) => ({ signatures: [value] })
    const scheme = webhookScheme({
      header: 'X-Acme',
      encoding,
      algorithm,
      read,
      content: ({ request, body }) => [request.path, body],
    })
    const { send } = await site({ scheme, secrets: [SECRET, 'another'] })
    const signed = (by: string) => ({ 'X-Acme': createHmac(by, SECRET).update('/hooka').digest(encoding) })
    expect(await send('a', signed(algorithm))).toBe('204')
    const upper = { 'X-Acme': signed(algorithm)['X-Acme'].toUpperCase() }
    expect(await send('a', upper)).toBe(encoding === 'hex' ? '204' : '401 invalid signature')
    expect(await send('a', signed(algorithm === 'sha1' ? 'sha256' : 'sha1'))).toBe('401 invalid signature')
  })

  // Discord registers an endpoint only if it refuses a wrong signature
  it('Ed25519, as Discord signs, by verify', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const calls: unknown[] = []
    const discord = webhookScheme({
      header: 'X-Signature-Ed25519',
      read: (value, get) => ({ signatures: [value], at: new Date(Number(get('X-Signature-Timestamp')) * 1000) }),
      content: ({ at, body }) => [String((at?.getTime() ?? 0) / 1000), body],
      verify: ({ content, signature, secret, request }) => {
        calls.push([content.toString(), request.method])
        const key = createPublicKey({ key: Buffer.from(secret, 'hex'), format: 'der', type: 'spki' })
        return verify(null, content, key, Buffer.from(signature, 'hex'))
      },
    })
    const secrets = publicKey.export({ format: 'der', type: 'spki' }).toString('hex')
    const { send } = await site({ scheme: discord, secrets, spent: oneTimeIds(memoryStore()) })
    const time = String(now())
    const signed = {
      'X-Signature-Timestamp': time,
      'X-Signature-Ed25519': sign(null, Buffer.from(`${time}a`), privateKey).toString('hex'),
    }
    expect(await send('a', signed)).toBe('204')
    expect(await send('a', signed)).toBe('200')
    expect(await send('b', signed)).toBe('401 invalid signature')
    expect(await send('a', { ...signed, 'X-Signature-Ed25519': 'zz' })).toBe('401 invalid signature')
    expect(calls[0]).toStrictEqual([`${time}a`, 'POST'])
  })

  it.each([
    ['anything but true is no signature', () => 'yes' as never, '401 invalid signature'],
    ['an exception is a 500', () => Promise.reject(new Error('no key')), '500'],
  ])('%s', async (_name, check, expected) => {
    const scheme = webhookScheme({
      header: 'X-Acme',
      read: (value) => ({ signatures: [value] }),
      content: ({ body }) => body,
      verify: check,
    })
    const { send } = await site({ scheme, secrets: SECRET })
    expect(await send('a', { 'X-Acme': 'a' })).toBe(expected)
  })
})

describe('rawBody', () => {
  it('gives a kind of your own the bytes, and a parser behind it, too', async () => {
    const router = new Router()
    const own = withAuth(async (request) => {
      const bytes = await rawBody(request, { maxLength: 9 })
      return bytes.toString() === '{"a": 1}' ? { bytes: bytes.length } : undefined
    })
    router.post('/hook', own, bodyParser(), (ctx) => {
      ctx.body = [ctx.request.auth.bytes, ctx.request.body]
    })
    const served = await listen(new Koa().use(router.routes()))
    const headers = { 'Content-Type': 'application/json' }
    const send = async (body: string) => {
      const answer = await fetch(`${served.url}/hook`, { method: 'POST', body, headers })
      return [answer.status, answer.status === 200 ? await answer.json() : undefined]
    }
    expect(await send('{"a": 1}')).toStrictEqual([200, [8, { a: 1 }]])
    expect(await send('{"a": 2}')).toStrictEqual([401, undefined])
    expect(await send('{"a": 12345}')).toStrictEqual([413, undefined])
    expect(() => rawBody({} as never, { maxLength: 0 })).toThrow('rawBody(request, { maxLength }) must be a number')
  })
})

describe('json()', () => {
  it('of a body that is no JSON is a 400', async () => {
    const router = new Router()
    router.post('/hook', withAuth(webhook({ scheme: shopify, secrets: SECRET })), (ctx) => {
      ctx.body = ctx.request.auth.json()
    })
    const served = await listen(new Koa().use(router.routes()))
    const send = (body: string) => fetch(`${served.url}/hook`, { method: 'POST', body, headers: shopifyHeaders(body) })
    expect((await send('{')).status).toBe(400)
    expect(await (await send('payload=%7B%7D')).text()).toContain('for a form, new URLSearchParams(text())')
    const good = await send('{"__proto__":{"a":1},"b":2}')
    expect(await good.text()).toBe('{"__proto__":{"a":1},"b":2}')
  })
})
