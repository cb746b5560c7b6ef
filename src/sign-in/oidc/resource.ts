/** Requests to one resource server, with a token that goes there and nowhere else. It knows no provider and no store. */
import { typeName } from '../../core/options.js'

/** The token of a request, and the token that replaces it after the resource has refused it (401). */
interface TokenSource {
  readonly token: () => Promise<string>
  readonly after: (refused: string) => Promise<string>
}

const outsideResource = (where: string, resource: string): TypeError =>
  new TypeError(`${where}: a token of ${resource} goes there and nowhere else; take fetch itself for another address`)

// The address of a path or URL at a resource. A path is that of the resource's origin, below the resource's own path. Throws a TypeError
// for an address that is not at the resource.
const addressAt = (where: string, resource: string, given: unknown): URL => {
  const base = new URL(resource)
  const below = base.pathname.replace(/\/$/, '')
  if (typeof given !== 'string' && !(given instanceof URL)) {
    throw new TypeError(`${where} must be a path or a URL, not ${typeName(given)}`)
  }
  const text = String(given)
  // what begins with two slashes, or with a backslash, could be meant for another host
  const isPath = /^\/(?![/\\])/.test(text)
  if (!isPath && !URL.canParse(text)) throw new TypeError(`${where} must be a path that begins with /, or a URL`)
  const url = isPath ? new URL(`${base.origin}${below}${text}`) : new URL(text)
  const isBelow = below === '' || url.pathname === below || url.pathname.startsWith(`${below}/`)
  if (url.origin !== base.origin || url.username !== '' || url.password !== '' || !isBelow)
    throw outsideResource(where, resource)
  return url
}

const requestHeaders = (where: string, init: RequestInit): Headers => {
  const headers = new Headers(init.headers)
  if (headers.has('Authorization')) {
    throw new TypeError(`${where}: the field Authorization is that of the token; leave it out`)
  }
  return headers
}

// What is read while it is sent cannot be sent again
const canBeSentAgain = ({ body }: RequestInit): boolean =>
  body === undefined ||
  body === null ||
  typeof body === 'string' ||
  body instanceof URLSearchParams ||
  body instanceof FormData ||
  body instanceof Blob ||
  body instanceof ArrayBuffer ||
  ArrayBuffer.isView(body)

const discard = (response: Response): Promise<void> =>
  // an unread body would keep its connection
  response.body?.cancel().catch(() => undefined) ?? Promise.resolve()

/**
 * Sends a request with the token. After a 401 of the resource it takes the next token, and sends the request once more if its body can
 * be sent again. A redirect to another origin is followed without the token (Fetch §4.4). Rejects as `fetch` and the source do.
 */
export const fetchAt = async (
  where: string,
  resource: string,
  source: TokenSource,
  given: unknown,
  init: RequestInit = {},
): Promise<Response> => {
  const url = addressAt(`${where}: the address`, resource, given)
  const headers = requestHeaders(where, init)
  const send = (token: string): Promise<Response> => {
    const sent = new Headers(headers)
    sent.set('Authorization', `Bearer ${token}`)
    return fetch(url, { ...init, headers: sent })
  }
  const token = await source.token()
  const response = await send(token)
  const isOfResource = response.url === '' || new URL(response.url).origin === url.origin
  if (response.status !== 401 || !isOfResource) return response
  const next = await source.after(token)
  if (!canBeSentAgain(init)) return response
  await discard(response)
  return send(next)
}
