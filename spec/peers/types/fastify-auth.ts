import auth from '@fastify/auth'
import basicAuth from '@fastify/basic-auth'
import fastify from 'fastify'

const app = fastify()
await app.register(auth)
await app.register(basicAuth, { validate: async () => {} })
app.get('/me', { preHandler: app.auth([app.basicAuth]) }, async (request) => {
  const one: Shown = 'user' in request ? request.user : undefined
  return one
})
