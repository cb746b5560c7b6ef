/**
 * The headers of every response of a guarded operation, whatever writes it: the handler, an exception handler, Koa for
 * an error (it removes all headers first), or a stream.
 *
 * They are set before the handler runs, and completed when the head is written. So no promise must be awaited, and no
 * error must be changed. A header that the handler sets stays. Vary is added to.
 *
 * `src/README.md` has the table of which header is set where.
 */
import type { ServerResponse } from 'node:http'
import type { Context, Request } from 'koa'
import { challengesOf, fieldsOf, leaves, readsQuery, type Description } from '../core/Description.js'
import { policyMark } from '../core/marks.js'
import { settingsOf } from '../core/Settings.js'
import { setChallenges } from './challenges.js'
import { setGiven, type WriteHead } from './writeHead.js'

type HeaderLine = readonly [name: string, value: string]

/** The headers of an operation's answers, settled when it is registered. */
export interface HeaderPolicy {
  /** Its challenges are those of a 401. */
  readonly description: Description
  /** What authentication reads, for Vary (RFC 9110 §12.5.5). */
  readonly vary: string
  /** Headers of answers whose handler runs. */
  readonly whenAdmitted: ReadonlyArray<HeaderLine>
  /** Headers of refusals. */
  readonly whenRefused: ReadonlyArray<HeaderLine>
  /** Whether a page of the request's origin may read the challenges; `undefined`: CORS middleware decides. */
  readonly exposesChallenges: ((request: Request) => boolean) | undefined
}

/** The headers of the operations that an authenticator guards. */
export const headerPolicyOf = (description: Description): HeaderPolicy => {
  // A key in the URL must not be passed on in Referer
  const always: ReadonlyArray<HeaderLine> = readsQuery(description) ? [['Referrer-Policy', 'no-referrer']] : []
  return {
    description,
    vary: fieldsOf(description).join(', '),
    // RFC 9111 §5.2.2.7: shared caches know what Authorization means, but not cookies and query keys
    whenAdmitted: [['Cache-Control', 'private, no-store'], ...always],
    whenRefused: [['Cache-Control', 'no-store'], ...always],
    exposesChallenges: exposingOf(description),
  }
}

const exposingOf = (description: Description): HeaderPolicy['exposesChallenges'] => {
  const some = leaves(description).flatMap(({ exposesChallenges }) => exposesChallenges ?? [])
  return some.length === 0 ? undefined : (request) => some.some((isExposed) => isExposed(request))
}

interface Applied {
  readonly ctx: Context
  readonly policy: HeaderPolicy
  /** What all guards read that this request passed. */
  readonly vary: string
  readonly headers: ReadonlyArray<HeaderLine>
  /** The protection space of the operation. */
  readonly realm: string
  /** What writes the head that is completed here. */
  readonly writeHead: WriteHead
}

interface WithPolicy extends ServerResponse {
  [policyMark]?: Applied
}

/** Gives a response the headers of an operation; what upstream middleware said about caching is replaced. */
export const applyPolicy = (ctx: Context, policy: HeaderPolicy, headers: ReadonlyArray<HeaderLine>): void => {
  const response: WithPolicy = ctx.res
  const before = response[policyMark]
  const { realm } = settingsOf(ctx.request)
  addVary(response, policy.vary)
  for (const line of headers) response.setHeader(line[0], line[1])
  if (before === undefined) {
    // Safe: it is called in the same way
    const writeHead = response.writeHead as WriteHead
    response[policyMark] = { ctx, policy, vary: policy.vary, headers, realm, writeHead }
    response.writeHead = writeCompleteHead
    return
  }
  // a later wrapper of `writeHead` is called first, and calls ours
  const vary = union(before.vary, policy.vary)
  response[policyMark] = { ctx, policy, vary, headers, realm, writeHead: before.writeHead }
}

/** The headers of the guarded operation that answers; `undefined` if none does. */
export const policyOf = (response: ServerResponse): HeaderPolicy | undefined => {
  const { [policyMark]: applied }: WithPolicy = response
  return applied?.policy
}

function writeCompleteHead(this: WithPolicy, status: number, ...rest: ReadonlyArray<unknown>): ServerResponse {
  // Safe: `applyPolicy` sets it before it installs this function
  const applied = this[policyMark]!
  const left = setGiven(this, rest)
  complete(this, status, applied)
  return applied.writeHead.call(this, status, ...left)
}

const complete = (response: ServerResponse, status: number, { ctx, policy, vary, headers, realm }: Applied): void => {
  for (const line of headers) if (!response.hasHeader(line[0])) response.setHeader(line[0], line[1])
  addVary(response, vary)
  if (ctx.req.headers.origin !== undefined && policy.exposesChallenges?.(ctx.request) === true)
    expose(response, 'WWW-Authenticate')
  // RFC 9110 §15.5.2, whatever wrote the 401
  if (status === 401 && !response.hasHeader('WWW-Authenticate')) {
    setChallenges(ctx, challengesOf(policy.description), realm)
  }
}

// Fetch standard, "CORS protocol": a page reads no field that is not named here
const expose = (response: ServerResponse, field: string): void => {
  const name = 'Access-Control-Expose-Headers'
  const present = response.getHeader(name)
  response.setHeader(name, present === undefined ? field : union(String(present), field))
}

const addVary = (response: ServerResponse, vary: string): void => {
  if (vary === '') return
  const present = response.getHeader('Vary')
  if (present === undefined) response.setHeader('Vary', vary)
  else if (present !== vary) response.setHeader('Vary', union(String(present), vary))
}

// RFC 9110 §12.5.5: `*` means everything
const union = (present: string, added: string): string => {
  const fields = [...present.split(','), ...added.split(',')]
    .map((field) => field.trim())
    .filter((field) => field !== '')
  if (fields.includes('*')) return '*'
  return [...new Map([...fields].reverse().map((field) => [field.toLowerCase(), field])).values()].reverse().join(', ')
}
