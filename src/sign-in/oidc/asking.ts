/**
 * Asks a provider for openid-client: bodies of at most 1 MB, no redirects, and addresses that can be trusted with a
 * code or a token. Whatever cannot be an answer is an `Outage`, so what openid-client throws afterwards is about an
 * answer.
 */
import type { CustomFetch } from 'openid-client'
import { objectOf, type Json } from '../../jwt/claims.js'
import { isSecure, Outage, problemOf, textOf } from '../../jwt/fetching.js'

/** The answer of a provider, whose body has been read. */
export interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Asks a provider. Rejects with an `Outage` if there is no whole answer. */
export const responseTo = async (url: string, init: RequestInit): Promise<Answered> => {
  if (!isSecure(url)) throw new Outage('named an address that is neither https nor on a loopback address', true)
  const response = await fetch(url, { ...init, redirect: 'manual' }).catch((error: unknown) => {
    throw new Outage(problemOf(error), false)
  })
  const { status, headers } = response
  return { status, headers, text: await textOf(response) }
}

/** An answer as openid-client reads it. */
export const responseOf = ({ status, headers, text }: Answered): Response => {
  const kept = new Headers()
  for (const name of ['content-type', 'www-authenticate']) {
    const value = headers.get(name)
    if (value !== null) kept.set(name, value)
  }
  const isEmpty = status === 204 || status === 205 || status === 304
  return new Response(isEmpty ? null : text, { status, headers: kept })
}

/** A JSON object as an answer of the provider. */
export const jsonResponse = (json: object, status = 200): Response =>
  new Response(JSON.stringify(json), { status, headers: { 'Content-Type': 'application/json' } })

/** The object that a string is as JSON, if it is one. */
export const jsonOf = (text: string): Json | undefined => {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    // the error would quote the text
    return undefined
  }
}

/** Whether an answer reports an error, whatever else is in it, and whatever its status. */
export const hasError = (error: unknown): boolean =>
  error !== undefined && error !== null && error !== false && error !== ''

/** An error of the token endpoint as RFC 6749 §5.2 demands. One that is no string has no code that is known. */
export const errorResponse = (error: unknown, status: number): Response =>
  jsonResponse({ error: typeof error === 'string' ? error : 'unknown_error' }, status)

const isGood = (status: number): boolean => status >= 200 && status < 300

/** The type of a body, without parameters. */
export const typeOf = (headers: Headers): string =>
  (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

const isTokenRequest = (body: unknown): boolean => body instanceof URLSearchParams && body.has('grant_type')

/**
 * Asks a provider for openid-client. An answer of success must hold a JSON object, or a signed one; a failure of the
 * server, and too many requests, are an `Outage`. `seen` is called with each JSON Web Token that must be verified.
 */
export const askedFor =
  (seen: (token: string) => void = () => {}): CustomFetch =>
  async (url, { body, headers, method, signal }) => {
    // Safe: openid-client's own types of a request are narrower
    const init = { body, headers, method, ...(signal !== undefined && { signal }) } as RequestInit
    const answered = await responseTo(url, init)
    const { status, headers: sent, text } = answered
    if (status >= 500 || status === 429) throw new Outage(`answered ${status}`, true)
    if (isGood(status)) {
      if (typeOf(sent) === 'application/jwt') seen(text)
      else {
        const json = jsonOf(text)
        if (json === undefined) throw new Outage('answered no JSON object', true)
        const { access_token, id_token: token, error } = json
        if (isTokenRequest(body) && hasError(error)) return errorResponse(error, 400)
        if (isTokenRequest(body) && access_token === undefined) throw new Outage('answered no access token', true)
        if (typeof token === 'string') seen(token)
      }
    }
    return responseOf(answered)
  }
