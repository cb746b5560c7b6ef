/**
 * Live messages for signed-in users: over a WebSocket, and as server-sent events. Both end with the session.
 *
 * - `guardUpgrade` guards the handshake as `withAuth` guards the stream, so pages of other sites are refused.
 * - `on('signed-out')` reports which session has ended, and `endsSignIn` finds what it had opened. A session can end after it
 *   was read and before the stream is open. `watch` notes this, and is mounted above the sessions. `guardUpgrade` notes it
 *   itself.
 * - It reports only in the process that ended the session. If there are several processes, send the records to the others.
 *   Keep nothing open for long: a browser connects again by itself, and is checked again.
 */
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { PassThrough, type Duplex } from 'node:stream'
import Router from '@koa/router'
import Koa, { type Middleware, type Request } from 'koa'
import { constantTimeEqual, httpBasicAuth, sessionAuth, withAuth } from 'koa-with-auth'
import { endsSignIn, on, type SignedOutEvent, type SignInDigests } from 'koa-with-auth/events'
import { sessions, signInDigests, type SessionStore } from 'koa-with-auth/sessions'
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

// How long a socket or a stream may be open, in milliseconds
const LONGEST = 3_600_000
// How many bytes a client may send in one message; the default of ws is 100 MB
const LARGEST = 65_536
// Codes from 4000 are for applications (RFC 6455 §7.4.2)
const SIGNED_OUT = 4401

/** What is open, by sign-in. */
const openings = () => {
  const open = new Map<() => void, SignInDigests>()
  // The sign-outs while a request was under way
  const meanwhile = new Map<Request, SignedOutEvent[]>()
  const stop = on('signed-out', (record) => {
    for (const records of meanwhile.values()) records.push(record)
    for (const [end, signIn] of open) if (endsSignIn(record, signIn)) end()
  })
  const watch: Middleware = async ({ request }, next) => {
    meanwhile.set(request, [])
    await next().finally(() => meanwhile.delete(request))
  }
  const add = (by: { readonly request: Request }, end: () => void): (() => void) => {
    const signIn = signInDigests(by)
    if (signIn !== undefined) {
      open.set(end, signIn)
      if (meanwhile.get(by.request)?.some((record) => endsSignIn(record, signIn))) end()
    }
    const timer = setTimeout(end, LONGEST)
    return () => {
      clearTimeout(timer)
      open.delete(end)
    }
  }
  return { watch, add, stop, count: () => open.size }
}

/** The server, and how many sockets and streams are open by a sign-in. */
export const live = (
  keys: string[],
  store?: SessionStore,
): { readonly server: Server; readonly open: () => number } => {
  const app = new Koa({ keys })
  const { watch, add, stop, count } = openings()
  // Above the sessions, so that it notices every sign-out after the session was read
  app.use(watch)
  const { logIn, logOut } = sessions(app, { loadUser: (username) => users.get(username), store })
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
    ctx.res.once(
      'close',
      add(ctx, () => stream.end()),
    )
    ctx.type = 'text/event-stream'
    ctx.body = stream
  })
  app.use(router.routes())

  const sockets = new WebSocketServer({ noServer: true, maxPayload: LARGEST })
  const guard = guardUpgrade(app, user, { route: '/live' })
  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    if (request.url !== '/live') return void socket.destroy()
    const admitted = await guard(request, socket, head)
    if (admitted === undefined) return
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      webSocket.once(
        'close',
        add(admitted, () => webSocket.close(SIGNED_OUT, 'signed out')),
      )
      webSocket.on('error', () => webSocket.terminate())
      webSocket.send(`Hello ${admitted.principal.username}`)
    })
  }
  const handle = app.callback()
  const server = createServer((request, response) => void handle(request, response))
  server.on('upgrade', (request, socket, head) => void upgrade(request, socket, head))
  server.once('close', stop)
  return { server, open: count }
}
