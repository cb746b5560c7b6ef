/** A Koa application on a real socket for the time of a suite, and other servers for the time of a test. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import type Koa from 'koa'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { getCurrentTest } from 'vitest/suite'

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
  let served: Awaited<ReturnType<typeof listen>> | undefined
  beforeAll(async () => {
    served = await listen(make())
  })
  afterAll(() => served?.close())
  const now = (): Served => {
    if (served === undefined) throw new Error('not served yet: read it inside of a test')
    return served
  }
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
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

type Closable = NetServer & Pick<Server, 'closeAllConnections'>

/** A free port, whose server gets its handler later. */
export const reserved = async () => {
  let handler: ((...given: Parameters<RequestListener>) => unknown) | undefined
  const port = await listening(createServer((req, res) => void handler?.(req, res)))
  return {
    port,
    serve: (given: typeof handler) => {
      handler = given
    },
  }
}

/** A server of another program, which a test can stop, and start again on the same port. */
export interface Restartable {
  /** `http://127.0.0.1:port` */
  readonly origin: string
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
}

/** Serves on a free port until the test has finished. */
export const restartable = async (handle: RequestListener): Promise<Restartable> => {
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
