/**
 * `authSignal` and `untilEnd`: the end of the credential that let a request in, for the streams and the work of the request. `shutDown`: the graceful
 * end of a process whose server has open streams and sockets.
 *
 * Nothing is made before a caller asks. The waiting ends are released when the client goes away. After a whole response, it is released when
 * nothing holds the signal any more.
 */
import type { OutgoingMessage, Server as HttpServer } from 'node:http'
import type { Server } from 'node:net'
import { Duplex, finished, Readable } from 'node:stream'
import type { Context, Request } from 'koa'
import { End, PrincipalSource, type AuthEndedError, type Ending, type EndSource } from '../core/ends.js'
import { ends } from '../ends/ends.js'
import { exchangeOfResponse, knownExchange } from '../core/Exchange.js'
import * as is from '../core/checks.js'
import { checkOptions, declareFactories } from '../core/options.js'

const noEnds: ReadonlyArray<never> = []

// Work that goes on after the response may hold a signal, and hears of the end. The process does not hold it, so this is no leak
const held = new WeakMap<AbortSignal, EndsOfRequest>()
const forgotten = new FinalizationRegistry<ReadonlyArray<End>>((waiting) => {
  for (const end of waiting) ends().close(end)
})

const weakly = (opened: EndsOfRequest): Ending => {
  const reference = new WeakRef(opened)
  return { abort: (reason) => reference.deref()?.abort(reason) }
}

/** The ends for which a request waits. A signal is made only for a caller that asks, because it takes more memory than all the rest. */
class EndsOfRequest {
  readonly accepted: ReadonlyArray<EndSource> | undefined
  readonly before: EndsOfRequest | undefined
  // most requests have a single end, and an array of it would take half as much again
  readonly #first: End | undefined
  readonly #others: ReadonlyArray<End>
  reason: AuthEndedError | undefined
  #controller: AbortController | undefined
  #stop: (() => void) | undefined

  constructor(
    accepted: ReadonlyArray<EndSource> | undefined,
    waiting: ReadonlyArray<End>,
    before: EndsOfRequest | undefined,
  ) {
    this.accepted = accepted
    this.before = before
    this.#first = waiting[0]
    this.#others = waiting.length < 2 ? noEnds : waiting.slice(1)
  }

  get ends(): ReadonlyArray<End> {
    return this.#first === undefined ? noEnds : [this.#first, ...this.#others]
  }

  signal(isOver: boolean): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (isOver) this.#keep(this.#controller)
    }
    if (this.reason !== undefined) this.#controller.abort(this.reason)
    return this.#controller.signal
  }

  stopping(stop: () => void): void {
    const before = this.#stop
    this.#stop =
      before === undefined
        ? stop
        : () => {
            before()
            stop()
          }
  }

  abort(reason: AuthEndedError): void {
    this.reason = reason
    for (const end of this.ends) ends().close(end)
    this.#stop?.()
    this.#controller?.abort(reason)
  }

  /** The response is closed. If the client has gone, nothing goes on for it. */
  release(isSent: boolean): void {
    if (isSent && this.#controller !== undefined) this.#keep(this.#controller)
    else for (const end of this.ends) ends().close(end)
    this.before?.release(isSent)
  }

  #keep({ signal }: AbortController): void {
    if (this.reason !== undefined || this.#first === undefined) return
    held.set(signal, this)
    forgotten.register(signal, this.ends)
    const target = weakly(this)
    for (const end of this.ends) {
      if (end.target !== undefined) end.target = target
      else if (this.reason === undefined) ends().open(end, target)
    }
  }
}

interface RequestCarrier {
  readonly request: Request
}

