/**
 * How senders sign their deliveries. A scheme says where the signatures are, how they are made, and how a secret becomes a key.
 * An id that a sender does not sign is no id: a replay can change it.
 */
import { createHmac, createPublicKey, hash, verify, type KeyObject } from 'node:crypto'
import { constantTimeEqual } from '../crypto/secrets.js'
import * as is from '../core/checks.js'
import type { Request } from '../core/Request.js'
import { checkOptions, declareFactory, token, type Checks } from '../core/options.js'
import { functionOf } from '../core/functionName.js'

export interface Delivery {
  /** The signatures, as they were sent. One of them must be good. */
  readonly signatures: ReadonlyArray<string>
  readonly id?: string | undefined
  readonly at?: Date | undefined
}

/** The signed content: the parts follow each other without a separator. */
type SignedBytes = string | Buffer | ReadonlyArray<string | Buffer>

/** The places of signatures, and the signed content. */
interface SignedParts {
  /** The header with the signatures. */
  readonly header: string
  /** Reads the header, and others by `get`, which returns `undefined` for a missing header. Returns `undefined` for a value that is no signature. */
  readonly read: (value: string, get: (name: string) => string | undefined) => Delivery | undefined
  /** The content that the sender signs: parts that follow each other. For a sender that signs its address, `request` has the path. */
  readonly content: (delivery: {
    readonly id: string | undefined
    readonly at: Date | undefined
    readonly body: Buffer
    readonly request: Request
  }) => SignedBytes
}

/** Your own way to sign deliveries, by HMAC or by `verify`. */
export interface WebhookSchemeOptions extends SignedParts {
  /** How a signature is written, by HMAC. Hexadecimal digits are in lower or in upper case. */
  readonly encoding?: 'hex' | 'base64' | undefined
  /** The hash of the HMAC. Default `sha256`. */
  readonly algorithm?: 'sha1' | 'sha256' | 'sha512' | undefined
  /**
   * Checks a signature by another way, such as Ed25519; then `encoding` and `algorithm` are left out. It is called for each signature and
   * each of the `secrets`, which may be public keys. The signature is good if it returns `true`, or a promise of it. An exception is a 500.
   */
  readonly verify?: ((signed: SignedContent) => boolean | Promise<boolean>) | undefined
}

/** A signature, and the content that it must sign. */
export interface SignedContent {
  /** The result of `content`, as bytes. */
  readonly content: Buffer
  readonly signature: string
  /** One of the `secrets` of `webhook`. */
  readonly secret: string
  readonly request: Request
}

/** A key that was made of a secret. */
export interface WebhookKey {
  /** Whether one of the signatures is of this key. All are compared, in constant time. */
  readonly hasSigned: (
    content: Buffer,
    signatures: ReadonlyArray<string>,
    request: Request,
  ) => boolean | Promise<boolean>
  readonly digestOf: (content: Buffer | string) => string
}

/** How a sender signs. */
export interface WebhookScheme extends SignedParts {
  /** Its name, for the audit. */
  readonly name: string
  /** The name of the sender in OpenAPI. */
  readonly sender: string
  /** Other headers that it reads. */
  readonly reads: ReadonlyArray<string>
  /** Whether it signs a time; `undefined` if that is not known. */
  readonly isTimed: boolean | undefined
  /** Makes a key. Throws a TypeError for a secret that cannot be a key. */
  readonly keyOf: (where: string, secret: string) => WebhookKey
}

const bytesIn = (part: string | Buffer): Buffer => (typeof part === 'string' ? Buffer.from(part) : part)

export const joinedParts = (content: SignedBytes): Buffer =>
  typeof content === 'string' || Buffer.isBuffer(content) ? bytesIn(content) : Buffer.concat(content.map(bytesIn))

/** A key for HMAC. `prefix` is written before each signature. */
const hmacKey = (
  key: string | Buffer,
  encoding: 'hex' | 'base64',
  prefix = '',
  algorithm: WebhookSchemeOptions['algorithm'] = 'sha256',
): WebhookKey => ({
  hasSigned: (content, signatures) => {
    const expected = prefix + createHmac(algorithm, key).update(content).digest(encoding)
    const written = (one: string) => (encoding === 'hex' ? one.toLowerCase() : one)
    // all of them, so that the time does not show which signature was good
    return signatures.map((one) => constantTimeEqual(written(one), expected)).includes(true)
  },
  digestOf: (content) => createHmac('sha256', key).update(content).digest('base64url'),
})

const digestBy = (text: string, content: Buffer | string): string =>
  hash('sha256', Buffer.concat([Buffer.from(`${text}\n`), Buffer.from(content)]), 'base64url')

