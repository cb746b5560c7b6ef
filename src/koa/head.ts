/**
 * The fields that every answer of a guarded operation carries, whoever writes it: the handler, an exception handler, Koa for
 * an error (it strips all headers first), a stream.
 *
 * They are completed when the head is written, so that no promise has to be waited for and no error be changed. What stands
 * there already stays; Vary is added to.
 */
import type { ServerResponse } from 'node:http'
import { fieldsOf, readsQuery, type Description } from '../core/Description.js'

type HeaderLine = readonly [name: string, value: string]

/** What answers of an operation are made of, settled when it is registered. */
export interface Operation {
  readonly description: Description
  /** What authentication reads, for Vary (RFC 9110 §12.5.5). */
  readonly vary: string
  /** Fields of all its answers. */
  readonly always: ReadonlyArray<HeaderLine>
  /** Fields of those whose handler runs. */
  readonly accepted: ReadonlyArray<HeaderLine>
}

/** What answers of the operations behind an authenticator are made of. */
export const operationOf = (description: Description): Operation => {
  // A key in the URL must not travel on in Referer (SECURITY A-28)
  const always: ReadonlyArray<HeaderLine> = readsQuery(description) ? [['Referrer-Policy', 'no-referrer']] : []
  return {
    description,
    vary: fieldsOf(description).join(', '),
    always,
    // RFC 9111 §5.2.2.7: shared caches know what Authorization means, but not cookies and query keys (SECURITY A-26)
    accepted: [['Cache-Control', 'private, no-store'], ...always],
  }
}

const operationKey = Symbol('the guarded operation that answers')
const writeHeadKey = Symbol('the writeHead before')

interface Claimed extends ServerResponse {
  [operationKey]?: Operation
  [writeHeadKey]?: ServerResponse['writeHead']
}

/** Makes a response the answer of an operation; what upstream said about caching is replaced. */
export const claim = (response: ServerResponse, operation: Operation): void => {
  const claimed: Claimed = response
  claimed[operationKey] = operation
  for (const line of operation.accepted) response.setHeader(line[0], line[1])
  // once: whoever wraps it later is called first, and calls it
  if (claimed[writeHeadKey] !== undefined) return
  claimed[writeHeadKey] = response.writeHead
  response.writeHead = writeCompleteHead
}

/** The operation that a response is the answer of. */
export const claimant = (response: ServerResponse): Operation | undefined => {
  const claimed: Claimed = response
  return claimed[operationKey]
}

function writeCompleteHead(this: Claimed, status: number, reason?: never, headers?: never): ServerResponse {
  const operation = this[operationKey]
  if (operation !== undefined && !this.headersSent) {
    for (const line of operation.accepted) if (!this.hasHeader(line[0])) this.setHeader(line[0], line[1])
    addVary(this, operation.vary)
  }
  // `claim` put it there before this one; Node takes what is missing as undefined
  return this[writeHeadKey]!(status, reason, headers)
}

/** Adds to Vary what authentication read, whatever stands there. */
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
