/** Requests without a socket, as Node's parser would pass them to a framework, and responses that are not sent. */
import { IncomingMessage, ServerResponse, type RequestListener } from 'node:http'
import { Socket } from 'node:net'

const socket = new Socket()

/** A field of several lines is an array. */
export type Headers = Readonly<Record<string, string | ReadonlyArray<string>>>

const browserLike = {
  Host: 'localhost:3000',
  'User-Agent': 'bench',
  Accept: '*/*',
  'Accept-Encoding': 'gzip',
  Connection: 'keep-alive',
}

/** The lines of a request, those of a usual client among them. */
export const headersOf = <V extends string | ReadonlyArray<string>>(
  own: Readonly<Record<string, V>>,
): Readonly<Record<string, V | string>> => ({ ...browserLike, ...own })

/** The pairs of the cookies that these lines of `Set-Cookie` set, as a `Cookie` field has them. */
export const cookiesIn = (lines: unknown): string =>
  [lines ?? []]
    .flat()
    .map((line) => String(line).split(';')[0])
    .join('; ')

/** The answer, once its last byte would have been written. */
export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** What a request is, beside its address and its headers. */
export interface Asked {
  /** Default `GET`. */
  readonly method?: string
  /** The bytes that have come, all of them. */
  readonly body?: string
}

const requestOf = (url: string, headers: Headers, { method = 'GET', body }: Asked): IncomingMessage => {
  const request = new IncomingMessage(socket)
  Object.assign(request, { method, url, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value === 'string') {
      request.rawHeaders.push(name, value)
      request.headers[name.toLowerCase()] = value
    } else {
      for (const line of value) request.rawHeaders.push(name, line)
      // Node keeps the first line of a field that may be sent once
      request.headers[name.toLowerCase()] = name === 'Authorization' ? value[0] : value.join(', ')
    }
  }
  if (body !== undefined) {
    request.push(body)
    request.push(null)
    request.complete = true
  }
  return request
}

/** One request through a listener; resolves when it has answered. */
export const ask = (
  listener: RequestListener,
  url: string,
  headers: Headers,
  asked: Asked = {},
): Promise<ServerResponse> =>
  new Promise((resolve) => {
    const request = requestOf(url, headers, asked)
    const response = new ServerResponse(request)
    Reflect.set(response, 'end', function end(this: ServerResponse & { sent?: unknown }, body: unknown) {
      this.sent = body
      if (!this.headersSent) this.writeHead(this.statusCode)
      resolve(this)
      return this
    })
    void listener(request, response as never)
  })

/** The same, with everything that can be compared. */
export const answerOf = async (...sent: Parameters<typeof ask>): Promise<Answered> => {
  // No socket keeps the process alive here, and a limit of time does not
  const alive = setInterval(() => {}, 1000)
  const response = await ask(...sent).finally(() => clearInterval(alive))
  return {
    status: response.statusCode,
    headers: { ...response.getHeaders() },
    body: String(Reflect.get(response, 'sent')),
  }
}
