/**
 * The headers of every response of a guarded operation, whatever writes it: the handler, an exception handler, Koa for
 * an error (it removes all headers first), or a stream.
 *
 * They are set before the handler runs, and completed when the head is written. So Koa's error path and streams get
 * them, too. A header that the handler sets stays. Vary is added to.
 */
import { ServerResponse } from 'node:http'
import type { Context, Request } from 'koa'
import { render, type Challenge } from '../core/Challenge.js'
import { challengesOf, fieldsReadBy, leaves, readsQuery, type Description } from '../core/Description.js'
import { exchangeOfResponse, knownExchange, type Exchange } from '../core/Exchange.js'

/**
 * Sets the field, with one line for each challenge. Without challenges, it is left as it is. Each challenge is rendered
 * once. If a script sent the request, the challenges open no prompt.
 */
export const setChallenges = (ctx: Context, given: ReadonlyArray<Challenge>, realm: string): void => {
  const challenges = withCarrier(ctx, given)
  const [first] = challenges
  if (first === undefined) return
  const line = (challenge: Challenge): string => {
    const { text, prompts } = rendered(challenge, realm)
    return prompts && isScript(ctx.request) ? `x${text}` : text
  }
  ctx.res.setHeader('WWW-Authenticate', challenges.length === 1 ? line(first) : [...new Set(challenges.map(line))])
}

// `sessionAuth` of the root names the cookie; a session of this application may be carried by a token, too
const withCarrier = (ctx: Context, challenges: ReadonlyArray<Challenge>): ReadonlyArray<Challenge> => {
  const carrier = knownExchange(ctx)?.carrier?.()
  const ofCookie = challenges.find(({ scheme }) => scheme === 'Session')
  if (carrier === undefined || ofCookie === undefined) return challenges
  if (challenges.some(({ scheme }) => scheme === carrier.scheme)) return challenges
  return [...challenges, { ...carrier, parameters: { ...ofCookie.parameters, ...carrier.parameters } }]
}

// The schemes for which browsers open a prompt
const prompting = /^(?:Basic|Digest|Negotiate|NTLM)$/i

/**
 * Whether a script in a page sent the request, by `fetch` or XMLHttpRequest. Browsers send Sec-Fetch-Mode together with
 * Sec-Fetch-Site. A client that sends only the first (Node's own `fetch`) has no prompt.
 */
const isScript = (request: Request): boolean => {
  const mode = request.get('Sec-Fetch-Mode')
  return mode === '' || request.get('Sec-Fetch-Site') === ''
    ? request.get('X-Requested-With').toLowerCase() === 'xmlhttprequest'
    : mode !== 'navigate' && mode !== 'nested-navigate'
}

interface Rendered {
  readonly realm: string
  readonly text: string
  /** Whether browsers open a prompt for it. */
  readonly prompts: boolean
}

// A challenge is a constant of its authenticator, and an application has one realm
const renderedChallenges = new WeakMap<Challenge, Rendered>()
const rendered = (challenge: Challenge, realm: string): Rendered => {
  const before = renderedChallenges.get(challenge)
  if (before?.realm === realm) return before
  const made = { realm, text: render(realm)(challenge), prompts: prompting.test(challenge.scheme) }
  renderedChallenges.set(challenge, made)
  return made
}

/**
 * `writeHead` of Node, with any arguments.
 *
 * Node writes every head by it, whether Koa, a handler or a stream causes it. A replacement of it calls the function before.
 * Headers that are passed to `writeHead` would replace those that are set, so they are set first, as Node itself does.
 *
 * The package `on-headers` is not enough. It runs once, so a head that Node refuses leaves the 500 after it without
 * headers. It also ignores the headers of `writeHead(200, undefined, headers)`.
 */
export type WriteHead = (this: ServerResponse, status: number, ...rest: ReadonlyArray<unknown>) => ServerResponse