/**
 * Returns a signal that is aborted when the credential of this request has ended: when a token or a key expires, when a key is revoked, when
 * the user signs out, here or in another process. Its `reason` is an `AuthEndedError`, whose `cause` says why. If it has ended already, the
 * signal is aborted. The same request gets the same signal. Work that goes on after the response can hold it. On a public operation, and for
 * a credential without an end, `shutDown` alone aborts it. Throws a TypeError for anything but the context of a request.
 *
 * With `allOf` the earliest end counts, and also with a guard of the application around that of the operation. With a list, the end of
 * the member that let in counts. It costs nothing until it is called. Then a session or an API key is looked up once.
 *
 * @example
 * import { authSignal, httpBearer, withAuth } from 'koa-with-auth'
 * import Router from '@koa/router'
 *
 * const bearer = httpBearer({
 *   authenticate: (_request, token) => token === 'supersecret' && { user: 'anna', expiresAt: new Date('2100-01-01') },
 * })
 * const router = new Router()
 * router.get('/report', withAuth(bearer), async (ctx) => {
 *   ctx.body = await fetch('https://reports.example', { signal: authSignal(ctx) }).then((answer) => answer.text())
 * })
 */
export const authSignal = (ctx: RequestCarrier): AbortSignal =>
  openedBy('authSignal(ctx)', ctx).signal(isClosed(ctx.request.ctx))

// A response of HTTP/2 does not say it, its stream does
const isClosed = ({ res }: Context): boolean => {
  const stream: unknown = Reflect.get(res, 'stream')
  return (stream instanceof Duplex ? stream : res).destroyed
}

const openedBy = (caller: string, given: RequestCarrier): EndsOfRequest => {
  const request = given?.request
  const ctx = request?.ctx
  if (ctx === undefined) throw new TypeError(`${caller}: ctx must be the context of a request`)
  const known = knownExchange(ctx)
  const accepted = known?.ending ?? known?.accepted
  // middleware can make another context for the same response
  const exchange = exchangeOfResponse(ctx)
  // Safe: it is written here alone
  const before = exchange.opened as EndsOfRequest | undefined
  if (before !== undefined && before.accepted === accepted) return before
  const opened = new EndsOfRequest(accepted, endsOfSources(request, accepted), before)
  exchange.opened = opened
  if (before === undefined) ctx.res.on('close', releaseOnClose)
  if (isClosed(ctx)) return opened
  for (const end of opened.ends) if (opened.reason === undefined) ends().open(end, opened)
  return opened
}

/** The ends of a request: of the accepted credentials, and of the principal that a function made of them. */
const endsOfSources = (
  request: Request & { readonly auth?: unknown },
  accepted: ReadonlyArray<EndSource> | undefined,
): ReadonlyArray<End> => {
  const own = request.auth === undefined ? undefined : new PrincipalSource(request.auth)
  const sources = [...(accepted ?? []), ...(own === undefined ? [] : [own])]
  const found = sources.flatMap((source) => source.endFor(request) ?? [])
  // the process may end, whatever let the request in
  if (found.length === 0) return [new End(Infinity)]
  // the same time again says nothing more, but perhaps not why
  if (found.length < 2) return found
  return found.filter((end, at) => end.named() !== undefined || found.findIndex((one) => one.at === end.at) === at)
}

// One function for all responses, because a closure for each would take more memory than it releases
function releaseOnClose(this: OutgoingMessage): void {
  // Safe: `authSignal` alone writes it
  const opened = knownExchange(this)?.opened as EndsOfRequest | undefined
  opened?.release(this.writableEnded)
}

/**
 * Returns a stream for `ctx.body` that ends when `source` ends, or when the credential of this request has ended (`authSignal`). Then it
 * destroys the source, and sends nothing that was not sent yet. If the client goes away, it destroys the source, too. A response is
 * cut off if the source fails, and at an early end if it has a `Content-Length`, because a client would take the part that it has for the
 * whole. Throws a TypeError for a source that is no readable stream of Node.
 *
 * @example
 * import { PassThrough } from 'node:stream'
 * import { httpBearer, untilEnd, withAuth } from 'koa-with-auth'
 * import Router from '@koa/router'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const router = new Router()
 * router.get('/events', withAuth(bearer), (ctx) => {
 *   const events = new PassThrough()
 *   events.write('data: hello\n\n')
 *   ctx.type = 'text/event-stream'
 *   ctx.body = untilEnd(ctx, events)
 * })
 */