// A time must be written as its sender computes with it: 1700000000.0 and 01700000000 are other strings
const timeIn = (text: string | undefined): Date | undefined =>
  text !== undefined && /^(?:0|[1-9]\d{0,11})$/.test(text) ? new Date(Number(text) * 1000) : undefined

const secondsOf = (at: Date | undefined): string => String((at?.getTime() ?? 0) / 1000)

// --- Standard Webhooks (https://github.com/standard-webhooks/standard-webhooks, specification 1.0)

const V1 = 'v1,'
const V1A = 'v1a,'

/** The most signatures that are looked at, because each costs a check. */
const MAX_SIGNATURES = 20

// A proxy that joins two headers writes a blank and a comma
const signatureLike = /^\w+,[\w+/=-]*$/

// `a.1` and `2` would be signed as `a` and `1.2`
const idLike = /^[\x21-\x2d\x2f-\x7e]{1,256}$/

const secretBytes = (where: string, text: string): Buffer => {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length > 0 && bytes.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '')) return bytes
  throw new TypeError(`${where} must be base64, after "whsec_" or "whpk_" if there is a prefix`)
}

const publicKeyIn = (where: string, text: string): KeyObject => {
  const bytes = secretBytes(where, text)
  if (bytes.length !== 32) throw new TypeError(`${where}: a key "whpk_" must have 32 bytes (Ed25519)`)
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') }, format: 'jwk' })
}

const ed25519Key = (key: KeyObject, text: string): WebhookKey => ({
  hasSigned: (content, signatures) =>
    signatures
      .filter((one) => one.startsWith(V1A))
      .map((one) => {
        const written = one.slice(V1A.length)
        const bytes = Buffer.from(written, 'base64')
        return bytes.toString('base64') === written && bytes.length === 64 && verify(null, content, key, bytes)
      })
      .includes(true),
  digestOf: (content) => digestBy(text, content),
})

const standard = (name: string, prefix: string): WebhookScheme => ({
  name,
  sender: name,
  header: `${prefix}-Signature`,
  reads: [`${prefix}-Id`, `${prefix}-Timestamp`],
  isTimed: true,
  read: (value, get) => {
    const id = get(`${prefix}-Id`)
    const at = timeIn(get(`${prefix}-Timestamp`))
    const signatures = value.split(' ')
    if (id === undefined || !idLike.test(id) || at === undefined) return undefined
    if (signatures.length > MAX_SIGNATURES || !signatures.every((one) => signatureLike.test(one))) return undefined
    return { id, at, signatures }
  },
  content: ({ id, at, body }) => [`${id}.${secondsOf(at)}.`, body],
  keyOf: (where, secret) => {
    if (secret.startsWith('whpk_')) return ed25519Key(publicKeyIn(where, secret.slice('whpk_'.length)), secret)
    return hmacKey(secretBytes(where, secret.replace(/^whsec_/, '')), 'base64', V1)
  },
})

/**
 * [Standard Webhooks](https://www.standardwebhooks.com): `v1` (HMAC-SHA256; a secret is `whsec_` and base64) and `v1a` (Ed25519; the
 * public key is `whpk_` and base64).
 */
export const standardWebhooks: WebhookScheme = standard('standardWebhooks', 'Webhook')

/** Standard Webhooks with the names of headers that Svix sends: `svix-id`, `svix-timestamp`, `svix-signature`. */
export const svix: WebhookScheme = standard('svix', 'Svix')

// --- senders with a scheme of theirs

type Sender = SignedParts &
  Pick<WebhookScheme, 'isTimed'> &
  Partial<Pick<WebhookScheme, 'reads'>> & { readonly encoding: 'hex' | 'base64' }

const sender = (name: string, { reads = [], encoding, ...scheme }: Sender): WebhookScheme => ({
  name,
  sender: name,
  reads,
  keyOf: (_where, secret) => hmacKey(secret, encoding),
  ...scheme,
})

/** GitHub: `X-Hub-Signature-256: sha256=` and hexadecimal digits, of the body. It signs no time and no id. */
export const github: WebhookScheme = sender('github', {
  header: 'X-Hub-Signature-256',
  encoding: 'hex',
  isTimed: false,
  read: (value) => (value.startsWith('sha256=') ? { signatures: [value.slice('sha256='.length)] } : undefined),
  content: ({ body }) => body,
})

