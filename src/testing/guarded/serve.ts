/**
 * Serves an application on the loopback address, and sends it requests with header lines in any order and repeated.
 */
import { Agent, createServer, request as send, type RequestListener, type Server } from 'node:http'
import type { Context } from 'koa'
import { PROBE } from './tripwires.js'
import type { HeaderLine, RequestSpec } from '../request/RequestSpec.js'

/** A response. */
export interface Answer {
  readonly status: number
  readonly lines: ReadonlyArray<HeaderLine>
  readonly body: string
}

/** The part of a Koa application that is needed here. */
export interface Application {
  callback(): RequestListener
  on(event: 'error', listener: (error: unknown, ctx?: Context) => void): unknown
  off(event: 'error', listener: (error: unknown, ctx?: Context) => void): unknown
}

/** An application that is served. */
export interface Served {
  /** Sends a request. If there is no response, it resolves to the Error. */
  readonly ask: (probe: string, spec: RequestSpec) => Promise<Answer | Error>
  /** The error that the application's `error` event reported for a request. */
  readonly errorOf: (probe: string) => unknown
  readonly close: () => Promise<void>
}

/** Serves an application on a free port. Its errors are collected instead of printed. */
export const serve = async (app: Application, within: number): Promise<Served> => {
  const errors = new Map<string, unknown>()
  const keep = (error: unknown, ctx?: Context): void => {
    if (ctx !== undefined) errors.set(ctx.get(PROBE), error)
  }
  // before `callback`, which adds a listener that prints if there is none
  app.on('error', keep)
  const server = createServer(app.callback())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const agent = new Agent({ keepAlive: true })
  return {
    ask: (probe, spec) => ask(server, agent, within, probe, spec),
    errorOf: (probe) => errors.get(probe),
    close: async () => {
      agent.destroy()
      app.off('error', keep)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const ask = (
  server: Server,
  agent: Agent,
  within: number,
  probe: string,
  { method = 'GET', url = '/', fields = [] }: RequestSpec,
): Promise<Answer | Error> =>
  new Promise((resolve) => {
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const host = fields.some(([name]) => name.toLowerCase() === 'host') ? [] : ['Host', `127.0.0.1:${port}`]
    const headers = [...host, ...fields.flat(), PROBE, probe]
    const signal = AbortSignal.timeout(within)
    try {
      const asking = send({ agent, host: '127.0.0.1', port, method, path: url, headers, signal }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', resolve)
        response.on('end', () => {
          const { rawHeaders, statusCode = 0 } = response
          const lines = rawHeaders.flatMap((name, at): HeaderLine[] =>
            at % 2 === 1 ? [] : [[name, rawHeaders[at + 1] ?? '']],
          )
          resolve({ status: statusCode, lines, body: Buffer.concat(chunks).toString() })
        })
      })
      asking.on('error', resolve)
      asking.end()
    } catch (error) {
      resolve(error instanceof Error ? error : new Error(String(error)))
    }
  })

/** All values of a header, each one separately. */
export const valuesOf = ({ lines }: Answer, name: string): ReadonlyArray<string> =>
  lines.filter(([one]) => one.toLowerCase() === name.toLowerCase()).map(([, value]) => value)
