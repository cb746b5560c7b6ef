/**
 * Tokens that are bound to their client: to a key (RFC 9449), to a TLS certificate (RFC 8705), or to both.
 *
 * | the token is bound to       | it is accepted                                                  |
 * |-----------------------------|-----------------------------------------------------------------|
 * | nothing                     | as a bearer token, unless `required`                            |
 * | a key                       | under the scheme DPoP with a proof, never as a bearer token     |
 * | a certificate               | as a bearer token on a connection with this certificate         |
 * | a key and a certificate     | under the scheme DPoP, if both hold                             |
 * | anything else, or more      | never (RFC 7800 §3.1)                                           |
 */
import { hash } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { invalid, type AuthError } from '../core/AuthError.js'
import { ownFields } from '../core/data.js'
import { checkOptions, flag, maybe, unchecked } from '../core/options.js'
import { certificateReader, type CertificateReader, type CertificateSource } from '../kinds/certificateSource.js'
import { objectOf } from './claims.js'
import { dpopOf, type DpopOptions } from './dpop.js'
import type { Confirm, TokenScheme } from './tokenKind.js'

/** Which bindings of tokens are checked. At least one. */
export interface BoundOptions {
  /** Tokens that are bound to a key (`cnf.jkt`), with a proof of possession for each request. */
  readonly dpop?: DpopOptions | undefined
  /**
   * Tokens that are bound to a certificate (`cnf['x5t#S256']`), with the certificate of the connection. It may be signed by anybody
   * (RFC 8705 §2.2): make the server with `requestCert: true` and `rejectUnauthorized: false`.
   */
  readonly certificate?: BoundCertificateOptions | undefined
  /** Whether tokens that are bound to nothing are refused. Default `false`. */
  readonly required?: boolean | undefined
}

/** Where the certificate comes from that a token is bound to. */
export interface BoundCertificateOptions {
  /** The TLS socket of this process, or a header of proxies that are named by their addresses. */
  readonly from: CertificateSource
}

/** What the option `bound` means for tokens. */
export interface Bound {
  /** The members of `cnf` that are checked. */
  readonly confirmations: ReadonlyArray<string>
  readonly isRequired: boolean
  /** The schemes of the Authorization field, in the order of the challenges. */
  readonly schemes: readonly [TokenScheme, ...TokenScheme[]]
}

const JKT = 'jkt'
const X5T = 'x5t#S256'

const where = 'httpJwt({ bound: { ... } })'

const refused: E.Either<AuthError, never> = E.left(invalid)

const confirmed: E.Either<AuthError, true> = E.right(true)

/** The value of a member of `cnf`; the claims were checked before. */
const memberOf = (claims: object, name: string): string | undefined => {
  const value = objectOf(ownFields(claims)['cnf'])?.[name]
  return typeof value === 'string' ? value : undefined
}

// RFC 8705 §3.1
const isHolder = (reader: CertificateReader | undefined, request: Request, claims: object): boolean => {
  const thumbprint = memberOf(claims, X5T)
  if (thumbprint === undefined || reader === undefined) return true
  const sent = reader.extract(request)
  const certificate = O.isSome(sent) ? reader.decode(sent.value) : undefined
  return certificate !== undefined && hash('sha256', certificate.raw, 'base64url') === thumbprint
}

const readerOf = (given: BoundCertificateOptions): CertificateReader => {
  const { from } = checkOptions('httpJwt({ bound: { certificate: { ... } } })', given, { from: unchecked })
  return certificateReader('httpJwt: certificate', from)
}

/** Checks the option. Throws a TypeError for one that cannot work. `bearer`: the scheme of tokens that are bound to no key. */
export const boundOf = (given: BoundOptions, bearer: TokenScheme, clockTolerance: number): Bound => {
  const checks = { dpop: unchecked, certificate: unchecked, required: maybe(flag) }
  const { dpop, certificate, required: isRequired = false } = checkOptions(where, given, checks)
  const reader = certificate === undefined ? undefined : readerOf(certificate)
  if (dpop === undefined && reader === undefined) {
    throw new TypeError(`${where} must have dpop or certificate: what a token is bound to must be checked`)
  }
  const notes = [...bearer.notes, ...(reader === undefined ? [] : [`bound to a certificate ${reader.words}`])]
  const confirmations = [...(dpop === undefined ? [] : [JKT]), ...(reader === undefined ? [] : [X5T])]
  // RFC 9449 §7.2: a token that is bound to a key is never a bearer token
  const confirmBearer: Confirm = (request, _token, claims) =>
    memberOf(claims, JKT) === undefined && isHolder(reader, request, claims) ? confirmed : refused
  const plain: TokenScheme = { ...bearer, notes, confirming: () => confirmBearer }
  if (dpop === undefined) return { confirmations, isRequired, schemes: [plain] }
  const keys = dpopSchemeOf(dpop, clockTolerance, { ...bearer, notes }, reader)
  return { confirmations, isRequired, schemes: isRequired && reader === undefined ? [keys] : [plain, keys] }
}

const dpopSchemeOf = (
  options: DpopOptions,
  clockTolerance: number,
  bearer: TokenScheme,
  reader: CertificateReader | undefined,
): TokenScheme => {
  const { parameters, responseFields, checking } = dpopOf(options, clockTolerance)
  return {
    scheme: { type: 'http', scheme: 'dpop' },
    name: 'DPoP',
    parameters,
    reads: ['DPoP'],
    responseFields,
    notes: [...bearer.notes, 'bound to a key'],
    confirming: (own) => {
      const check = checking(own)
      return (request, token, claims) =>
        isHolder(reader, request, claims) ? check(request, token, memberOf(claims, JKT)) : refused
    },
  }
}
