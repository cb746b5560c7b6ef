/** A request to a provider, and its answer as openid-client reads it. */
import type { Configuration, CustomFetch, ServerMetadata } from 'openid-client' with { 'resolution-mode': 'import' }
import { jsonFields, ownFields } from '../../core/data.js'
import type { Json } from '../../jwt/claims.js'
import { isInside, isSecure, Outage, problemOf, responseText, beforeAbort } from '../../jwt/fetching.js'
import { configurationOf, type Registered } from './Client.js'

// Bodies have at most 1 MB, no redirect is followed, and addresses can be trusted with a code or a token. Anything that
// is no answer is an `Outage`, so a later exception of openid-client is about an answer

interface Received {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const providerResponse = ({ status, headers, text }: Received): Response => {
  const kept = new Headers()
  for (const name of ['content-type', 'www-authenticate']) {
    const value = headers.get(name)
    if (value !== null) kept.set(name, value)
  }
  const isEmpty = status === 204 || status === 205 || status === 304
  return new Response(isEmpty ? null : text, { status, headers: kept })
}

export const jsonResponse = (json: object, status = 200): Response =>
  new Response(JSON.stringify(json), { status, headers: { 'Content-Type': 'application/json' } })

/** Whether an answer has a member, such as that of an error, with any status. */
const isGivenMember = (member: unknown): boolean => ![undefined, null, false, ''].some((none) => none === member)

/** An error of the token endpoint as RFC 6749 §5.2 demands. One that is no string has no code that is known. */
const errorResponse = (error: unknown, status: number): Response =>
  jsonResponse({ error: typeof error === 'string' ? error : 'unknown_error' }, status)

const contentType = (headers: Headers): string =>
  (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''

const isTokenRequest = (body: unknown): boolean => body instanceof URLSearchParams && body.has('grant_type')

// An answer to openid-client that is whole, and no failure of the server
const receivedFrom = async ([url, asked]: Parameters<CustomFetch>, trusts: Trusts): Promise<Received> => {
  if (!trusts(url)) throw new Outage('named an address that is neither https nor on a loopback address', true)
  const { body, headers: given, method, signal } = asked
  // Safe: openid-client's own types of a request are narrower
  const init = { body, headers: given, method, ...(signal && { signal }), redirect: 'manual' } as RequestInit
  const receive = async () => {
    const response = await fetch(url, init).catch((error: unknown) => {
      throw new Outage(problemOf(error), false)
    })
    return { status: response.status, headers: response.headers, text: await responseText(response) }
  }
  const { status, headers, text } = await (signal ? beforeAbort(signal, receive()) : receive())
  if (status >= 500 || status === 429) throw new Outage(`answered ${status}`, true)
  return { status, headers, text }
}

type Trusts = (url: string) => boolean

// Scopes as an array
const scopeText = (value: unknown): unknown => (Array.isArray(value) ? value.join(' ') : value)

// An answer with tokens as RFC 6749 §5.1 demands it, from the answers of providers: no `token_type`, an array of scopes, `null` or an empty
// string for a missing member, and a lifetime that cannot be believed. Then the tokens are good all the same, and end when the resource refuses them.
const withTokens = ({ expires_in: lasts, token_type: type, scope, ...rest }: Json): Response => {
  const seconds = typeof lasts === 'string' ? Number(lasts) : lasts
  const isGood = typeof seconds === 'number' && seconds >= 0 && Number.isFinite(seconds)
  const answer = {
    ...rest,
    token_type: isGivenMember(type) ? type : 'bearer',
    scope: scopeText(scope),
    ...(isGood && { expires_in: seconds }),
  }
  return jsonResponse(Object.fromEntries(Object.entries(answer).filter(([, value]) => value !== null && value !== '')))
}

const isSuccess = ({ status }: Received): boolean => status >= 200 && status < 300

/**
 * Asks a provider for openid-client. An answer of success must hold a JSON object, or a signed one; a failure of the
 * server, and too many requests, are an `Outage`. `seen` is called with each JSON Web Token that must be verified.
 */
export const askedFor =
  (seen: (token: string, isIdToken: boolean) => unknown = () => {}, trusts: Trusts = isSecure): CustomFetch =>
  async (...asked) => {
    const answered = await receivedFrom(asked, trusts)
    if (!isSuccess(answered)) return providerResponse(answered)
    if (contentType(answered.headers) === 'application/jwt') {
      await seen(answered.text, false)
      return providerResponse(answered)
    }
    const json = answerFields(answered)
    if (json === undefined) throw new Outage('answered no JSON object', true)
    const { access_token: access, id_token: token, error } = json
    if (!isTokenRequest(asked[1].body)) return providerResponse(answered)
    if (isGivenMember(error)) return errorResponse(error, 400)
    if (access === undefined) throw new Outage('answered no access token', true)
    if (typeof token === 'string') await seen(token, true)
    return withTokens(json)
  }

/** Asks a provider without OpenID Connect for openid-client, and turns the answers of such providers into those of RFC 6749 §5. */
const plainly: CustomFetch = async (...asked) => {
  const answered = await receivedFrom(asked, isInside)
  const { status } = answered
  const json = answerFields(answered)
  // GitHub reports errors with status 200
  if (json !== undefined && isGivenMember(json['error'])) {
    // its own words for a code that was used, or is too old
    const error = json['error'] === 'bad_verification_code' ? 'invalid_grant' : json['error']
    return errorResponse(error, isSuccess(answered) ? 400 : status)
  }
  if (!isSuccess(answered)) return providerResponse(answered)
  if (json === undefined) throw new Outage('answered neither JSON nor a form', true)
  if (typeof json['access_token'] !== 'string') throw new Outage('answered no access token', true)
  // there is no issuer that could have signed it
  const { id_token: _idToken, ...rest } = json
  return withTokens(rest)
}

/** openid-client at its first use, when it is loaded, for a server without OpenID Connect; http where an address has it. */
export const plainConfiguration = (
  server: ServerMetadata,
  client: Registered,
  timeout: number,
): (() => Configuration) => {
  const isInsecure = [server.authorization_endpoint, server.token_endpoint].some((url) => url?.startsWith('http:'))
  let made: Configuration | undefined
  return () => (made ??= configurationOf(server, client, { timeout, clockTolerance: 0, isInsecure }, plainly))
}

const answerFields = ({ headers, text }: Received): Json | undefined => {
  const isForm = contentType(headers) === 'application/x-www-form-urlencoded' || text.startsWith('access_token=')
  return isForm ? ownFields(Object.fromEntries(new URLSearchParams(text))) : jsonFields(text)
}
