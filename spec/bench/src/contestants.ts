/** How contestants are asked, and the headers of their requests. */
import type { RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { Contestant } from './paired.js'
import { ask, headersOf, type Headers } from './stub.js'

export const bearer = (token: string) => headersOf({ Authorization: `Bearer ${token}` })
export const basic = (pair: string) => headersOf({ Authorization: `Basic ${Buffer.from(pair).toString('base64')}` })

export const asking = (name: string, listener: RequestListener, headers: Headers, url = '/x'): Contestant => ({
  name,
  run: () => ask(listener, url, headers),
})

/** A Fastify that is ready, as Node calls it. */
export const listenerOfFastify =
  (app: FastifyInstance): RequestListener =>
  (request, response) =>
    app.routing(request, response)
