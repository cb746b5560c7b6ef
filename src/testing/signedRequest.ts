/** A signed request (RFC 9421), for tests of `httpSignature` and `webBotAuth`. It shares no code with the verification. */
import { createHmac, hash, sign, type KeyObject } from 'node:crypto'
import * as is from '../core/checks.js'
import { checkOptions } from '../core/options.js'
import type { HeaderLine, RequestSpec } from './requests.js'

/** How a request is signed. */
export interface SigningOptions {
  /** A private key (RSA, P-256, P-384, Ed25519), or a secret for `hmac-sha256`. */
  readonly key: KeyObject
  readonly keyid: string
  /** The origin of the API, such as `https://api.example`. */
  readonly origin: string
  /** The components that are covered, in order. Default `@method`, `@target-uri`, `content-digest` with a body, and the agent. */
  readonly components?: ReadonlyArray<string> | undefined
  /** The body that will be sent. Its digest becomes `Content-Digest`. */
  readonly body?: string | Uint8Array | undefined
  /** Default: now. */
  readonly created?: Date | undefined
  readonly expires?: Date | undefined
  readonly nonce?: string | undefined
  readonly tag?: string | undefined
  /** Written as the parameter `alg`, if it is given. RSA keys sign with `rsa-pss-sha512` unless it says `rsa-v1_5-sha256`. */
  readonly alg?: string | undefined
  /** The name of the signature. Default `sig`. */
  readonly label?: string | undefined
  /** The origin of the agent, for `webBotAuth`. It becomes `Signature-Agent`, is covered, and has the tag `web-bot-auth`. */
  readonly agent?: string | undefined
}

const signingChecks = {
  key: is.unchecked,
  keyid: is.nonEmpty,
  origin: is.nonEmpty,
  components: is.unchecked,
  body: is.unchecked,
  created: is.unchecked,
  expires: is.unchecked,
  nonce: is.maybe(is.nonEmpty),
  tag: is.maybe(is.nonEmpty),
  alg: is.maybe(is.nonEmpty),
  label: is.maybe(is.nonEmpty),
  agent: is.maybe(is.nonEmpty),
}

const quotedParameter = (text: string): string => `"${text.replace(/["\\]/g, '\\$&')}"`

const unixSeconds = (date: Date): number => Math.floor(date.getTime() / 1000)

/**
 * Signs a request: the same spec with `Signature-Input`, `Signature`, and `Content-Digest` for a body. Send the body beside it; a spec
 * has none. Throws a TypeError for options that cannot work, and for a component that the request does not have.
 *
 * @example
 * import { generateKeyPairSync } from 'node:crypto'
 * import { httpSignature } from 'koa-with-auth/signatures'
 * import { mockRequest, signedRequest } from 'koa-with-auth/testing'
 *
 * const { privateKey, publicKey } = generateKeyPairSync('ed25519')
 * const origin = 'https://api.example'
 * const partner = httpSignature({ origin, keyOf: () => ({ key: publicKey, owner: 'acme' }) })
 * const spec = signedRequest({ url: '/orders?open' }, { key: privateKey, keyid: 'k1', origin })
 * const result = await partner.evaluate(mockRequest(spec))
 * assert.strictEqual(result._tag === 'Right' && result.right.owner, 'acme')
 */
export const signedRequest = (
  spec: RequestSpec,
  options: SigningOptions,
): RequestSpec & { readonly fields: ReadonlyArray<HeaderLine> } => {
  const given = checkOptions('signedRequest(spec, options)', options, signingChecks)
  const { key, keyid, origin, body, created = new Date(), expires, nonce, alg, label = 'sig', agent } = given
  if ('body' in spec) throw new TypeError('signedRequest(spec, options): a spec has no body; write it in the options')
  const { method = 'GET', url = '/' } = spec
  const fields: HeaderLine[] = [...(spec.fields ?? [])]
  const usual = ['@method', '@target-uri']
  if (body !== undefined) {
    fields.push(['Content-Digest', `sha-256=:${hash('sha256', body, 'base64')}:`])
    usual.push('content-digest')
  }
  if (agent !== undefined) {
    fields.push(['Signature-Agent', `${label}=${quotedParameter(agent)}`])
    usual.push(`"signature-agent";key=${quotedParameter(label)}`)
  }
  const [path = '/', ...query] = url.split('?')
  const derived: Readonly<Record<string, string>> = {
    '@method': method,
    '@authority': new URL(origin).host,
    '@scheme': new URL(origin).protocol.slice(0, -1),
    '@target-uri': origin + url,
    '@request-target': url,
    '@path': path,
    '@query': `?${query.join('?')}`,
  }
  const valueOf = (component: string): string => {
    if (component.startsWith('"signature-agent"')) return quotedParameter(agent ?? '')
    const lines = fields.flatMap(([name, value]) => (name.toLowerCase() === component ? [value.trim()] : []))
    const value = derived[component] ?? (lines.length > 0 ? lines.join(', ') : undefined)
    if (value === undefined) throw new TypeError(`signedRequest: the request has no ${component}`)
    return value
  }
  const components = given.components ?? usual
  const written = components.map((one) => (one.startsWith('"') ? one : quotedParameter(one)))
  const tag = given.tag ?? (agent === undefined ? undefined : 'web-bot-auth')
  const until = expires ?? (agent === undefined ? undefined : new Date(created.getTime() + 60_000))
  const parameters = Object.entries({ created, expires: until, keyid, alg, nonce, tag }).flatMap(([name, value]) => {
    if (value === undefined) return []
    return [`${name}=${typeof value === 'string' ? quotedParameter(value) : unixSeconds(value)}`]
  })
  const input = `(${written.join(' ')});${parameters.join(';')}`
  const base = [
    ...components.map((component, at) => `${written[at]}: ${valueOf(component)}`),
    `"@signature-params": ${input}`,
  ].join('\n')
  const signature = signatureOf(key, Buffer.from(base), alg).toString('base64')
  return {
    ...spec,
    fields: [...fields, ['Signature-Input', `${label}=${input}`], ['Signature', `${label}=:${signature}:`]],
  }
}

const RSA_PSS_PADDING = 6

const signatureOf = (key: KeyObject, base: Buffer, alg: string | undefined): Buffer => {
  if (key.type === 'secret') return createHmac('sha256', key).update(base).digest()
  const { asymmetricKeyType, asymmetricKeyDetails: { namedCurve } = {} } = key
  if (asymmetricKeyType === 'ed25519') return sign(null, base, key)
  if (asymmetricKeyType === 'ec') {
    return sign(namedCurve === 'secp384r1' ? 'sha384' : 'sha256', base, { key, dsaEncoding: 'ieee-p1363' })
  }
  if (alg === 'rsa-v1_5-sha256') return sign('sha256', base, key)
  return sign('sha512', base, { key, padding: RSA_PSS_PADDING, saltLength: 64 })
}
