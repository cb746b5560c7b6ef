/** What the libraries of the senders sign passes, and no mutation of it does. H-04. */
import { verify as octokitVerify, sign as octokitSign } from '@octokit/webhooks-methods'
import fc from 'fast-check'
import { isRight } from 'fp-ts/lib/Either.js'
import { github, standardWebhooks, stripe, svix, webhook, type WebhookOptions } from 'koa-with-auth/webhooks'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import { describe, expect, it } from 'vitest'
import { Readable } from 'node:stream'
import { mockRequest } from 'koa-with-auth/testing'

const SECRET = `whsec_${Buffer.from('an example secret of 32 bytes ..').toString('base64')}`
const stripeClient = new Stripe('sk_test_1')

/** Whether a delivery passes. */
const passes = async (options: WebhookOptions, fields: ReadonlyArray<readonly [string, string]>, body: Buffer) => {
  const request = mockRequest({
    method: 'POST',
    fields: [...fields, ['Content-Length', String(body.length)]],
  })
  // the body of a request without a socket
  const source = Readable.from(body.length === 0 ? [] : [body])
  source.on('data', (chunk: Buffer) => request.req.push(chunk))
  source.on('end', () => request.req.push(null))
  return isRight(await webhook(options).evaluate(request))
}

interface Oracle {
  readonly name: string
  readonly options: WebhookOptions
  readonly sign: (body: string) => Promise<ReadonlyArray<readonly [string, string]>>
  /** Whether the library accepts it itself. */
  readonly verifies: (fields: ReadonlyArray<readonly [string, string]>, body: string) => Promise<boolean>
}

const isFine = (check: () => unknown): boolean => {
  try {
    check()
    return true
  } catch (error) {
    // it parses the body after the check
    return error instanceof SyntaxError
  }
}

const oracles: ReadonlyArray<Oracle> = [
  {
    name: 'standardwebhooks',
    options: { scheme: standardWebhooks, secrets: SECRET },
    sign: async (body) => {
      const at = new Date()
      return [
        ['Webhook-Id', 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'],
        ['Webhook-Timestamp', String(Math.floor(at.getTime() / 1000))],
        ['Webhook-Signature', new Webhook(SECRET).sign('msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', at, body)],
      ]
    },
    verifies: async (fields, body) => isFine(() => new Webhook(SECRET).verify(body, Object.fromEntries(fields))),
  },
  {
    name: 'svix',
    options: { scheme: svix, secrets: SECRET },
    sign: async (body) => {
      const at = new Date()
      return [
        ['Svix-Id', 'msg_1'],
        ['Svix-Timestamp', String(Math.floor(at.getTime() / 1000))],
        ['Svix-Signature', new SvixWebhook(SECRET).sign('msg_1', at, body)],
      ]
    },
    verifies: async (fields, body) => isFine(() => new SvixWebhook(SECRET).verify(body, Object.fromEntries(fields))),
  },
  {
    name: 'stripe',
    options: { scheme: stripe, secrets: SECRET },
    sign: async (body) => [
      ['Stripe-Signature', stripeClient.webhooks.generateTestHeaderString({ payload: body, secret: SECRET })],
    ],
    verifies: async (fields, body) =>
      isFine(() => stripeClient.webhooks.constructEvent(body, fields[0]?.[1] ?? '', SECRET)),
  },
  {
    name: '@octokit/webhooks-methods',
    options: { scheme: github, secrets: SECRET },
    sign: async (body) => [['X-Hub-Signature-256', await octokitSign(SECRET, body)]],
    verifies: (fields, body) => octokitVerify(SECRET, body, fields[0]?.[1] ?? ''),
  },
]

const body = fc
  .oneof(fc.json(), fc.string({ unit: 'binary', minLength: 1 }), fc.string({ minLength: 1 }))
  .filter((text) => text.isWellFormed() && text !== '')

// Another character at a place, one more, or one less; the position is a part of the length
const mutation = fc.record({
  where: fc.nat(),
  how: fc.constantFrom('change', 'insert', 'remove'),
  character: fc.constantFrom('0', 'a', 'A', '=', '.', ' ', ',', 'f', '+', '/'),
})
const mutated = (
  text: string,
  { where, how, character }: { where: number; how: string; character: string },
): string => {
  const at = text.length === 0 ? 0 : where % text.length
  return text.slice(0, at) + (how === 'remove' ? '' : character) + text.slice(how === 'insert' ? at : at + 1)
}

// A hexadecimal digit in capitals is the same digit
const hexadecimal = ['stripe', '@octokit/webhooks-methods']

describe.each(oracles)('$name', ({ name: oracle, options, sign, verifies }) => {
  const digits = (header: string) => (hexadecimal.includes(oracle) ? header.toLowerCase() : header)

  it('signs what passes', () =>
    fc.assert(
      fc.asyncProperty(body, async (text) => {
        const fields = await sign(text)
        expect(await verifies(fields, text)).toBe(true)
        expect(await passes(options, fields, Buffer.from(text))).toBe(true)
      }),
    ))

  it('signs no mutation of a body', () =>
    fc.assert(
      fc.asyncProperty(body, mutation, async (text, how) => {
        const other = Buffer.from(mutated(text, how))
        fc.pre(!other.equals(Buffer.from(text)))
        expect(await passes(options, await sign(text), other)).toBe(false)
      }),
    ))

  it('signs no mutation of a header', () =>
    fc.assert(
      fc.asyncProperty(body, fc.nat(), mutation, async (text, which, how) => {
        const fields = await sign(text)
        const at = which % fields.length
        const [name = '', value = ''] = fields[at] ?? []
        const other = mutated(value, how).replace(/^[ \t]+|[ \t]+$/g, '')
        fc.pre(digits(other) !== digits(value))
        expect(await passes(options, fields.with(at, [name, other]), Buffer.from(text))).toBe(false)
        expect(await passes(options, fields.toSpliced(at, 1), Buffer.from(text))).toBe(false)
      }),
    ))
})
