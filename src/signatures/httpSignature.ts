/** `httpSignature`: requests that their clients sign (RFC 9421), with the digest of their bodies (RFC 9530). */
import * as E from 'fp-ts/lib/Either.js'
import type { KeyObject } from 'node:crypto'
import type { Request } from '../core/Request.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { documented, kindChecks, type KindOptions } from '../core/Description.js'
import type { UsedOnce } from '../core/OneTimeIds.js'
import { functionName } from '../core/functionName.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, token, type Check } from '../core/options.js'
import { checkUrl } from '../jwt/fetching.js'
import type { Keys } from '../jwt/signature.js'
import { hasBody, MAX_BODY } from '../webhooks/rawBody.js'
import { algorithmNames, signatureFields, verificationKeys, refusedBy, verifying } from './verification.js'
import type { SignatureAlgorithm, SignatureRules } from './verification.js'

/** The client of a request whose signature is good: the value of `ctx.request.auth`. */
export interface SignedRequest<O> {
  /** The owner that `keyOf` returned. */
  readonly owner: O
  readonly keyid: string
  /** When it was signed. */
  readonly created: Date
  /** The components that the signature covers, such as `@method`, `content-digest` or `"@query-param";name="id"`. */
  readonly covered: string[]
}

/** A key, and its owner. */
export interface SignatureKey<O> {
  /** A public key, or a secret of 32 bytes or more for `hmac-sha256`: a JWK or a KeyObject. */
  readonly key: KeyObject | object
  readonly owner: O
}

type Nothing = undefined | null | false

/** The options of both kinds. */
export interface SignatureOptions extends KindOptions {
  /** The origin of the site or API as its clients call it, such as `https://api.example`. It is never read from Host. */
  readonly origin: string
  /** How old a signature may be, in milliseconds. Default 60 000. */
  readonly maxAge?: number | undefined
  /** Where nonces are used, such as `oneTimeIds(store)` of `koa-with-auth/stores`. With it, each signature counts once. */
  readonly spent?: UsedOnce | undefined
  /** The longest body whose digest is checked, in bytes. Default 1 MB (1 048 576). */
  readonly maxLength?: number | undefined
}

export interface HttpSignatureOptions<O> extends SignatureOptions {
  /** Finds the key with this id; nothing for a key that is not known. */
  readonly keyOf: (keyid: string, request: Request) => SignatureKey<O> | Nothing | Promise<SignatureKey<O> | Nothing>
  /**
   * The least that a signature must cover: names of fields in lower case, derived components, or identifiers as they are written, such
   * as `"@query-param";name="id"`. Default `@method`, `@target-uri`, and `content-digest` if there is a body.
   */
  readonly components?: readonly [string, ...string[]] | undefined
  /** The purpose of signatures (RFC 9421 §2.3). Without it, signatures with a tag are for another application, and do not count. */
  readonly tag?: string | undefined
  /** The algorithms that are accepted. Default: those of the registry. The key decides which of them it can be. */
  readonly algorithms?: readonly [SignatureAlgorithm, ...SignatureAlgorithm[]] | undefined
}

const caller = 'httpSignature'

const derivedNames = ['@method', '@authority', '@scheme', '@target-uri', '@request-target', '@path', '@query']

const components: Check = (where, value) => {
  const list: ReadonlyArray<unknown> = Array.isArray(value) ? value : []
  const isComponent = (one: unknown): boolean =>
    typeof one === 'string' &&
    (one.startsWith('"') || derivedNames.includes(one) || (token.test(one) && one === one.toLowerCase()))
  // no request has such a field, so it would refuse all of them
  const bare = list.find((one): one is string => typeof one === 'string' && derivedNames.includes(`@${one}`))
  if (bare !== undefined) throw new TypeError(`${where}: "${bare}" is a field; write "@${bare}"`)
  if (list.length > 0 && list.every(isComponent)) return
  throw new TypeError(
    `${where} must name at least one component: a field in lower case, one of ${derivedNames.join(', ')}, or an identifier such as '"@query-param";name="id"'`,
  )
}

const publicOrigin: Check = (where, value) => {
  checkUrl(where, value)
  const { origin } = new URL(value)
  if (origin !== value) throw new TypeError(`${where} must be an origin without a path, such as "${origin}"`)
}

export const commonChecks = {
  origin: publicOrigin,
  maxAge: is.maybe(is.milliseconds),
  maxLength: is.maybe(is.positive),
  spent: is.maybe(is.withMethods(['use'], 'pass oneTimeIds(store) of koa-with-auth/stores')),
  ...kindChecks,
}

