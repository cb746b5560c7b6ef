/**
 * The bytes of a request's body, as they came. They are read once, before any parser, and then put back into `ctx.req`, so that a
 * parser behind the guard reads the same bytes.
 *
 * | the body                                | the answer, or the result                             |
 * |-----------------------------------------|-------------------------------------------------------|
 * | none (RFC 9112 §6.3)                    | no bytes, and nothing is read                         |
 * | longer than the limit                   | 413; bytes after the limit are not kept               |
 * | ends before it is whole                 | 400                                                   |
 * | not whole within the time of a decision | 408                                                   |
 * | was read before, and its bytes are kept | the bytes in `rawBody`                                |
 * | was read before                         | an exception, whose message names the fix             |
 *
 * A compressed body is not decompressed: senders sign the bytes that they send.
 */
import type { IncomingMessage } from 'node:http'
import type { Request } from '../core/Request.js'
import { settingsOf } from '../core/Exchange.js'
import { httpError } from '../core/Settings.js'
import { fieldIn } from '../core/RequestFields.js'
import * as is from '../core/checks.js'
import { ownOrGetter, withCode } from '../core/data.js'
import { checkOptions } from '../core/options.js'

/** The longest body, in bytes, unless an option says otherwise. */
export const MAX_BODY = 1024 * 1024

const noBytes = Buffer.alloc(0)

// By request, so that two members of a list read a body once
const bodies = new WeakMap<IncomingMessage, Promise<Buffer>>()

const bodyTooLong = (): Error => httpError(413, 'the body is longer than maxLength')

/**
 * The bytes of a request's body as they came, for a kind of your own that checks a signature. They are read once, before any parser, and
 * put back, so that a parser behind it reads them again. Rejects with an HTTP error for a body that is longer than `maxLength` bytes
 * (default 1 MB; 413), late (408) or cut off (400), and with an error that names the fix if a parser has taken the bytes.
 *
 * @example
 * import { withAuth } from 'koa-with-auth'
 * import { rawBody } from 'koa-with-auth/webhooks'
 *
 * const guard = withAuth(async (request) => ({ length: (await rawBody(request)).length }))
 */
export const rawBody = (
  request: Request,
  options: { readonly maxLength?: number | undefined } = {},
): Promise<Buffer> => {
  const { maxLength = MAX_BODY } = checkOptions('rawBody(request, options)', options, {
    maxLength: is.maybe(is.positive),
  })
  return bytesOfBody('rawBody', request, maxLength)
}

/** @internal The same, for a caller that a message names. */
export const bytesOfBody = async (caller: string, request: Request, maxLength: number): Promise<Buffer> => {
  const { req } = request
  if (!hasBody(request)) return noBytes
  let body = bodies.get(req)
  if (body === undefined) {
    const isUnread = !req.readableDidRead && !req.readableEnded && req.readableEncoding === null
    body = isUnread ? reading(request, maxLength) : Promise.resolve(keptBytes(caller, request))
    bodies.set(req, body)
  }
  const bytes = await body
  if (bytes.length > maxLength) throw bodyTooLong()
  return bytes
}

/** Whether a request has a body (RFC 9112 §6.3; RFC 9113 §8.1). */
export const hasBody = (request: Request): boolean => declaredIn(request) !== 0

// `Content-Length`; 0 without it in HTTP/1, undefined if only the end of the body shows its length
const declaredIn = (request: Request): number | undefined => {
  if (fieldIn(request, 'transfer-encoding') !== '') return undefined
  const declared = fieldIn(request, 'content-length')
  if (declared !== '') return Number(declared)
  // In HTTP/2, a request without a body ends with its head
  const stream: unknown = Reflect.get(request.req, 'stream')
  return typeof stream === 'object' && stream !== null && Reflect.get(stream, 'endAfterHeaders') === false
    ? undefined
    : 0
}

// --- a body that nothing has read

