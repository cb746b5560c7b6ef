/**
 * The servers for measurements over sockets. `node dist/servers.js <name>`, started by `fork`, reports the port on
 * which it listens. It answers each message with the processor time that it has used.
 */
import { createServer } from 'node:http'
import { createServer as createRawServer, type AddressInfo, type Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { koaApps } from './koaApps.js'

/** The suffix of the name of a second process of the same application. */
export const AGAIN = ', again'

/** All of them; each is a process. */
export const serverNames = [
  'fixed bytes',
  'node:http',
  'bare',
  'by hand',
  `by hand${AGAIN}`,
  'ours',
  `ours${AGAIN}`,
  'passport',
  'koa-jwt',
  'ours, JWT',
] as const
export type ServerName = (typeof serverNames)[number]

/** The module to fork. */
export const serversModule = fileURLToPath(import.meta.url)

const body = '{"user":"anna"}'
const fixed = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

const serverOf = (name: string): Server => {
  if (name === 'fixed bytes') {
    return createRawServer(
      (socket) =>
        void socket
          .setNoDelay()
          .on('data', () => socket.write(fixed))
          .on('error', () => {}),
    )
  }
  if (name === 'node:http') {
    return createServer((_request, response) => {
      response.setHeader('Content-Type', 'application/json')
      response.end(body)
    })
  }
  const koa = Object.entries(koaApps).find(([known]) => known === name.replace(AGAIN, ''))?.[1]
  if (koa === undefined) throw new Error(`no contestant is called ${name}`)
  return createServer(koa())
}

if (process.argv[1] === serversModule) {
  const server = serverOf(process.argv[2] ?? '')
  // Connections are idle while others have their turn
  if ('keepAliveTimeout' in server) Object.assign(server, { keepAliveTimeout: 0 })
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.(user + system)
  })
  process.on('disconnect', () => process.exit())
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
}
