/**
 * Fetches a JSON object from a provider: with a time limit, a size limit, and without following redirects.
 *
 * Any problem is an `Outage`. Its message names the kind of problem, and contains nothing that was sent or received.
 */
import { jsonFields, ageOf, thisMoment, type Moment } from '../core/data.js'
import type { Json } from './claims.js'

export class Outage extends Error {
  override readonly name = 'Outage'
  /** Whether there was an answer, even a wrong answer. */
  readonly isAnswer: boolean
  constructor(problem: string, isAnswer: boolean) {
    super(problem)
    this.isAnswer = isAnswer
  }
}

/**
 * The result of a promise. Rejects with an `Outage` when the signal aborts, whatever the other side or a resolver of names does: not
 * everything that hangs listens to a signal.
 */
export const beforeAbort = async <A>(signal: AbortSignal, promise: Promise<A>): Promise<A> => {
  let stop = (): void => {}
  const late = new Promise<never>((_resolve, reject) => {
    stop = () => reject(new Outage('did not answer in time', false))
    signal.addEventListener('abort', stop)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** The same for a task that gets so many milliseconds, and the signal of their end. */
export const withinTime = <A>(timeout: number, task: (signal: AbortSignal) => Promise<A>): Promise<A> => {
  const signal = AbortSignal.timeout(Math.ceil(timeout))
  return beforeAbort(signal, task(signal))
}

const MAX_JSON = 1024 * 1024

/** Fetches an object. Rejects with an `Outage` for anything but a 200 with a JSON object. */
export const fetchJson = async (url: string, init: RequestInit): Promise<Json> => {
  const response = await fetch(url, { ...init, redirect: 'manual' }).catch((error: unknown) => {
    throw new Outage(problemOf(error), false)
  })
  if (response.status !== 200) {
    // an unread body would keep its connection
    await response.body?.cancel().catch(() => undefined)
    throw new Outage(`answered ${response.status}`, true)
  }
  const value = jsonFields(await responseText(response))
  if (value === undefined) throw new Outage('answered no JSON object', true)
  return value
}

/** The bytes of a body. Rejects with an `Outage`, also if there are more; `most` is that limit in words. */
export const bytesOf = async (body: AsyncIterable<Uint8Array>, limit = MAX_JSON, most = '1 MB'): Promise<Buffer> => {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of body) {
      length += chunk.byteLength
      if (length > limit) break
      chunks.push(chunk)
    }
  } catch (error) {
    throw new Outage(problemOf(error), false)
  }
  if (length > limit) throw new Outage(`answered more than ${most}`, true)
  return Buffer.concat(chunks)
}

/** The text of a body of at most 1 MB. Rejects with an `Outage`. */
export const responseText = async ({ body }: Response): Promise<string> =>
  // Safe: a body's chunks are bytes. A byte order mark is no part of the text, as for `response.text()`
  new TextDecoder().decode(await bytesOf((body ?? []) as AsyncIterable<Uint8Array>))

/** The problem of a request. undici hides the reason in `cause`; of that only a code such as ECONNREFUSED is reported. */
export const problemOf = (error: unknown): string => {
  if (!(error instanceof Error)) return 'cannot be asked'
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return 'did not answer in time'
  const { cause } = error
  const code: unknown = typeof cause === 'object' && cause !== null && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? `cannot be asked (${code})` : 'cannot be asked'
}

const loopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

const isHttp = (url: string): boolean => new URL(url).protocol === 'http:'

const isHttpsOrAt = (hosts: RegExp, u: unknown): u is string => {
  if (typeof u !== 'string' || !URL.canParse(u)) return false
  const { protocol, hostname } = new URL(u)
  return protocol === 'https:' || (protocol === 'http:' && hosts.test(hostname))
}

/** Whether it is a URL that can be trusted for tokens: https, or http on a loopback address. */
export const isSecure = (u: unknown): u is string => isHttpsOrAt(loopback, u)

// Names that no public name server knows (RFC 6761, RFC 6762 appendix G, RFC 8375), and private addresses (RFC 1918, RFC 4193, RFC 6598)
const privateHost =
  /^(?:[\w-]+|.+\.(?:internal|local|localhost|lan|svc|home\.arpa)|10(?:\.\d+){3}|192\.168(?:\.\d+){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d+){2}|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])(?:\.\d+){2}|\[f[cd][\da-f]{2}:.*\])$/

