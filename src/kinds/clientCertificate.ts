/**
 * Client certificates (mutual TLS): the client has proved to the TLS of this process, or of a named proxy, that it has the private key.
 *
 * | the certificate                                              | result      |
 * |--------------------------------------------------------------|-------------|
 * | none, or a header that no named proxy has sent               | `absent`    |
 * | a header that is no certificate, or was sent twice           | `notACertificate` |
 * | TLS did not verify its chain (`authorized` is false)         | `invalid`   |
 * | of another authority, with another fingerprint, for servers  | `invalid`   |
 * | not valid yet                                                | `invalid`   |
 * | not valid any more                                           | `expired`   |
 *
 * A certificate that was revoked is not recognized: give TLS the list (`crl`), or refuse it in `authenticate`. Browsers send
 * certificates by themselves, so writes of other sites are refused (CSRF).
 */
import { unlessThrown } from '../core/data.js'
import { X509Certificate } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import type { TLSSocket } from 'node:tls'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import * as t from 'io-ts'
import type { Request } from '../core/Request.js'
import { because, expired, invalid, type AuthError } from '../core/AuthError.js'
import { kindOf, type Authenticator } from '../core/Authenticator.js'
import * as Challenge from '../core/Challenge.js'
import { documented, kindChecks, type KindOptions, type MutualTlsScheme } from '../core/Description.js'
import type { PrincipalFromAnswer } from '../core/Result.js'
import { End, type EndSource } from '../core/ends.js'
import { restsOn } from '../core/Evidence.js'
import { fromNow, memory } from '../core/memory.js'
import { fromHeader, type Sent } from '../core/RequestFields.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory, token } from '../core/options.js'

/** Where the certificate of a client comes from. */
export type CertificateSource = 'socket' | CertificateHeader

/** A header with the certificate of a client. */
export interface CertificateHeader {
  /** The name of the header, such as `Client-Cert` (RFC 9440) or `X-SSL-Client-Cert`. */
  readonly header: string
  /** The addresses of the proxies that write it, or networks such as `10.0.0.0/8`. From others, the header is ignored. */
  readonly proxies: readonly [string, ...string[]]
}

/** The owner of a certificate, as the certificate names it. */
export interface CertificateOwner {
  /** The distinguished name, one attribute a line: `O=Acme\nCN=billing`. */
  readonly subject: string
  /** The other names, such as `DNS:billing.example`, if there are any. */
  readonly subjectAltName: string | undefined
  readonly issuer: string
  readonly serialNumber: string
  /** SHA-256, in hexadecimal digits with colons. */
  readonly fingerprint: string
}

interface ReadFrom<R> extends KindOptions {
  /** The TLS socket of this process, or a header of proxies that are named by their addresses. */
  readonly from: CertificateSource
  /** Decides about a good certificate, for each request. Default: returns its owner. */
  readonly authenticate?: ((request: Request, certificate: X509Certificate) => R) | undefined
}

/** The options of `clientCertificate`: whose certificates are accepted, and where they come from. */
export type ClientCertificateOptions<R> = ReadFrom<R> &
  (
    | {
        /** The certificates, as PEM, that issue those of clients. With an intermediate authority: its certificate. */
        readonly authorities: readonly [string, ...string[]]
        readonly fingerprints?: undefined
      }
    | {
        /** The SHA-256 fingerprints of clients' certificates: 64 hexadecimal digits, with or without colons. */
        readonly fingerprints: readonly [string, ...string[]]
        readonly authorities?: undefined
      }
  )

const checks = {
  from: is.unchecked,
  // `authoritiesIn` checks them
  authorities: is.unchecked,
  fingerprints: is.maybe((where, value) => fingerprintList(where, value)),
  authenticate: is.maybe(is.hook(2)),
  ...kindChecks,
}

const caller = 'clientCertificate'

