/** Asks an authorization server about a token (RFC 7662 §2.1). */
import { checkOptions, nonEmpty } from '../core/options.js'
import type { Json } from './claims.js'
import { discovery, type Ask } from './discovery.js'
import { fetchJson } from './fetchJson.js'
import { checkUrl } from './urls.js'

/** The resource server's own credentials. */
export interface IntrospectionClient {
  readonly id: string
  readonly secret: string
}

const DISCOVERY_AGE = 600_000

// RFC 6749 §2.3.1: form-encoded before they are joined
const formEncoded = (value: string): string => new URLSearchParams({ '': value }).toString().slice(1)

/** The Authorization field for the client. Throws a TypeError for credentials that cannot be a client's. */
export const basicOf = (place: string, client: IntrospectionClient): string => {
  const { id, secret } = checkOptions(`${place}({ client })`, client, { id: nonEmpty, secret: nonEmpty })
  return `Basic ${Buffer.from(`${formEncoded(id)}:${formEncoded(secret)}`).toString('base64')}`
}

/**
 * Asks about a token. Rejects with an Outage for anything but a 200 with a JSON object. The address is the endpoint, or
 * the issuer whose discovery document names it.
 */
export const asking = (address: string, isEndpoint: boolean, basic: string) => {
  checkUrl(`httpIntrospection({ ${isEndpoint ? 'endpoint' : 'issuer'} })`, address, isEndpoint)
  const { find, forget } = discovery(address, 'introspection_endpoint', DISCOVERY_AGE)
  const where: Ask<string> = isEndpoint ? () => Promise.resolve(address) : find
  return async (token: string, signal: AbortSignal): Promise<Json> => {
    const url = await where(signal)
    try {
      return await fetchJson(url, {
        method: 'POST',
        signal,
        headers: { Authorization: basic, Accept: 'application/json' },
        body: new URLSearchParams({ token, token_type_hint: 'access_token' }),
      })
    } catch (error) {
      // the address may have changed
      forget()
      throw error
    }
  }
}