const checks = {
  keyOf: is.hook(2),
  components: is.maybe(components),
  tag: is.maybe(is.nonEmpty),
  algorithms: is.maybe(
    is.listOf(
      (one) => algorithmNames.some((name) => name === one),
      `must be an array of at least one of ${algorithmNames.join(', ')}`,
      1,
    ),
  ),
  ...commonChecks,
}

const MAX_AGE = 60_000

const usual = ['@method', '@target-uri']

/**
 * Authenticates requests by HTTP Message Signatures (RFC 9421). The body is checked by its `Content-Digest` (RFC 9530), if a signature
 * covers it. A parser behind the guard reads the same bytes. One good signature is enough; others may be there. A parameter or a flag
 * that is not understood is refused. Throws a TypeError for options that cannot work. It needs the package `structured-headers`.
 *
 * @example
 * import { httpSignature } from 'koa-with-auth/signatures'
 *
 * const keys = new Map([['partner-1', { kty: 'OKP', crv: 'Ed25519', x: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs' }]])
 * const partner = httpSignature({
 *   origin: 'https://api.example',
 *   keyOf: (keyid) => {
 *     const key = keys.get(keyid)
 *     return key && { key, owner: { partner: keyid } }
 *   },
 * })
 */
export const httpSignature = <O>(options: HttpSignatureOptions<O>): Authenticator<SignedRequest<O>> => {
  const given = checkOptions(caller, options, checks)
  const { keyOf, components, tag } = given
  const allowed: ReadonlyArray<string> = given.algorithms ?? algorithmNames
  const known = new WeakMap<object, Keys>()
  const prepared = (key: object): Keys => {
    const keys = known.get(key) ?? verificationKeys(`${caller}({ keyOf }): its key`, key)
    known.set(key, keys)
    return keys
  }
  return signatureKind<SignedRequest<O>>(given, {
    caller,
    tag,
    algorithms: allowed,
    signerOf: async ({ parameters: { keyid, created } }, covered, { request }) => {
      const wanted = components ?? (hasBody(request) ? [...usual, 'content-digest'] : usual)
      const isCovered = (one: string) =>
        covered.some(({ name, isWhole, named }) => (isWhole && name === one) || named === one)
      if (!wanted.every(isCovered)) return refusedBy('components')
      const found = await keyOf(keyid, request)
      if (found === undefined || found === null || found === false) return refusedBy('key')
      const names = covered.map(({ named }) => named)
      const principal = { owner: found.owner, keyid, created: new Date(created * 1000), covered: names }
      return E.right({ keys: prepared(found.key), principal })
    },
    reads: (components ?? ['content-digest']).filter((one) => token.test(one)),
    words: [
      `covers ${(components ?? [...usual, 'content-digest of a body']).join(' ')}`,
      ...(tag === undefined ? [] : [`tag ${tag}`]),
      `algorithms ${allowed.join(' ')}`,
      `keys by ${functionName(keyOf)}`,
    ],
    functions: [[functionName(keyOf), keyOf]],
  })
}

declareFactory(caller, httpSignature)

/** The rules of a kind for signatures, and its notes for the audit and OpenAPI. */
interface SignatureKind<P> extends Pick<SignatureRules<P>, 'caller' | 'tag' | 'algorithms' | 'signerOf'> {
  /** Header fields that it reads beside `Signature` and `Signature-Input`. */
  readonly reads: ReadonlyArray<string>
  readonly words: ReadonlyArray<string>
  readonly functions: ReadonlyArray<readonly [words: string, f: Function]>
}

/** The common part of the kinds: an authenticator of signatures that follow rules. */
export const signatureKind = <P>(
  options: SignatureOptions,
  { reads, words, functions, ...kind }: SignatureKind<P>,
): Authenticator<P> => {
  const { realm, origin, spent, maxAge = MAX_AGE, maxLength = MAX_BODY } = options
  const reading = ['signature-input', ...reads]
  const wrappers = [
    `signed for ${origin}`,
    ...words,
    `maxAge ${maxAge} ms`,
    `maxLength ${maxLength}`,
    ...(spent === undefined ? [] : ['nonce used once']),
  ]
  const made = kindOf({
    ...documented({ type: 'apiKey', in: 'header', name: 'Signature' }, options),
    challenge: Challenge.make('Signature', {
      ...(realm !== undefined && { realm }),
      ...(kind.tag !== undefined && { tag: kind.tag }),
    }),
    ambient: false,
    extract: signatureFields,
    authenticate: verifying({ ...kind, origin, maxAge, maxLength, spent }),
    leaf: { reads: [...new Set(reading)], headers: reading.filter((name) => name !== 'content-digest') },
    notes: { wrappers, functions },
  })
  // Safe: it lets in the principals that `signerOf` finds
  return made as Authenticator<P>
}
