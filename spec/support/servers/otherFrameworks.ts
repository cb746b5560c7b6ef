/** Operations that other frameworks serve, guarded by the helpers of the guide "other-frameworks", as they are written there. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server, type Http2Server } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import express, { type RequestHandler, type Response as ExpressResponse } from 'express'
import fastify, { type onRequestAsyncHookHandler, type preHandlerAsyncHookHandler } from 'fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type Koa from 'koa'
import type { AuthenticatorLike } from 'koa-with-auth'
import type { AdmittedRequest } from 'koa-with-auth/upgrades'
import { guideProgram } from '../papers/guidePrograms.js'

export type Auth = AuthenticatorLike | readonly [AuthenticatorLike, ...AuthenticatorLike[]]

type Answer = (admitted: AdmittedRequest<unknown>, response: ServerResponse) => void

/** An operation: its guards from the outermost to the innermost, and how it answers. */
export interface Operation {
  readonly method: string
  /** With parameters such as `:id`. */
  readonly path: string
  readonly guards: ReadonlyArray<Auth>
  readonly answer?: Answer
}

export interface Framework {
  readonly name: string
  /** Makes a server. `before` runs before the guards, on the response of Node or of the framework. */
  readonly make: (app: Koa, operations: ReadonlyArray<Operation>, before?: Fields) => Promise<Server | Http2Server>
  readonly hasNoParameters?: boolean
  /** Sends a request; left out, as `fetch` does. */
  readonly fetch?: (url: string, init: { method?: string; headers?: Record<string, string> }) => Promise<Response>
}

type Fields = Readonly<Record<string, string>>

interface Helpers {
  readonly forExpress: (app: Koa, a: Auth) => RequestHandler
  readonly forFastify: (app: Koa, a: Auth) => preHandlerAsyncHookHandler
  readonly koaInExpress: (app: Koa) => RequestHandler
  readonly koaInFastify: (app: Koa) => onRequestAsyncHookHandler
  readonly forNode: (
    app: Koa,
    a: Auth,
    handler: (request: IncomingMessage, response: ServerResponse, admitted: AdmittedRequest<unknown>) => void,
  ) => (request: IncomingMessage, response: ServerResponse) => Promise<void>
}

/** A helper of the guide. */
export const loaded = async <K extends keyof Helpers>(name: K): Promise<Helpers[K]> =>
  (await guideProgram<Helpers>('other-frameworks', `const ${name} =`))[name]

/** Answers with the principal and the objects. */
export const principalOf: Answer = ({ principal, objects }, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ auth: principal, objects }))
}

const ofExpress: Framework = {
  name: 'Express 5',
  make: async (app, operations, before) => {
    const guard = await loaded('forExpress')
    const site = express()
    if (before !== undefined) site.use((_req, res, next) => void next(res.set(before) && undefined))
    for (const { method, path, guards, answer = principalOf } of operations) {
      const operation = (_req: unknown, res: ExpressResponse) =>
        answer(res.locals['auth'] as AdmittedRequest<unknown>, res)
      const [mount, rest] = mountOf(path)
      // below a mount, where Express changes the URL
      const router = express.Router({ mergeParams: true })
      const all = [...guards.map((a) => guard(app, a)), operation]
      if (method === 'GET') router.get(rest, ...all)
      else router.all(rest, ...all)
      site.use(mount, router)
    }
    return createServer(site)
  },
}

const mountOf = (path: string): readonly [mount: string, rest: string] => {
  const at = path.indexOf('/', 1)
  return at === -1 ? ['/', path] : [path.slice(0, at), path.slice(at)]
}

const ofFastify: Framework = {
  name: 'Fastify 5',
  make: async (app, operations, before) => {
    const guard = await loaded('forFastify')
    const site = fastify({ exposeHeadRoutes: true, forceCloseConnections: true }).decorateRequest('auth', null)
    site.removeAllContentTypeParsers()
    site.addContentTypeParser('*', (_request, payload, done) => {
      payload.resume()
      done(null)
    })
    if (before !== undefined) site.addHook('onRequest', async (_request, reply) => void reply.headers(before))
    for (const { method, path, guards, answer = principalOf } of operations) {
      const handler = (request: FastifyRequest, reply: FastifyReply) => {
        for (const [name, value] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value ?? '')
        answer(request.getDecorator('auth'), reply.hijack().raw)
      }
      site.route({ method, url: path, onRequest: guards.map((a) => guard(app, a)), handler })
    }
    await site.ready()
    return site.server
  },
}

const listenerOf = async (
  app: Koa,
  operations: ReadonlyArray<Operation>,
  before: Fields = {},
): Promise<(request: IncomingMessage, response: ServerResponse) => void> => {
  const guard = await loaded('forNode')
  const routes = operations.map(({ method, path, guards, answer = principalOf }) => {
    const [first, ...others] = guards.toReversed()
    const inner = guard(app, first!, (_request, response, admitted) => answer(admitted, response))
    const listener = others.reduce<typeof inner>(
      (within, a) => guard(app, a, (request, response) => void within(request, response)),
      inner,
    )
    return { method, path, listener }
  })
  return (request, response) => {
    for (const [name, value] of Object.entries(before)) response.setHeader(name, value)
    const path = (request.url ?? '').split('?')[0]
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const route = routes.find((one) => one.path === path && one.method === method)
    if (route !== undefined) return void route.listener(request, response)
    response.writeHead(404).end()
  }
}

const ofNode: Framework = {
  name: 'node:http',
  hasNoParameters: true,
  make: async (...args) => createServer(await listenerOf(...args)),
}

/** HTTP/2 without TLS, by the helper for node:http. */
export const ofHttp2: Framework = {
  name: 'node:http2',
  hasNoParameters: true,
  // Safe: the guide says that the types are those of HTTP/2, and everything else is the same
  make: async (...args) => createHttp2Server((await listenerOf(...args)) as never),
  fetch: async (url, { method = 'GET', headers = {} }) => {
    const client = connect(new URL(url).origin)
    const stream = client.request({ ':method': method, ':path': new URL(url).pathname, ...headers })
    const [fields] = (await once(stream, 'response')) as [Record<string, string | string[]>]
    const pairs = Object.entries(fields).flatMap(([name, value]) =>
      name.startsWith(':') ? [] : [value].flat().map((one): [string, string] => [name, one]),
    )
    const body = Readable.toWeb(stream.once('close', () => client.close())) as ReadableStream
    return new Response(body, { status: Number(fields[':status']), headers: pairs })
  },
}

export const frameworks: ReadonlyArray<Framework> = [ofExpress, ofFastify, ofNode]

/** Starts a server on a free port of the loopback address. */
export const started = async (server: Server | Http2Server) => {
  if ('keepAliveTimeout' in server) server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const close = async () => {
    if ('closeAllConnections' in server) server.closeAllConnections()
    await new Promise((resolve) => void server.close(resolve))
  }
  return { port, url: `http://127.0.0.1:${port}`, close }
}
