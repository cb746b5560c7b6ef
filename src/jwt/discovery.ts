/**
 * Discovery: asks a provider for the address of its keys or its introspection endpoint (RFC 8414, then OpenID Connect).
 */
import { ageOf, thisMoment, type Moment } from '../core/age.js'
import { ownField } from '../core/ownFields.js'
import type { Json } from './claims.js'
import { fetchJson, Outage } from './fetchJson.js'
import { isLoopback, isSecure } from './urls.js'

/** Asks a provider. The signal ends all requests of it. */
export type Ask<A> = (signal: AbortSignal) => Promise<A>

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
const documentOf = async (issuer: string, signal: AbortSignal): Promise<Json> => {
  const [oauth, openId] = documentsOf(issuer)
  const init = { signal, headers: { Accept: 'application/json' } }
  try {
    return await fetchJson(oauth, init)
  } catch (error) {
    if (!(error instanceof Outage) || !error.isAnswer) throw error
    return await fetchJson(openId, init)
  }
}

/** Finds an address of a provider. The document is read again after `maxAge` ms, and after `forget`. */
export const discovery = (issuer: string, member: 'jwks_uri' | 'introspection_endpoint', maxAge: number) => {
  let known: { readonly url: string; readonly readAt: Moment } | undefined
  const find: Ask<string> = async (signal) => {
    if (known !== undefined && ageOf(known.readAt) < maxAge) return known.url
    const readAt = thisMoment()
    const document = await documentOf(issuer, signal)
    // RFC 8414 §3.3: exactly equal, so that no provider speaks for another
    if (ownField(document, 'issuer') !== issuer)
      throw new Outage('answered a discovery document of another issuer', true)
    const url = ownField(document, member)
    if (!isSecure(url) || (isLoopback(url) && !isLoopback(issuer))) {
      throw new Outage(`answered a discovery document without a ${member} that can be used`, true)
    }
    known = { url, readAt }
    return url
  }
  const forget = (): void => {
    known = undefined
  }
  return { find, forget }
}