/**
 * Authenticates by the client certificate of the TLS connection. The certificate must be valid now, and be issued by one of
 * `authorities`, or have one of `fingerprints`. On a socket of this process, TLS must have verified it, too: make the server with
 * `requestCert: true` and the authorities in `ca`. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { clientCertificate } from 'koa-with-auth'
 *
 * const fingerprint = '0e1f'.repeat(16) // of the certificate of the billing service
 * const service = clientCertificate({ from: 'socket', fingerprints: [fingerprint] })
 * const proxied = clientCertificate({
 *   from: { header: 'Client-Cert', proxies: ['10.0.0.1'] },
 *   fingerprints: [fingerprint],
 *   authenticate: (_request, { subject }) => ({ service: subject }),
 * })
 */
export const clientCertificate = <R = CertificateOwner>(
  options: ClientCertificateOptions<R>,
): Authenticator<PrincipalFromAnswer<R>> => {
  const given = checkOptions(caller, options, checks)
  const { from, authorities, fingerprints, realm } = given
  const ask: (request: Request, certificate: X509Certificate) => unknown = given.authenticate ?? certificateOwner
  if ((authorities === undefined) === (fingerprints === undefined)) {
    throw new TypeError(`${caller} needs exactly one of authorities and fingerprints`)
  }
  const { extract, decode, isAuthorized, words } = certificateReader(caller, from)
  const accepting = authorities === undefined ? pinned(fingerprints) : issuedBy(authorities)
  const endsAt = (sent: unknown) => Date.parse(decode(sent)?.validTo ?? '')
  const expiring: EndSource = {
    endFor: (request) => {
      const sent = extract(request)
      return O.isSome(sent) ? new End(endsAt(sent.value)) : undefined
    },
  }
  // Safe: it lets in the result of the hook; without a hook, `R` is the owner
  return kindOf<SentCertificate, unknown, X509Certificate>({
    ...documented(scheme, given),
    challenge: Challenge.make('ClientCertificate', { ...(realm !== undefined && { realm }) }),
    ambient: true,
    extract,
    credentials: codecOf(decode),
    maxLength: MAX_CERTIFICATE_LENGTH,
    authenticate: (request, certificate) => {
      const isGood = isAuthorized(request) && accepting.isAccepted(certificate)
      const refusal = isGood ? checkValidity(certificate) : foreign
      return refusal === undefined ? ask(request, certificate) : E.left(refusal)
    },
    notes: { wrappers: [accepting.words, words] },
    evidence: restsOn(expiring),
  }) as Authenticator<PrincipalFromAnswer<R>>
}

declareFactory(caller, clientCertificate)

const scheme: MutualTlsScheme = { type: 'mutualTLS' }

const certificateOwner = (_request: Request, certificate: X509Certificate): CertificateOwner => ({
  subject: certificate.subject,
  subjectAltName: certificate.subjectAltName,
  issuer: certificate.issuer,
  serialNumber: certificate.serialNumber,
  fingerprint: certificate.fingerprint256,
})

// The failure contains no certificate
const notACertificate: t.Validation<never> = t.failure(undefined, [], 'not a certificate')

const codecOf = (decode: (sent: unknown) => X509Certificate | undefined): t.Decoder<unknown, X509Certificate> => {
  const validate = (sent: unknown): t.Validation<X509Certificate> => {
    const certificate = decode(sent)
    return certificate === undefined ? notACertificate : t.success(certificate)
  }
  return { name: 'ClientCertificate', validate, decode: validate }
}

const foreign = because(invalid, 'certificate')
const notYet = because(invalid, 'not yet')
const expiredCertificate = because(expired, 'expired')

const checkValidity = ({ validFrom, validTo }: X509Certificate): AuthError | undefined => {
  const now = Date.now()
  if (!(Date.parse(validFrom) <= now)) return notYet
  return now < Date.parse(validTo) ? undefined : expiredCertificate
}

// --- whose certificates are accepted

