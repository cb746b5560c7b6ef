/**
 * Where the certificate of a client comes from: the TLS socket, or a header that a proxy writes which ends TLS.
 *
 * Anybody can write a header. So it counts only if the connection comes from one of the named proxies; sent by anybody else, it is
 * ignored. The proxy must remove the header that a client sent. Two formats are read: the byte sequence of `Client-Cert` (RFC 9440
 * §2.1), and a PEM with percent escapes (nginx, Amazon's load balancers).
 */
import { X509Certificate } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import * as O from 'fp-ts/lib/Option.js'
import type { Request } from 'koa'
import { fromHeader, type Sent } from '../core/RequestFields.js'
import { checkOptions, nameLike, token, unchecked } from '../core/options.js'

/** Where the certificate of a client comes from. */
export type CertificateSource = 'socket' | CertificateHeader

/** A header with the certificate of a client. */
export interface CertificateHeader {
  /** The name of the header, such as `Client-Cert` (RFC 9440) or `X-SSL-Client-Cert`. */
  readonly header: string
  /** The addresses of the proxies that write it, or networks such as `10.0.0.0/8`. From others, the header is ignored. */
  readonly proxies: readonly [string, ...string[]]
}

/** What a client sent: a certificate of TLS, or the content of a header. */
export type SentCertificate = X509Certificate | Sent

/** Reads certificates from one source. */
export interface CertificateReader {
  /** What was sent; `none` without a certificate. */
  readonly extract: (request: Request) => O.Option<SentCertificate>
  /** The certificate in it; `undefined` if it is malformed, or was sent twice. */
  readonly decode: (sent: unknown) => X509Certificate | undefined
  /** Whether the TLS of this process has verified its chain. A header is verified by the proxy. */
  readonly isAuthorized: (request: Request) => boolean
  /** The source in words. */
  readonly words: string
}

/** The longest header that is read, in characters. */
export const MAX_CERTIFICATE_LENGTH = 16_384

/** Makes a reader. Throws a TypeError for a source that cannot work. */
export const certificateReader = (where: string, source: CertificateSource): CertificateReader => {
  if (source === 'socket') {
    return { extract: fromSocket, decode: certificateIn, isAuthorized: isSocketAuthorized, words: 'from socket' }
  }
  if (typeof source !== 'object' || source === null) {
    throw new TypeError(`${where}({ from }) must be 'socket', or { header, proxies }`)
  }
  const inner = `${where}({ from: { ... } })`
  const { header, proxies } = checkOptions(inner, source, { header: nameLike(token), proxies: unchecked })
  const isProxy = membersOf(`${where}({ from: { proxies } })`, proxies)
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

// Methods of a TLS socket; over plain http, and in tests without a socket, there are none
const methodOf = (socket: object, name: string): (() => unknown) | undefined => {
  const method: unknown = Reflect.get(socket, name)
  return typeof method === 'function' ? () => Reflect.apply(method, socket, []) : undefined
}

// Read again for each request: a client can renegotiate with another certificate
const fromSocket = ({ req }: Request): O.Option<X509Certificate> => {
  const certificate = methodOf(req.socket, 'getPeerX509Certificate')?.()
  return certificate instanceof X509Certificate ? O.some(certificate) : O.none
}

// A server with `rejectUnauthorized: false` hands on certificates that anybody made
const isSocketAuthorized = ({ req }: Request): boolean => Reflect.get(req.socket, 'authorized') === true

// -------------------------------------------------------------------------------------
// addresses
// -------------------------------------------------------------------------------------

const membersOf = (where: string, given: unknown): ((address: string | undefined) => boolean) => {
  const list: ReadonlyArray<unknown> = Array.isArray(given) ? given : []
  if (list.length === 0) throw new TypeError(`${where} must name the proxies, such as ['10.0.0.1'] or ['10.0.0.0/8']`)
  const all = new BlockList()
  for (const one of list) addTo(all, where, one)
  return (address = '') => {
    const [plain = ''] = address.split('%', 1)
    const version = isIP(plain)
    return version !== 0 && all.check(plain, version === 6 ? 'ipv6' : 'ipv4')
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

// -------------------------------------------------------------------------------------
// formats
// -------------------------------------------------------------------------------------

const byteSequence = /^:([A-Za-z0-9+/]+={0,2}):$/
const pem = /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/

const certificateIn = (sent: unknown): X509Certificate | undefined => {
  if (sent instanceof X509Certificate) return sent
  if (typeof sent !== 'string' || sent.length > MAX_CERTIFICATE_LENGTH) return undefined
  try {
    const encoded = byteSequence.exec(sent)?.[1] ?? pem.exec(decodeURIComponent(sent))?.[1]?.replace(/\s/g, '')
    if (encoded === undefined) return undefined
    const bytes = Buffer.from(encoded, 'base64')
    const certificate = new X509Certificate(bytes)
    // nothing after it
    return certificate.raw.equals(bytes) ? certificate : undefined
  } catch {
    // no percent escapes, or no certificate
    return undefined
  }
}