/** Whether it is a URL that `isSecure` takes, or http in a private network: for an address that the application writes itself. */
export const isInside = (u: unknown): u is string => isSecure(u) || isHttpsOrAt(privateHost, u)

/** Checks an address that is asked; http is allowed in a private network, too. Throws a TypeError that names the place. */
export function checkAddress(where: string, url: unknown, mayHaveQuery = true): asserts url is string {
  if (!isInside(url))
    throw new TypeError(
      `${where} must be an https:// URL; http:// is allowed on a loopback address and in a private network (a name without a dot, .internal, .local, .svc, or a private address)`,
    )
  checkParts(where, url, mayHaveQuery)
}

/** Checks the identifier of an issuer or a resource. Throws a TypeError that names the place. */
export function checkUrl(where: string, url: unknown, mayHaveQuery = false): asserts url is string {
  if (!isSecure(url))
    throw new TypeError(`${where} must be an https:// URL; http:// is allowed on a loopback address such as 127.0.0.1`)
  if (!mayHaveQuery && url.includes('/.well-known/'))
    throw new TypeError(`${where} is the address of a document; write the value of its "issuer"`)
  checkParts(where, url, mayHaveQuery)
}

const checkParts = (where: string, url: string, mayHaveQuery: boolean): void => {
  const { username, password } = new URL(url)
  if (username !== '' || password !== '') throw new TypeError(`${where} must contain no user name and no password`)
  if (url.includes('#')) throw new TypeError(`${where} must have no fragment (#...)`)
  if (!mayHaveQuery && url.includes('?')) throw new TypeError(`${where} must have no query (?...)`)
  // `https://${process.env.TENANT}.auth0.com/` without the variable
  if (/[./]undefined(?:[./:]|$)/.test(url)) throw new TypeError(`${where} is ${url}: a variable in it is not set`)
}

/** The addresses of an issuer's discovery documents, in the order tried. */
export const documentsOf = (issuer: string): readonly [oauth: string, openId: string] => {
  const { origin, pathname } = new URL(issuer)
  // RFC 8414 §3.1: between host and path, without a slash at the end; OpenID Connect Discovery §4: after the path
  const path = pathname.replace(/\/$/, '')
  return [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
}

// A provider without the first document may answer 404 or anything else, such as an HTML page
const discoveryDocument = async (issuer: string, signal: AbortSignal): Promise<Json> => {
  const [oauth, openId] = documentsOf(issuer)
  const init = { signal, headers: { Accept: 'application/json' } }
  try {
    return await fetchJson(oauth, init)
  } catch (error) {
    if (!(error instanceof Outage) || !error.isAnswer) throw error
    return await fetchJson(openId, init)
  }
}

/**
 * Asks at an address of a provider that discovery finds (RFC 8414, then OpenID Connect). The document is read again after `maxAge` ms,
 * and after a question that failed, because the address may have changed. The signal ends all requests.
 */
export const discovering = (issuer: string, member: 'jwks_uri' | 'introspection_endpoint', maxAge: number) => {
  let cached: { readonly url: string; readonly readAt: Moment } | undefined
  const find = async (signal: AbortSignal): Promise<string> => {
    if (cached !== undefined && ageOf(cached.readAt) < maxAge) return cached.url
    const readAt = thisMoment()
    const document = await discoveryDocument(issuer, signal)
    // RFC 8414 §3.3: exactly equal, so that no provider speaks for another
    if (document['issuer'] !== issuer) throw new Outage('answered a discovery document of another issuer', true)
    const url = document[member]
    if (!isSecure(url) || (isHttp(url) && !isHttp(issuer)))
      throw new Outage(`answered a discovery document without a ${member} that can be used`, true)
    cached = { url, readAt }
    return url
  }
  return async <A>(signal: AbortSignal, ask: (url: string) => Promise<A>): Promise<A> => {
    const url = await find(signal)
    try {
      return await ask(url)
    } catch (error) {
      cached = undefined
      throw error
    }
  }
}