interface Accepting {
  readonly isAccepted: (certificate: X509Certificate) => boolean
  readonly words: string
}

const digits = (fingerprint: string): string => fingerprint.replaceAll(':', '').toLowerCase()

const fingerprintList = is.listOf(
  (one) => typeof one === 'string' && /^[0-9a-f]{64}$/.test(digits(one)),
  'must be an array of SHA-256 fingerprints, each of 64 hexadecimal digits',
  1,
)

const pinned = (fingerprints: ReadonlyArray<string>): Accepting => {
  const accepted = new Set(fingerprints.map(digits))
  return {
    isAccepted: ({ fingerprint256 }) => accepted.has(digits(fingerprint256)),
    words: `with fingerprint ${[...accepted].sort().map(shortFingerprint).join(' ')}`,
  }
}

const shortFingerprint = (fingerprint: string): string => digits(fingerprint).slice(0, 16)

// RFC 5280 §4.2.1.12: a certificate that names its purposes must be for clients
const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'
const ANY_USE = '2.5.29.37.0'

const isForClients = ({ keyUsage }: X509Certificate): boolean =>
  // Node has `undefined` for a certificate that does not say it, though its type has not
  ((keyUsage as string[] | undefined) ?? [CLIENT_AUTH]).some((use) => use === CLIENT_AUTH || use === ANY_USE)

// How many certificates are cached, so that a signature is not verified for each request
const MAX_KNOWN = 1000

const issuedBy = (given: unknown): Accepting => {
  const all = authoritiesIn(given)
  const authorities = memory<X509Certificate>({ size: MAX_KNOWN, maxAge: Infinity, dropsFirst: 'oldest' })
  const authorityOf = (certificate: X509Certificate): X509Certificate | undefined => {
    const { fingerprint256 } = certificate
    const kept = authorities.get(fingerprint256)
    if (kept !== undefined) return kept
    const found = all.find((one) => certificate.checkIssued(one) && certificate.verify(one.publicKey))
    if (found !== undefined) authorities.set(fingerprint256, fromNow(found))
    return found
  }
  return {
    isAccepted: (certificate) => {
      const authority = isForClients(certificate) ? authorityOf(certificate) : undefined
      return authority !== undefined && checkValidity(authority) === undefined
    },
    words: `issued by ${all
      .map(({ fingerprint256 }) => shortFingerprint(fingerprint256))
      .sort()
      .join(' ')}`,
  }
}

const authoritiesIn = (given: unknown): ReadonlyArray<X509Certificate> => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) && given.length > 0 ? given : [undefined]
  return list.map((one) => {
    const isOne = typeof one === 'string' && one.split('-----BEGIN ').length === 2
    const authority = isOne ? unlessThrown(() => new X509Certificate(one)) : undefined
    if (authority === undefined)
      throw new TypeError(
        `${caller}({ authorities }) must be an array of PEMs, each with the certificate of one authority`,
      )
    if (!authority.ca)
      throw new TypeError(`${caller}({ authorities }): a certificate in it does not belong to a certificate authority`)
    return authority
  })
}

// --- where a certificate comes from

// Anybody can write a header. So it counts only if the connection comes from one of the named proxies; sent by anybody else, it is
// ignored. The proxy must remove the header that a client sent. Two formats are read: the byte sequence of `Client-Cert` (RFC 9440
// §2.1), and a PEM with percent escapes (nginx, Amazon's load balancers)

type SentCertificate = X509Certificate | Sent

export interface CertificateReader {
  /** The certificate of the client, as it came; `none` without a certificate. */
  readonly extract: (request: Request) => O.Option<SentCertificate>
  /** The certificate in it; `undefined` if it is malformed, or was sent twice. */
  readonly decode: (sent: unknown) => X509Certificate | undefined
  /** Whether the TLS of this process has verified its chain. A header is verified by the proxy. */
  readonly isAuthorized: (request: Request) => boolean
  readonly words: string
}

