/**
 * The fields that every answer of a guarded operation carries, whoever writes it: the handler, an exception handler, Koa for
 * an error (it strips all headers first), a stream.
 *
 * A 401 without a challenge gets the operation's, too. They are completed when the head is written, so that no promise has
 * to be waited for and no error be changed. What is there already stays; Vary is added to.
 */
import type { ServerResponse } from 'node:http'
import type { Context, Request } from 'koa'
import { challengesOf, fieldsOf, leaves, readsQuery, type Description } from '../core/Description.js'
import { claimMark } from '../core/marks.js'
import { settingsOf } from '../core/Settings.js'
import { setChallenges } from './challenges.js'
import { setGiven, type WriteHead } from './writeHead.js'

type HeaderLine = readonly [name: string, value: string]

/** What answers of an operation are made of, settled when it is registered. */
export interface Operation {
  readonly description: Description
  /** What authentication reads, for Vary (RFC 9110 §12.5.5). */
  readonly vary: string
  /** Fields of answers whose handler runs. */
  readonly accepted: ReadonlyArray<HeaderLine>
  /** Fields of answers that this layer gives itself. */
  readonly refused: ReadonlyArray<HeaderLine>
  /** Whether a page of the request's origin may read the challenges; `undefined` where CORS is all that decides. */
  readonly exposesChallenges: ((request: Request) => boolean) | undefined
}

/** What answers of the operations behind an authenticator are made of. */
export const operationOf = (description: Description): Operation => {
  // A key in the URL must not travel on in Referer
  const always: ReadonlyArray<HeaderLine> = readsQuery(description) ? [['Referrer-Policy', 'no-referrer']] : []
  return {
    description,
    vary: fieldsOf(description).join(', '),
    // RFC 9111 §5.2.2.7: shared caches know what Authorization means, but not cookies and query keys
    accepted: [['Cache-Control', 'private, no-store'], ...always],
    refused: [['Cache-Control', 'no-store'], ...always],
    exposesChallenges: exposingOf(description),
  }
}

const exposingOf = (description: Description): Operation['exposesChallenges'] => {
  const some = leaves(description).flatMap(({ exposesChallenges }) => exposesChallenges ?? [])
  return some.length === 0 ? undefined : (request) => some.some((isExposed) => isExposed(request))
}

interface Claim {
  readonly ctx: Context
  readonly operation: Operation
  /** What all layers read that this request went through. */
  readonly vary: string
  readonly fields: ReadonlyArray<HeaderLine>
  /** The protection space of the operation. */
  readonly realm: string
  /** Whom its guard let in. */
  readonly principal: unknown
  /** What writes the head that is completed here. */
  readonly writeHead: WriteHead
}

interface Claimed extends ServerResponse {
  [claimMark]?: Claim
}

/** Makes a response the answer of an operation; what upstream said about caching is replaced. */
export const claim = (
  ctx: Context,
  operation: Operation,
  fields: ReadonlyArray<HeaderLine>,
  principal?: unknown,
): void => {
  const response: Claimed = ctx.res
  const before = response[claimMark]
  const { realm } = settingsOf(ctx.request)
  addVary(response, operation.vary)
  for (const line of fields) response.setHeader(line[0], line[1])
  if (before === undefined) {
    // Safe: it is called as it was
    const writeHead = response.writeHead as WriteHead
    response[claimMark] = { ctx, operation, vary: operation.vary, fields, realm, principal, writeHead }
    response.writeHead = writeCompleteHead
    return
  }
  // whoever wrapped it since is called first, and calls it
  const vary = union(before.vary, operation.vary)
  response[claimMark] = { ctx, operation, vary, fields, realm, principal, writeHead: before.writeHead }
}

/** Whom the guard let in that claimed a response before: what others write into `auth` is not brought back. */
export const admittedBefore = (response: ServerResponse): unknown => {
  const claimed: Claimed = response
  return claimed[claimMark]?.principal
}

/** What an answer is made of, where a guarded operation gives it. */
export const operationBehind = (response: ServerResponse): Operation | undefined => {
  const claimed: Claimed = response
  return claimed[claimMark]?.operation
}

/** Whether a response is the answer of a guarded operation. */
export const isClaimed = (response: ServerResponse): boolean => claimMark in response

function writeCompleteHead(this: Claimed, status: number, ...rest: ReadonlyArray<unknown>): ServerResponse {
  // `claim` puts it there before this one
  const claimed = this[claimMark]!
  const left = setGiven(this, rest)
  complete(this, status, claimed)
  return claimed.writeHead.call(this, status, ...left)
}

const complete = (response: ServerResponse, status: number, { ctx, operation, vary, fields, realm }: Claim): void => {
  for (const line of fields) if (!response.hasHeader(line[0])) response.setHeader(line[0], line[1])
  addVary(response, vary)
  if (ctx.req.headers.origin !== undefined && operation.exposesChallenges?.(ctx.request) === true)
    expose(response, 'WWW-Authenticate')
  // RFC 9110 §15.5.2, whoever answered it
  if (status === 401 && !response.hasHeader('WWW-Authenticate')) {
    setChallenges(ctx, challengesOf(operation.description), realm)
  }
}

// Fetch standard, "CORS protocol": a page reads no field that is not named here
const expose = (response: ServerResponse, field: string): void => {
  const name = 'Access-Control-Expose-Headers'
  const present = response.getHeader(name)
  response.setHeader(name, present === undefined ? field : union(String(present), field))
}

/** Adds to Vary what authentication read, whatever is there. */
export const addVary = (response: ServerResponse, vary: string): void => {
  if (vary === '') return
  const present = response.getHeader('Vary')
  if (present === undefined) response.setHeader('Vary', vary)
  else if (present !== vary) response.setHeader('Vary', union(String(present), vary))
}

// RFC 9110 §12.5.5: `*` stands for everything
const union = (present: string, added: string): string => {
  const fields = [...present.split(/\s*,\s*/), ...added.split(', ')].filter((field) => field !== '')
  if (fields.includes('*')) return '*'
  return [...new Map([...fields].reverse().map((field) => [field.toLowerCase(), field])).values()].reverse().join(', ')
}
