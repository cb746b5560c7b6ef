/** A server with guarded upgrades and a simple protocol after them, and upgrades as bytes. */
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type Koa from 'koa'
import type { UpgradeGuard } from 'koa-with-auth/upgrades'
import { sendRaw, type RawAnswer } from './rawSocket.js'

export type UpgradeServer = Awaited<ReturnType<typeof listenWithUpgrades>>

/** Serves an application. `guardOf` finds the guard of an upgrade; without one it is a 404. */
export const listenWithUpgrades = async <S, C>(
  app: Koa<S, C>,
  guardOf: (request: IncomingMessage) => UpgradeGuard<unknown> | undefined,
) => {
  /** The principals of guards, in order. */
  const admitted: unknown[] = []
  /** What Koa's `error` event reported. */
  const errors: unknown[] = []
  /** The sockets of upgrades, and the results of their guards. */
  const seen: { readonly request: IncomingMessage; readonly socket: Duplex; readonly done: Promise<unknown> }[] = []
  app.on('error', (error: unknown) => errors.push(error))
  const serve = app.callback()
  const server = createServer((request, response) => void serve(request, response))
  const sockets = new Set<Duplex>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const accept = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<unknown> => {
    const guard = guardOf(request)
    if (guard === undefined) return socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\n')
    const result = await guard(request, socket, head)
    if (result === undefined) return undefined
    admitted.push(result.principal)
    // The protocol only sends back what the client sent ahead
    socket.resume()
    socket.end(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n${head.toString()}`,
    )
    return result
  }
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    seen.push({ request, socket, done: accept(request, socket, head) })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    admitted,
    errors,
    seen,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

/** An upgrade as bytes. */
export const upgradeBytes = (port: number, target: string, lines: ReadonlyArray<string> = [], rest = ''): string => {
  const host = lines.some((line) => /^host:/i.test(line)) ? [] : [`Host: 127.0.0.1:${port}`]
  return [`${target} HTTP/1.1`, ...host, 'Connection: Upgrade', 'Upgrade: websocket', ...lines, '', rest].join('\r\n')
}

/** Sends an upgrade, and reads until the server closes. */
export const sendUpgrade = (
  port: number,
  target: string,
  lines: ReadonlyArray<string> = [],
  rest = '',
): Promise<RawAnswer> => sendRaw(port, upgradeBytes(port, target, lines, rest))

/** A connection that sent an upgrade, and waits. */
export const openUpgrade = (port: number, target: string, lines: ReadonlyArray<string> = []): Socket => {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write(upgradeBytes(port, target, lines))
  return socket
}
