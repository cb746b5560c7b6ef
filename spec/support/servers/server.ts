/** A Koa application on a real socket for the time of a suite, and other servers for the time of a test. */
import { once } from 'node:events'
import { createServer, request, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import { request as secureRequest, type RequestOptions } from 'node:https'
import type { AddressInfo, Server as NetServer } from 'node:net'
import type Koa from 'koa'
import { onTestFinished } from 'vitest'
import { getCurrentTest } from 'vitest/suite'
import { duringSuite } from '../runs/duringSuite.js'

export interface Served {
  /** `http://127.0.0.1:port`, after the suite has begun. */
  readonly url: string
  readonly port: number
  /** What Koa's `error` event reported, in order. */
  readonly errors: unknown[]
}

/** Starts an application on a free port of the loopback address, in a test until it has finished. */
export const listen = async <S, C>(app: Koa<S, C>): Promise<Served & { readonly close: () => Promise<void> }> => {
  const errors: unknown[] = []
  app.on('error', (error: unknown) => errors.push(error))
  const server = await new Promise<Server>((resolve) => {
    const starting = app.listen(0, '127.0.0.1', () => resolve(starting))
  })
  // otherwise a server closes a connection that was idle for seconds, while a test on a busy machine sends on it
  server.keepAliveTimeout = 0
  const { port } = server.address() as AddressInfo
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  if (getCurrentTest() !== undefined) onTestFinished(close)
  return { url: `http://127.0.0.1:${port}`, port, errors, close }
}

/** Serves an application while the surrounding suite runs. Read its properties inside of tests. */
export const serve = <S, C>(make: () => Koa<S, C>): Served => {
  const now = duringSuite(
    () => listen(make()),
    ({ close }) => close(),
  )
  return {
    get url() {
      return now().url
    },
    get port() {
      return now().port
    },
    get errors() {
      return now().errors
    },
  }
}

/** Listens on a free port of the loopback address until the test has finished; the port. */
export const listening = async (server: Closable): Promise<number> => {
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections?.()
  })
  return (server.address() as AddressInfo).port
}

type Closable = NetServer & Partial<Pick<Server, 'closeAllConnections'>>

/** A free port, whose server gets its handler later. */
export const reserved = async () => {
  let handler: ((...given: Parameters<RequestListener>) => unknown) | undefined
  const port = await listening(createServer((req, res) => void handler?.(req, res)))
  return { port, serve: (given: typeof handler) => void (handler = given) }
}

/** Serves on a free port until the test has finished, which can stop it, and start it again on the same port. */
export const restartable = async (handle: RequestListener) => {
  let server: Server | undefined
  let port = 0
  const start = async (): Promise<void> => {
    server = createServer({ keepAliveTimeout: 0 }, handle).listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  const stop = async (): Promise<void> => {
    if (server === undefined) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    server = undefined
    await closed
  }
  await start()
  onTestFinished(stop)
  return { origin: `http://127.0.0.1:${port}`, stop, start }
}

export interface Exchanged {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Names and values in turn, as they were sent. */
  readonly rawHeaders: ReadonlyArray<string>
  /** The lines of `WWW-Authenticate`. */
  readonly challenges: ReadonlyArray<string>
  readonly text: string
}

/**
 * A request to the loopback address, or to another host, exactly as it is given: `fetch` decides itself about Host, Origin, and fields
 * that are repeated. Without an agent it has a connection of its own. It is by TLS with `rejectUnauthorized`. It rejects without an
 * answer in `timeout`, which is two minutes by default.
 */
export const exchange = (options: RequestOptions, body?: string | Buffer): Promise<Exchanged> =>
  new Promise((resolve, reject) => {
    const open = options.rejectUnauthorized === undefined ? request : secureRequest
    const outgoing = open({ host: '127.0.0.1', agent: false, ...options }, (incoming) => {
      const chunks: Buffer[] = []
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', reject)
      incoming.on('end', () => {
        const { statusCode: status = 0, headers, rawHeaders } = incoming
        const challenges = rawHeaders.filter(
          (_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === 'www-authenticate',
        )
        resolve({ status, headers, rawHeaders, challenges, text: Buffer.concat(chunks).toString() })
      })
    })
    outgoing.setTimeout(options.timeout ?? HANGS, () => outgoing.destroy(new Error('no answer')))
    outgoing.on('error', reject).end(body)
  })

const HANGS = 120_000

/** The pairs of the cookies that a response sets, as a `Cookie` field has them. */
export const cookiesIn = (headers: Headers): string =>
  headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')

/** A request by `fetch` that follows no redirect. The body of the response is read. */
export const ask = async (url: string, init: RequestInit = {}) => {
  const response = await fetch(url, { redirect: 'manual', ...init })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    challenge: response.headers.get('www-authenticate'),
    text,
  }
}