/** Sets the headers among the arguments after the status, and returns the other arguments. */
export const setGiven = (response: ServerResponse, rest: ReadonlyArray<unknown>): ReadonlyArray<unknown> => {
  // as Node reads them: a message, then headers; or headers instead of the message
  const at = rest[1] === undefined || rest[1] === null ? 0 : 1
  const headers = rest[at]
  const isSet = typeof headers === 'object' && headers !== null && setHeaders(response, headers)
  return isSet ? rest.slice(0, at) : rest
}

const setHeaders = (response: ServerResponse, headers: object): boolean => {
  if (!Array.isArray(headers)) {
    // Safe: they would be passed to Node
    for (const [name, value] of Object.entries(headers as Record<string, string>)) {
      if (name !== '') response.setHeader(name, value)
    }
    return true
  }
  // names and values alternate; Node refuses anything else
  if (headers.length % 2 === 1) return false
  for (let at = 0; at < headers.length; at += 2) response.removeHeader(headers[at])
  for (let at = 0; at < headers.length; at += 2) response.appendHeader(headers[at], headers[at + 1])
  return true
}

/** The headers of one kind of answer of an operation, settled when the operation is registered. */
export interface GuardHeaders {
  /** Its challenges are those of a 401. */
  readonly description: Description
  /** The fields that authentication reads, for Vary (RFC 9110 §12.5.5). */
  readonly vary: string
  readonly cacheControl: string
  /** For Referrer-Policy; `undefined` if no credential is in the URL. */
  readonly referrerPolicy: string | undefined
  /** Whether a page of the request's origin may read the challenges; `undefined`: CORS middleware decides. */
  readonly exposesChallenges: ((request: Request) => boolean) | undefined
  readonly responseFields: (() => Readonly<Record<string, string>>) | undefined
}

export const guardHeadersOf = (description: Description) => {
  const withCacheControl = (cacheControl: string): GuardHeaders => ({
    description,
    cacheControl,
    // A key in the URL must not be passed on in Referer
    referrerPolicy: readsQuery(description) ? 'same-origin' : undefined,
    vary: fieldsReadBy(description).join(', '),
    exposesChallenges: exposingOf(description),
    responseFields: responseFieldsOf(description),
  })
  // RFC 9111 §5.2.2.7: shared caches know what Authorization means, but not cookies and query keys
  return { whenAdmitted: withCacheControl('private, no-store'), whenRefused: withCacheControl('no-store') }
}

const exposingOf = (description: Description): GuardHeaders['exposesChallenges'] => {
  const some = leaves(description).flatMap(({ exposesChallenges }) => exposesChallenges ?? [])
  return some.length === 0 ? undefined : (request) => some.some((isExposed) => isExposed(request))
}

const responseFieldsOf = (description: Description): GuardHeaders['responseFields'] => {
  const some = leaves(description).flatMap(({ responseFields }) => responseFields ?? [])
  return some.length === 0 ? undefined : () => Object.assign({}, ...some.map((fieldsNow) => fieldsNow()))
}

/** Those of a sign-in that is refused: anonymous callers can sign in, so there is no challenge. */
export const headersOfRefusal = guardHeadersOf({ _tag: 'AnyOf', members: [] }).whenRefused

// A tracer may replace the function of the class later. Then `applyHeaders` keeps the replacement, and calls it
const usualWriteHead: unknown = ServerResponse.prototype.writeHead

