/** What the audit, the policy file and OpenAPI say about deliveries and signed requests: every option changes the line. */
import Router from '@koa/router'
import type { Authenticator } from 'koa-with-auth'
import { optional, withAuth } from 'koa-with-auth'
import { audit } from 'koa-with-auth/audit'
import { openApi } from 'koa-with-auth/openapi'
import { memoryStore, oneTimeIds } from 'koa-with-auth/stores'
import { httpSignature, webBotAuth } from 'koa-with-auth/signatures'
import { github, shopify, slack, standardWebhooks, stripe, webhook, webhookScheme } from 'koa-with-auth/webhooks'
import { describe, expect, it } from 'vitest'
import { linesOf, lineText } from '../../src/audit/policy.js'
import { invalidIn } from '../support/papers/openapiTools.js'

const routerOf = (a: Authenticator<unknown>) => {
  const router = new Router()
  router.post('/hooks/:name', withAuth(a), (ctx) => void (ctx.status = 204))
  return router
}
const lineOf = (a: Authenticator<unknown>): string =>
  linesOf(audit(routerOf(a)))
    .map(lineText)
    .join('\n')

const spent = oneTimeIds(memoryStore())
const secretsOfTenant = () => 's'
const readAcme = (value: string) => ({ signatures: [value] })
const acme = { header: 'X-Acme', encoding: 'hex', read: readAcme } as const

const hook = { scheme: stripe, secrets: 's' }
const hooks = {
  plain: webhook(hook),
  'another scheme': webhook({ ...hook, scheme: slack }),
  'two secrets': webhook({ ...hook, secrets: ['s', 't'] }),
  'secrets by a function': webhook({ ...hook, secrets: secretsOfTenant }),
  tolerance: webhook({ ...hook, tolerance: 60_000 }),
  maxLength: webhook({ ...hook, maxLength: 1000 }),
  spent: webhook({ ...hook, spent }),
  repeated: webhook({ ...hook, spent, repeated: 'refuse' }),
  'a name': webhook({ ...hook, schemeName: 'billing' }),
  'an own scheme': webhook({ ...hook, scheme: webhookScheme({ ...acme, content: ({ body }) => body }) }),
  'an own scheme with other content': webhook({ ...hook, scheme: webhookScheme({ ...acme, content: () => 'x' }) }),
}

const keyOf = () => undefined
const signature = { origin: 'https://api.example', keyOf }
const agent = { origin: 'https://api.example', agents: ['https://a.example'] }
const signatures = {
  plain: httpSignature(signature),
  origin: httpSignature({ ...signature, origin: 'https://other.example' }),
  keyOf: httpSignature({ ...signature, keyOf: () => null }),
  components: httpSignature({ ...signature, components: ['@method'] }),
  tag: httpSignature({ ...signature, tag: 'a' }),
  maxAge: httpSignature({ ...signature, maxAge: 1000 }),
  maxLength: httpSignature({ ...signature, maxLength: 1000 }),
  algorithms: httpSignature({ ...signature, algorithms: ['ed25519'] }),
  spent: httpSignature({ ...signature, spent }),
  'web bot auth': webBotAuth(agent),
  agents: webBotAuth({ ...agent, agents: ['https://b.example'] }),
  'agents by a function': webBotAuth({ ...agent, agents: () => true }),
  'agents, spent': webBotAuth({ ...agent, spent }),
  directory: webBotAuth({ ...agent, directory: { maxAge: 1000 } }),
  'directory, timeout': webBotAuth({ ...agent, directory: { timeout: 1000 } }),
  'directory, maxLength': webBotAuth({ ...agent, directory: { maxLength: 1000 } }),
}

describe.each([
  ['webhook', hooks],
  ['signatures', signatures],
])('the policy file, %s', (_name, kinds: Readonly<Record<string, Authenticator<unknown>>>) => {
  it('has another line for each option', () => {
    const lines = Object.entries(kinds).map(([name, kind]) => [name, lineOf(kind)] as const)
    const byLine = new Map(lines.map(([name, line]) => [line, name]))
    expect(lines.filter(([name, line]) => byLine.get(line) !== name)).toStrictEqual([])
    expect(lines.every(([, line]) => line.split('\n').length === 1)).toBe(true)
  })

  it('has the same line for the same options, and no secret', () => {
    expect(lineOf(webhook({ ...hook }))).toBe(lineOf(hooks.plain))
    expect(lineOf(httpSignature({ ...signature }))).toBe(lineOf(signatures.plain))
    const secret = 'a-secret-that-is-not-printed'
    expect(lineOf(webhook({ scheme: github, secrets: secret }))).not.toContain(secret)
  })
})

