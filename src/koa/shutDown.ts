/** `shutDown`: the graceful end of a process whose server has open streams and sockets. */
import type { Server as HttpServer } from 'node:http'
import type { Server } from 'node:net'
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import { ends } from '../ends/ends.js'

/** How long the end of a process may take. */
export interface ShutDownOptions {
  /** After so many milliseconds, connections are closed whose response is not complete. Default 10 seconds. */
  readonly timeout?: number | undefined
}

const DEFAULT_TIMEOUT = 10_000

// How often connections are closed that have become idle, in milliseconds
const OFTEN = 100

/**
 * Ends a process gracefully: takes no more connections, and aborts each signal of `authSignal` and of the guards of `/upgrades`, also those
 * that are asked for later; their `reason` is an `AuthEndedError` whose `cause` is `shutting down`. So what `untilEnd` serves ends. Other
 * responses are completed. Resolves when the last connection is closed, or after `timeout`, when it has closed what was left. A socket
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
  const { timeout = DEFAULT_TIMEOUT } = checkOptions('shutDown(server, options)', options, {
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

declareFactory('shutDown', shutDown)
