/** What the sites of several programs have in common. A framework is loaded when it is used. */
import { once } from 'node:events'
import { createServer } from 'node:http'

export const listen = (listener) => createServer(listener).listen(0, '127.0.0.1')

/** The port of a server, once it listens. */
export const portOf = async (server) => {
  if (!server.listening) await once(server, 'listening')
  return server.address().port
}

/** Reserves a port, whose handler comes later. */
export const reserve = async () => {
  let handler = (_req, res) => res.end()
  const server = listen((req, res) => handler(req, res))
  const port = await portOf(server)
  const close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { port, origin: `http://localhost:${port}`, serve: (given) => void (handler = given), close }
}

/** An application of Koa without routes, and its router. */
export const koaApp = async (options = {}) => {
  const { default: Koa } = await import('koa')
  const { default: Router } = await import('@koa/router')
  const app = new Koa(options)
  app.silent = true
  return { app, router: new Router(options) }
}

/** An application of Express. The page of an error is without its stack, as a production service answers. */
export const expressApp = async () => {
  const { default: express } = await import('express')
  const app = express()
  app.set('env', 'production')
  return app
}

/**
 * Fastify with @fastify/auth, @fastify/basic-auth and @fastify/bearer-auth, registered as https://github.com/fastify/fastify-auth
 * does. Its bearer token is the secret. `validate` checks a name and a password.
 */
export const fastifyGuards = async (secret, validate) => {
  const { default: fastify } = await import('fastify')
  const app = fastify()
  await app.register((await import('@fastify/auth')).default)
  await app.register((await import('@fastify/basic-auth')).default, { authenticate: true, validate })
  await app.register((await import('@fastify/bearer-auth')).default, {
    addHook: false,
    keys: new Set([secret]),
    verifyErrorLogLevel: 'silent',
  })
  return app
}