export const untilEnd = (ctx: RequestCarrier, source: Readable): Readable => {
  const opened = openedBy('untilEnd(ctx, stream)', ctx)
  if (typeof source?.pipe !== 'function' || typeof source.destroy !== 'function') {
    throw new TypeError('untilEnd(ctx, stream): stream must be a readable stream of node:stream')
  }
  let failure: Error | undefined
  const body = new Readable({
    // nothing waits here that would still be sent
    highWaterMark: 0,
    read: () => void (failure === undefined ? source.resume() : body.destroy(failure)),
    destroy: (error, done) => {
      source.destroy()
      done(error)
    },
  })
  const end = (): void => {
    source.off('data', push)
    source.destroy()
    if (body.destroyed) return
    body.push(null)
    if (ctx.request.ctx.res.hasHeader('Content-Length')) ctx.request.ctx.res.destroy()
  }
  const push = (chunk: unknown): void => {
    if (!body.push(chunk)) source.pause()
  }
  // Koa leaves a response open whose head is sent, so it is cut off here. A source that is destroyed by us fails, too
  const fail = (error: Error): void => {
    if (opened.reason !== undefined || body.destroyed) return
    failure = error
    // before somebody reads, an error would end the process
    if (body.readableFlowing !== null) body.destroy(error)
    if (ctx.request.ctx.headerSent) ctx.request.ctx.res.destroy()
  }
  // also for a source that has ended or failed before
  finished(source, { writable: false }, (error) => {
    if (error) fail(error)
    else if (!body.destroyed && opened.reason === undefined) body.push(null)
  })
  if (opened.reason !== undefined) {
    end()
    return body
  }
  source.on('data', push)
  opened.stopping(end)
  return body
}

/** How long the end of a process may take. */
export interface ShutDownOptions {
  /** After so many milliseconds, connections are closed whose response is not complete. Default 10 seconds. */
  readonly timeout?: number | undefined
}

const SHUT_DOWN_TIMEOUT = 10_000

// How often connections are closed that have become idle, in milliseconds
const OFTEN = 100

/**
 * Ends a process gracefully: takes no more connections, and aborts each signal of `authSignal` and of the guards of `/upgrades`, also those
 * that are asked for later; their `reason` is an `AuthEndedError` whose `cause` is `shutting down`. So the streams of `untilEnd` end. Other
 * responses are completed. Resolves when the last connection is closed, or after `timeout`, when it has closed the other connections. A socket
 * after an upgrade is not the server's: close it when its signal is aborted. It concerns all applications of the process, and cannot
 * be undone. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { createServer } from 'node:http'
 * import Koa from 'koa'
 * import { shutDown } from 'koa-with-auth/upgrades'
 *
 * const server = createServer(new Koa().callback())
 * export const onSigterm = () => shutDown(server, { timeout: 5000 }) // process.once('SIGTERM', onSigterm)
 */
export const shutDown = (
  server: Server & Partial<Pick<HttpServer, 'closeIdleConnections' | 'closeAllConnections'>>,
  options: ShutDownOptions = {},
): Promise<void> => {
  const { timeout = SHUT_DOWN_TIMEOUT } = checkOptions('shutDown(server, options)', options, {
    timeout: is.maybe(is.positive),
  })
  return new Promise((resolve) => {
    const idle = setInterval(() => server.closeIdleConnections?.(), OFTEN)
    const done = (): void => {
      clearInterval(idle)
      clearTimeout(late)
      resolve()
    }
    const late = setTimeout(() => {
      server.closeAllConnections?.()
      done()
    }, timeout)
    server.close(done)
    server.closeIdleConnections?.()
    ends().endAll('shutting down')
  })
}

declareFactories({ authSignal, untilEnd, shutDown })
