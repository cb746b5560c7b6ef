/**
 * Live messages for signed-in users: over a WebSocket, and as server-sent events. Both end with the session.
 *
 * - `guardUpgrade` guards the handshake as `withAuth` guards the stream, so pages of other sites are refused.
 * - `untilEnd` and `admitted.ends` end with the session: at sign-out, here and in every process that has the same `signals`, and when it
 *   expires. A browser connects again by itself, and is checked again.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { PassThrough, type Duplex } from 'node:stream'
import Router from '@koa/router'
import Koa from 'koa'
import { constantTimeEqual, httpBasicAuth, sessionAuth, untilEnd, withAuth } from 'koa-with-auth'
import { sessions, type Signals } from 'koa-with-auth/sessions'
import type { Store } from 'koa-with-auth/stores'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { WebSocketServer } from 'ws'

// Replace these with your own user database, and the comparison with a check of a password hash
const users = new Map([
  ['anna', { username: 'anna', isActive: true }],
  ['sam', { username: 'sam', isActive: true }],
])
const password = httpBasicAuth({
  authenticate: (_request, username, given) => constantTimeEqual(given, `${username}secret`) && users.get(username),
})

// How many bytes a client may send in one message; the default of ws is 100 MB
const LARGEST = 65_536
// Codes from 4000 are for applications (RFC 6455 §7.4.2)
const SIGNED_OUT = 4401

/** The server, and how many sockets and streams are open. */
export const live = (
  keys: string[],
  store?: Store,
  signals?: Signals,
): { readonly server: Server; readonly open: () => number } => {
  const app = new Koa({ keys })
  const { logIn, logOut } = sessions(app, { loadUser: (username) => users.get(username), store, signals })
  const open = new Set<object>()
  const user = sessionAuth()

  const router = new Router()
  router.post('/login', withAuth(password), async (ctx) => {
    await logIn(ctx, ctx.request.auth)
    ctx.status = 204
  })
  router.post('/logout', withAuth(null), async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.get('/events', withAuth(user), (ctx) => {
    const stream = new PassThrough()
    stream.write(`data: Hello ${ctx.request.auth.username}\n\n`)
    open.add(stream)
    stream.once('close', () => open.delete(stream))
    ctx.type = 'text/event-stream'
    ctx.body = untilEnd(ctx, stream)
  })
  app.use(router.routes())

  const sockets = new WebSocketServer({ noServer: true, maxPayload: LARGEST })
  const guard = guardUpgrade(app, user, { route: '/live' })
  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    if (request.url !== '/live') return void socket.destroy()
    const admitted = await guard(request, socket, head)
    if (admitted === undefined) return
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const close = (): void => webSocket.close(SIGNED_OUT, 'signed out')
      if (admitted.ends.aborted) close()
      admitted.ends.addEventListener('abort', close)
      open.add(webSocket)
      webSocket.once('close', () => open.delete(webSocket))
      webSocket.on('error', () => webSocket.terminate())
      webSocket.send(`Hello ${admitted.principal.username}`)
    })
  }
  const handle = app.callback()
  const server = createServer((request, response) => void handle(request, response))
  server.on('upgrade', (request, socket, head) => void upgrade(request, socket, head))
  return { server, open: () => open.size }
}
