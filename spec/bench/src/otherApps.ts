/** The contestants on other frameworks, each with the bare application of its framework. */
import auth from '@fastify/auth'
import basic from '@fastify/basic-auth'
import bearerPlugin from '@fastify/bearer-auth'
import fastify, { type FastifyInstance } from 'fastify'
import { Hono, type MiddlewareHandler } from 'hono'
import { basicAuth } from 'hono/basic-auth'
import { bearerAuth } from 'hono/bearer-auth'
import { some } from 'hono/combine'

const anna = { user: 'anna' }

const hono = (...guards: ReadonlyArray<MiddlewareHandler>): Hono => {
  const app = new Hono()
  for (const guard of guards) app.use('/x', guard)
  app.get('/x', (c) => c.json(anna))
  return app
}
const honoBearer = () => bearerAuth({ token: 'supersecret' })
const honoBasic = () => basicAuth({ username: 'anna', password: 'supersecret' })

/** On Hono. */
export const honoApps = {
  'hono bare': () => hono(),
  'hono bearer': () => hono(honoBearer()),
  'hono basic': () => hono(honoBasic()),
  'hono some': () => hono(some(honoBasic(), honoBearer())),
}

type Guard = (app: FastifyInstance) => Promise<void>

const served = async (guard: Guard): Promise<FastifyInstance> => {
  const app = fastify()
  await guard(app)
  app.get('/x', () => anna)
  await app.ready()
  return app
}
const validate = async (username: string, password: string): Promise<void> => {
  if (username !== 'anna' || password !== 'supersecret') throw new Error('no')
}

/** On Fastify. */
export const fastifyApps = {
  'fastify bare': () => served(async () => {}),
  'fastify bearer': () =>
    served(async (app) => {
      await app.register(bearerPlugin, { keys: new Set(['supersecret']) })
    }),
  'fastify basic': () =>
    served(async (app) => {
      await app.register(basic, { validate: (name, password) => validate(name, password), authenticate: true })
      app.addHook('onRequest', app.basicAuth)
    }),
  'fastify auth': () =>
    served(async (app) => {
      await app.register(auth)
      await app.register(bearerPlugin, { keys: new Set(['supersecret']), addHook: false })
      await app.register(basic, { validate: (name, password) => validate(name, password) })
      app.addHook('onRequest', app.auth([app.basicAuth, app.verifyBearerAuth as never]))
    }),
}