/** Stripe: `Stripe-Signature: t=1492774577,v1=...`, of the time and the body. The secret of an endpoint begins with `whsec_`. */
export const stripe: WebhookScheme = sender('stripe', {
  header: 'Stripe-Signature',
  encoding: 'hex',
  isTimed: true,
  read: (value) => {
    const items = value.split(',').map((item) => /^(\w+)=([^=]*)$/.exec(item) ?? [])
    const valuesOf = (name: string) => items.flatMap(([, key, one]) => (key === name && one !== undefined ? [one] : []))
    const [time, ...others] = valuesOf('t')
    const at = timeIn(time)
    const signatures = valuesOf('v1')
    const isReadable = at !== undefined && others.length === 0 && items.every(({ length }) => length > 0)
    return isReadable && signatures.length > 0 && signatures.length <= MAX_SIGNATURES ? { at, signatures } : undefined
  },
  content: ({ at, body }) => [`${secondsOf(at)}.`, body],
})

/** Slack: `X-Slack-Signature: v0=` and hexadecimal digits, of `v0`, the time and the body. The secret is the signing secret. */
export const slack: WebhookScheme = sender('slack', {
  header: 'X-Slack-Signature',
  reads: ['X-Slack-Request-Timestamp'],
  encoding: 'hex',
  isTimed: true,
  read: (value, get) => {
    const at = timeIn(get('X-Slack-Request-Timestamp'))
    return at !== undefined && value.startsWith('v0=') ? { at, signatures: [value.slice('v0='.length)] } : undefined
  },
  content: ({ at, body }) => [`v0:${secondsOf(at)}:`, body],
})

/** Shopify: `X-Shopify-Hmac-Sha256`, base64 of the body. The secret is the client secret of the application. */
export const shopify: WebhookScheme = sender('shopify', {
  header: 'X-Shopify-Hmac-Sha256',
  encoding: 'base64',
  isTimed: false,
  read: (value) => ({ signatures: [value] }),
  content: ({ body }) => body,
})

// --- your own

const checks: Checks<WebhookSchemeOptions> = {
  header: is.nameLike(token),
  read: is.hook(2),
  content: is.hook(1),
  encoding: is.maybe(is.oneOf('hex', 'base64')),
  algorithm: is.maybe(is.oneOf('sha1', 'sha256', 'sha512')),
  verify: is.maybe(is.hook(1)),
}

const verifyKey = (check: NonNullable<WebhookSchemeOptions['verify']>, secret: string): WebhookKey => ({
  hasSigned: async (content, signatures, request) => {
    const isGood = async (signature: string) => check({ content, signature, secret, request })
    return (await Promise.all(signatures.map(isGood))).includes(true)
  },
  digestOf: (content) => digestBy(secret, content),
})

/**
 * Your own scheme: HMAC with SHA-1, SHA-256 or SHA-512, or a check by `verify`. `read` returns the signatures of the headers, and `content` the
 * signed content. Sign a time and an id, so that a delivery cannot be replayed; separate them by a character that neither can contain. Throws a
 * TypeError for options that cannot work.
 *
 * @example
 * import { webhook, webhookScheme } from 'koa-with-auth/webhooks'
 *
 * const acme = webhookScheme({
 *   header: 'X-Acme-Signature',
 *   encoding: 'hex',
 *   read: (value, get) => {
 *     const seconds = Number(get('X-Acme-Time'))
 *     return Number.isInteger(seconds) ? { signatures: [value], at: new Date(seconds * 1000) } : undefined
 *   },
 *   content: ({ at, body }) => [`${at?.toISOString()}\n`, body],
 * })
 * const hook = webhook({ scheme: acme, secrets: 'an-example-secret' })
 */
export const webhookScheme = (options: WebhookSchemeOptions): WebhookScheme => {
  const { header, read, content, encoding, algorithm, verify } = checkOptions('webhookScheme', options, checks)
  if ((encoding === undefined) === (verify === undefined)) {
    throw new TypeError('webhookScheme({ encoding, verify }): write encoding for an HMAC, or verify for another way')
  }
  if (verify !== undefined && algorithm !== undefined) {
    throw new TypeError(
      'webhookScheme({ algorithm, verify }): an algorithm belongs to an HMAC; leave it out, because verify checks the signature',
    )
  }
  // the functions decide about the signed content, so the policy file shows when they change
  const by = verify === undefined ? [encoding, algorithm].filter(is.isFilled).join(' ') : functionOf('verify', verify)
  return {
    header,
    read,
    content,
    name: `scheme ${by} ${functionOf('read', read)} ${functionOf('content', content)}`,
    sender: 'webhook',
    reads: [],
    isTimed: undefined,
    keyOf: (_where, secret) =>
      verify === undefined ? hmacKey(secret, encoding ?? 'hex', '', algorithm) : verifyKey(verify, secret),
  }
}

declareFactory('webhookScheme', webhookScheme)
