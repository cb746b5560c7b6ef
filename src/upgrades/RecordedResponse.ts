/**
 * The response that Koa writes for a request that another framework answers. Nothing of it is sent before `sendTo`.
 */
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2'
import { Duplex } from 'node:stream'
import type { AuthResponse } from '../core/Settings.js'
import { union } from '../koa/responseHeaders.js'

/** A request of node:http, or of the compatibility API of node:http2. */
export type AnyRequest = IncomingMessage | Http2ServerRequest

/** A response of node:http, or of the compatibility API of node:http2. */
export type AnyResponse = ServerResponse | Http2ServerResponse

/** What Koa has written. */
export interface Recorded extends AuthResponse {
  readonly body: string | Uint8Array | undefined
  readonly statusMessage: string | undefined
}

/** The fields that a guard adds to a response, by their names in lower case. */
export type Fields = Readonly<Record<string, string | ReadonlyArray<string>>>

export class RecordedResponse extends ServerResponse {
  recorded: Recorded | undefined

  constructor(request: AnyRequest) {
    // Safe: Node reads the method and the version of it, which both have
    super(request as IncomingMessage)
  }

  override writeHead(): this {
    return this
  }

  override flushHeaders(): void {}

  override write(): boolean {
    return true
  }

  override end(chunk?: unknown): this {
    if (this.recorded === undefined) {
      const { statusCode: status, statusMessage } = this
      const body = typeof chunk === 'string' || chunk instanceof Uint8Array ? chunk : undefined
      this.recorded = { status, statusMessage, headers: this.completed(), body }
    }
    return this
  }

  /** The fields of the response, with those that a guard adds when the head is written. Sessions are only read, so no cookie is set. */
  completed(): Fields {
    // a guard replaces the method
    Reflect.apply(this.writeHead, this, [this.statusCode])
    const { 'set-cookie': _cookies, ...fields } = this.getHeaders()
    // Safe: guards and Koa set strings, numbers and arrays of strings, and Node writes a number in the same way
    return fields as Fields
  }

  /** Is closed when the server's response is; until then, nothing is known of it. `false`: that response was not found. */
  follow(request: AnyRequest): boolean {
    const answer = answerTo(request)
    if (answer === undefined) return false
    const close = (): void => {
      const { headersSent, isEnded, statusCode } = answer.state()
      for (const [name, value] of Object.entries({ headersSent, writableEnded: isEnded, writableFinished: isEnded })) {
        Object.defineProperty(this, name, { value })
      }
      this.statusCode = statusCode
      this.destroyed = true
      this.emit('close')
    }
    if (answer.emitter.destroyed) close()
    else answer.emitter.once('close', close)
    return true
  }
}

interface Answer {
  readonly emitter: Duplex | ServerResponse
  readonly state: () => { readonly headersSent: boolean; readonly isEnded: boolean; readonly statusCode: number }
}

const answerTo = (request: AnyRequest): Answer | undefined => {
  const { stream } = request as { readonly stream?: unknown }
  if (stream instanceof Duplex) return answerOfStream(stream)
  // Node keeps the response there that a socket is writing. A request that was sent ahead has none yet
  const response: unknown = Reflect.get(request.socket ?? {}, '_httpMessage')
  if (!(response instanceof ServerResponse) || response.req !== request) return undefined
  return {
    emitter: response,
    state: () => ({
      headersSent: response.headersSent,
      isEnded: response.writableFinished,
      statusCode: response.statusCode,
    }),
  }
}

const answerOfStream = (stream: Duplex): Answer => ({
  emitter: stream,
  state: () => {
    const { headersSent, sentHeaders } = stream as { readonly headersSent?: boolean; readonly sentHeaders?: object }
    return {
      headersSent: headersSent === true,
      isEnded: stream.writableFinished,
      statusCode: Number(Reflect.get(sentHeaders ?? {}, ':status') ?? 0),
    }
  },
})

// They describe the body, or the challenge, that a refusal replaces
const replaced = [
  'content-encoding',
  'content-length',
  'etag',
  'last-modified',
  'transfer-encoding',
  'www-authenticate',
]

// What was there and what a guard adds are one list
const added: ReadonlySet<string> = new Set(['vary', 'access-control-expose-headers'])

/** Writes what Koa has written to the response of another server. Fields that are set there stay, unless they are of its body. */
export const sendTo = (response: AnyResponse, { status, statusMessage, headers = {}, body }: Recorded): void => {
  if (!response.headersSent) {
    for (const name of replaced) response.removeHeader(name)
    for (const [name, value] of Object.entries(headers)) {
      const present = added.has(name) ? response.getHeader(name) : undefined
      const both = present === undefined ? value : union(String(present), String(value))
      response.setHeader(name, typeof both === 'object' ? [...both] : both)
    }
    response.statusCode = status
    // HTTP/2 has none (RFC 9113 §8.3.2)
    if (response instanceof ServerResponse && statusMessage !== undefined) response.statusMessage = statusMessage
  }
  if (!response.writableEnded) response.end(body ?? '')
}