const reading = async (request: Request, maxLength: number): Promise<Buffer> => {
  const declared = declaredIn(request)
  // nothing was read, so Node drops the rest when the response is sent, and the connection can be used again
  if (declared !== undefined && declared > maxLength) throw bodyTooLong()
  if (request.req.destroyed) throw cutOff()
  // Before the guard gives up, which would be a 503: this is not our fault
  const patience = 0.9 * settingsOf(request).timeout
  return new Promise((resolve, reject) => wholeBody(request.req, declared, maxLength, patience, resolve, reject))
}

/** Reads a body, and puts it back, so that a parser after it finds the same. */
const wholeBody = (
  req: IncomingMessage,
  declared: number | undefined,
  maxLength: number,
  patience: number,
  resolve: (body: Buffer) => void,
  reject: (error: Error) => void,
): void => {
  const chunks: Buffer[] = []
  let length = 0
  const stop = (): void => {
    clearTimeout(timer)
    req.off('readable', take)
    for (const event of ['close', 'error']) req.off(event, cut)
  }
  const fail = (error: Error): void => {
    stop()
    // read and dropped, so that the connection can be used again
    req.resume()
    reject(error)
  }
  const cut = (): void => fail(cutOff())
  const take = (): void => {
    // Never more than there is: to read at the end would end the stream, and then it takes no bytes back
    while (req.readableLength > 0) {
      const chunk: unknown = req.read()
      if (!Buffer.isBuffer(chunk)) break
      length += chunk.length
      if (length > maxLength) return fail(bodyTooLong())
      chunks.push(chunk)
    }
    if (length !== declared && !isBodyOver(req)) return
    stop()
    const body = Buffer.concat(chunks, length)
    // in this tick, before the end is known
    if (length > 0) req.unshift(body)
    resolve(body)
  }
  const timer = setTimeout(() => fail(httpError(408, 'the body did not come in time')), patience)
  if (isBodyOver(req)) return take()
  for (const event of ['close', 'error']) req.on(event, cut)
  req.on('readable', take)
}

const cutOff = (): Error => httpError(400, 'the body ended before it was whole')

// `complete` is not known in HTTP/2
const isBodyOver = (req: IncomingMessage): boolean => {
  const state: unknown = Reflect.get(req, '_readableState')
  return req.complete || (typeof state === 'object' && state !== null && Reflect.get(state, 'ended') === true)
}

// --- a body that was read before

// What express.raw() and `ctx.request.body = await getRawBody(ctx.req)` leave
const bytesIn = (source: object): Uint8Array | undefined => {
  const body = ownOrGetter(source, 'body')
  return body instanceof Uint8Array ? body : undefined
}

// Parsers keep a decoded string. It counts only if it can be the bytes that came: not a string that is empty, has another length, was
// decompressed or had another charset
const keptBytes = (caller: string, request: Request): Buffer => {
  const kept =
    ownOrGetter(request, 'rawBody') ?? ownOrGetter(request.req, 'rawBody') ?? bytesIn(request) ?? bytesIn(request.req)
  const bytes = typeof kept === 'string' || kept instanceof Uint8Array ? Buffer.from(kept) : noBytes
  const declared = declaredIn(request)
  const isWhole =
    bytes.length > 0 &&
    (declared === undefined || declared === bytes.length) &&
    /^(?:identity)?$/i.test(fieldIn(request, 'content-encoding')) &&
    (typeof kept !== 'string' || !/;\s*charset\s*=\s*"?(?!utf-?8\b)/i.test(fieldIn(request, 'content-type')))
  if (isWhole) return bytes
  throw withCode(
    new Error(
      `${caller}: a body parser has read the body, and its bytes are gone. Write withAuth(...) before the parser, as in router.post(path, withAuth(hook), bodyParser(), handler), or let the parser skip this path, or keep the bytes in ctx.request.rawBody`,
    ),
    'ERR_BODY_WAS_READ',
  )
}