describe('OpenAPI', () => {
  const options = { title: 'Hooks', version: '1' }

  it('lists the headers of a webhook, its scheme, and what is received', async () => {
    const secret = `whsec_${Buffer.from('secret').toString('base64')}`
    const document = openApi(routerOf(webhook({ scheme: standardWebhooks, secrets: secret })), options)
    const operation = document.paths['/hooks/{name}']?.post
    const [[name = '', ...others] = []] = operation?.security?.map(Object.keys) ?? []
    expect([operation?.security, others]).toStrictEqual([[{ [name]: [] }], []])
    const scheme = { type: 'apiKey', in: 'header', name: 'Webhook-Signature' }
    expect(document.components?.securitySchemes?.[name]).toMatchObject(scheme)
    const header = (name: string) => ({ name, in: 'header', required: true, schema: { type: 'string' } })
    expect(operation?.parameters?.slice(1)).toStrictEqual([header('Webhook-Id'), header('Webhook-Timestamp')])
    expect(document.webhooks).toStrictEqual({
      'standardWebhooks /hooks/{name}': { $ref: '#/paths/~1hooks~1%7Bname%7D' },
    })
    expect(await invalidIn(document)).toBeUndefined()
  })

  it('lists headers that not each alternative needs as optional', () => {
    const document = openApi(routerOf(optional(webhook({ scheme: slack, secrets: 's' }))), options)
    expect(document.paths['/hooks/{name}']?.post?.parameters?.[1]).toMatchObject({ required: false })
    expect(document.webhooks).toHaveProperty(['slack /hooks/{name}'])
    expect(openApi(routerOf(hooks['an own scheme']), options).webhooks).toHaveProperty(['webhook /hooks/{name}'])
  })

  it('lists Signature-Input and Signature-Agent of signed requests, which are no webhooks', async () => {
    const document = openApi(routerOf(webBotAuth(agent)), options)
    const names = document.paths['/hooks/{name}']?.post?.parameters?.map((one) => ('name' in one ? one.name : ''))
    expect(names).toStrictEqual(['name', 'signature-input', 'signature-agent'])
    expect(document.webhooks).toBeUndefined()
    expect(await invalidIn(document)).toBeUndefined()
  })
})

describe('wrong options', () => {
  it.each([
    [{ scheme: 'stripe', secrets: 's' }, 'webhook({ scheme }) has no method read'],
    [{ scheme: stripe }, 'webhook({ secrets }) must be a secret'],
    [{ scheme: stripe, secrets: '' }, 'none of them empty'],
    [{ scheme: stripe, secrets: [] }, 'none of them empty'],
    [{ scheme: stripe, secrets: ['s', ''] }, 'none of them empty'],
    [{ scheme: stripe, secrets: (_a: unknown, _b: unknown) => 's' }, 'takes 2 parameters'],
    [{ scheme: standardWebhooks, secrets: 'whsec_?' }, 'must be base64'],
    [{ scheme: standardWebhooks, secrets: 'whsec_' }, 'must be base64'],
    [{ scheme: standardWebhooks, secrets: 'MfKQwhsec_9r8G' }, 'must be base64'],
    [{ scheme: standardWebhooks, secrets: 'whsec_YW=J' }, 'must be base64'],
    [{ scheme: standardWebhooks, secrets: 'whpk_AAAA' }, 'must have 32 bytes'],
    [{ scheme: github, secrets: 's', tolerance: 1000 }, 'github signs no time, so leave tolerance out'],
    [{ scheme: shopify, secrets: 's', tolerance: 1000 }, 'shopify signs no time, so leave tolerance out'],
    [{ scheme: stripe, secrets: 's', tolerance: 0 }, 'webhook({ tolerance }) must be a number'],
    [{ scheme: stripe, secrets: 's', tolerance: 300 }, 'a number of milliseconds, at least 1000, not 300'],
    [{ scheme: stripe, secrets: 's', repeated: 'refuse' }, 'webhook({ repeated }) needs spent'],
    [{ scheme: stripe, secrets: 's', spent, repeated: 'ignore' }, "must be 'accept' or 'refuse'"],
  ])('webhook(%j)', (options, message) => {
    expect(() => webhook(options as never)).toThrow(message)
  })

  it.each([
    [{ ...acme, encoding: undefined }, 'write encoding for an HMAC, or verify for another way'],
    [{ ...acme, verify: Boolean }, 'write encoding for an HMAC, or verify for another way'],
    [{ ...acme, encoding: undefined, verify: Boolean, algorithm: 'sha1' }, 'an algorithm belongs to an HMAC'],
    [{ ...acme, algorithm: 'md5' }, "must be 'sha1' or 'sha256' or 'sha512'"],
  ])('webhookScheme(%j)', (options, message) => {
    expect(() => webhookScheme({ content: ({ body }: { body: Buffer }) => body, ...options } as never)).toThrow(message)
  })

  it.each([
    [{}, 'httpSignature({ keyOf }) must be a function'],
    [{ keyOf }, 'httpSignature({ origin })'],
    [{ ...signature, origin: 'https://api.example/a' }, 'must be an origin without a path'],
    [{ ...signature, origin: 'http://api.example' }, 'https'],
    [{ ...signature, components: [] }, 'must name at least one component'],
    [{ ...signature, components: '@method' }, 'must name at least one component'],
    [{ ...signature, components: ['@method', '@status'] }, 'must name at least one component'],
    [{ ...signature, components: ['method'] }, '"method" is a field; write "@method"'],
    [{ ...signature, maxAge: 60 }, 'a number of milliseconds, at least 1000, not 60'],
    [{ ...signature, components: ['Content-Digest'] }, 'in lower case'],
    [{ ...signature, algorithms: [] }, 'httpSignature({ algorithms }) must be'],
    [{ ...signature, algorithms: ['none'] }, 'rsa-pss-sha512'],
    [{ ...signature, spent: {} }, 'has no method use'],
  ])('httpSignature(%j)', (options, message) => {
    expect(() => httpSignature(options as never)).toThrow(message)
  })
})