const MAX_CERTIFICATE_LENGTH = 16_384

export const certificateReader = (where: string, source: CertificateSource): CertificateReader => {
  if (source === 'socket') {
    return { extract: fromSocket, decode: certificateIn, isAuthorized: isSocketAuthorized, words: 'from socket' }
  }
  if (typeof source !== 'object' || source === null) {
    throw new TypeError(`${where}({ from }) must be 'socket', or { header, proxies }`)
  }
  const inner = `${where}({ from: { ... } })`
  const { header, proxies } = checkOptions(inner, source, { header: is.nameLike(token), proxies: is.unchecked })
  const isProxy = proxyMatcher(`${where}({ from: { proxies } })`, proxies)
  const field = fromHeader(header)
  const extract = (request: Request): O.Option<Sent> => {
    if (!isProxy(request.req.socket.remoteAddress)) return O.none
    const sent = field(request)
    // a proxy writes an empty field for a client without a certificate
    return O.isSome(sent) && sent.value === '' ? O.none : sent
  }
  return {
    extract,
    decode: certificateIn,
    isAuthorized: () => true,
    words: `from header ${header} of ${[...proxies].sort().join(' ')}`,
  }
}

// Read again for each request: a client can renegotiate with another certificate
const fromSocket = ({ req }: Request): O.Option<X509Certificate> => {
  // Safe: over plain http, and in tests without a socket, there is no such method
  const certificate = (req.socket as Partial<TLSSocket>).getPeerX509Certificate?.()
  return certificate instanceof X509Certificate ? O.some(certificate) : O.none
}

// A server with `rejectUnauthorized: false` hands on certificates that anybody made
const isSocketAuthorized = ({ req }: Request): boolean => Reflect.get(req.socket, 'authorized') === true

// --- addresses

const proxyMatcher = (where: string, given: unknown): ((address: string | undefined) => boolean) => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : []
  if (list.length === 0) throw new TypeError(`${where} must list the proxies, such as ['10.0.0.1'] or ['10.0.0.0/8']`)
  const all = new BlockList()
  for (const one of list) addTo(all, where, one)
  return (address = '') => {
    const [plain = ''] = address.split('%', 1)
    // false for anything but an address
    return all.check(plain, isIP(plain) === 6 ? 'ipv6' : 'ipv4')
  }
}

const addTo = (all: BlockList, where: string, given: unknown): void => {
  const [address = '', prefix, ...more] = typeof given === 'string' ? given.split('/') : []
  const version = isIP(address)
  const isPrefix = prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 6 ? 128 : 32))
  if (version === 0 || !isPrefix || more.length > 0) {
    throw new TypeError(`${where}: ${JSON.stringify(given)} is not an address, nor a network such as "10.0.0.0/8"`)
  }
  if (prefix === undefined) all.addAddress(address, version === 6 ? 'ipv6' : 'ipv4')
  else all.addSubnet(address, Number(prefix), version === 6 ? 'ipv6' : 'ipv4')
}

// --- formats

const byteSequence = /^:([A-Za-z0-9+/]+={0,2}):$/
const pem = /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/

const certificateIn = (sent: unknown): X509Certificate | undefined => {
  if (sent instanceof X509Certificate) return sent
  if (typeof sent !== 'string' || sent.length > MAX_CERTIFICATE_LENGTH) return undefined
  // no percent escapes, or no certificate
  return unlessThrown(() => {
    const encoded = byteSequence.exec(sent)?.[1] ?? pem.exec(decodeURIComponent(sent))?.[1]?.replace(/\s/g, '')
    if (encoded === undefined) return undefined
    const bytes = Buffer.from(encoded, 'base64')
    const certificate = new X509Certificate(bytes)
    // nothing after it
    return certificate.raw.equals(bytes) ? certificate : undefined
  })
}