/** Gives a response the headers of an operation; the caching fields of upstream middleware are replaced. */
export const applyHeaders = (ctx: Context, exchange: Exchange, headers: GuardHeaders): void => {
  const { res } = ctx
  const { realm } = exchange.settings
  addVary(res, headers.vary)
  // in lower case, as Node keeps names: otherwise it makes a lower-case copy at each call
  res.setHeader('cache-control', headers.cacheControl)
  if (headers.referrerPolicy !== undefined) res.setHeader('referrer-policy', headers.referrerPolicy)
  const carried = exchangeOfResponse(ctx, exchange)
  const before = headersIn(carried)
  carried.headContext = ctx
  if (carried.headRealm !== realm) carried.headRealm = realm
  if (before === undefined) {
    carried.headers = headers
    if (res.writeHead !== usualWriteHead) carried.writeHead = res.writeHead
    res.writeHead = writeCompleteHead
    return
  }
  // Vary names the fields that all guards of this request read. A later wrapper of `writeHead` is called first, and calls ours
  carried.headers = { ...headers, vary: union(before.vary, headers.vary) } satisfies GuardHeaders
}

// Safe: they are written here alone
const headersIn = (exchange: Exchange | undefined) => exchange?.headers as GuardHeaders | undefined

/** The headers of the guarded operation that answers; `undefined` if none does. */
export const headersOfGuard = (response: ServerResponse): GuardHeaders | undefined => headersIn(knownExchange(response))

function writeCompleteHead(this: ServerResponse, status: number, message?: unknown, headers?: unknown): ServerResponse {
  // Safe, both: `applyHeaders` sets them before it installs this function, and calls that before in the same way
  const exchange = knownExchange(this)!
  const writeHead = (exchange.writeHead ?? usualWriteHead) as WriteHead
  // how Node itself calls it
  if (message === undefined && headers === undefined) {
    completeHead(this, status, exchange)
    return writeHead.call(this, status)
  }
  const left = setGiven(this, [message, headers])
  completeHead(this, status, exchange)
  return writeHead.call(this, status, ...left)
}

const setFields = (response: ServerResponse, fields: Readonly<Record<string, string>>): void => {
  for (const [name, value] of Object.entries(fields)) response.setHeader(name, value)
}

const completeHead = (response: ServerResponse, status: number, exchange: Exchange): void => {
  // Safe, both: `applyHeaders` writes them
  const { description, vary, cacheControl, referrerPolicy, exposesChallenges, responseFields } = headersIn(exchange)!
  const ctx = exchange.headContext as Context
  if (!response.hasHeader('cache-control')) response.setHeader('cache-control', cacheControl)
  if (referrerPolicy !== undefined && !response.hasHeader('referrer-policy')) {
    response.setHeader('referrer-policy', referrerPolicy)
  }
  addVary(response, vary)
  if (exchange.fields !== undefined) setFields(response, exchange.fields)
  const further = responseFields?.()
  if (further !== undefined) setFields(response, further)
  // in this order, because Node makes `headers` when it is first read
  if (exposesChallenges !== undefined && ctx.req.headers.origin !== undefined && exposesChallenges(ctx.request))
    expose(response, ['WWW-Authenticate', ...Object.keys(further ?? {})].join(', '))
  // RFC 9110 §15.5.2, whatever wrote the 401
  if (status === 401 && !response.hasHeader('www-authenticate')) {
    setChallenges(ctx, challengesOf(description), exchange.headRealm)
  }
}

// Fetch standard, "CORS protocol": a page reads no field that is not named here
const expose = (response: ServerResponse, fields: string): void => {
  const name = 'Access-Control-Expose-Headers'
  const present = response.getHeader(name)
  response.setHeader(name, present === undefined ? fields : union(String(present), fields))
}

const addVary = (response: ServerResponse, vary: string): void => {
  if (vary === '') return
  const present = response.getHeader('vary')
  if (present === undefined) response.setHeader('vary', vary)
  else if (present !== vary) response.setHeader('vary', union(String(present), vary))
}

/** The fields of two lists, each once. RFC 9110 §12.5.5: `*` means everything. */
export const union = (present: string, added: string): string => {
  const fields = [...present.split(','), ...added.split(',')]
    .map((field) => field.trim())
    .filter((field) => field !== '')
  if (fields.includes('*')) return '*'
  return [...new Map([...fields].reverse().map((field) => [field.toLowerCase(), field])).values()].reverse().join(', ')
}
