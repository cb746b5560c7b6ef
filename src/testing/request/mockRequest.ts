/**
 * A Koa request without a socket, to test code that reads a request and writes no response.
 *
 * An authenticator reads the same as over HTTP: fields, raw lines, query, cookies. What only a connection has (an
 * address, TLS) is missing, except the address of the spec.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Request } from 'koa'
import { checkSpec, type ExactSpec, type RequestSpec } from './RequestSpec.js'

/** The part of a Koa application that is needed here. It gives requests their settings and signing keys. */
export interface ContextFactory {
  createContext(req: IncomingMessage, res: ServerResponse): { readonly request: Request }
}

// Node's parser calls it. It keeps the raw lines, and derives `headers` from them
const receive = (req: IncomingMessage, lines: string[]): void => {
  // Safe: Node's own method, which the line at the end of this file probes
  Reflect.apply(Reflect.get(req, '_addHeaderLines') as Function, req, [lines, lines.length])
}

/**
 * Makes the request of a spec. The default is `GET /` without fields. `app` gives it settings and signing keys. Throws
 * a TypeError for a property that a spec does not have.
 *
 * @example
 * import { httpBearer } from 'koa-with-auth'
 * import { mockRequest, withBearer } from 'koa-with-auth/testing'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const result = await bearer.evaluate(mockRequest(withBearer('supersecret')))
 * assert.deepStrictEqual(result, { _tag: 'Right', right: { user: 'anna' } })
 */
export const mockRequest = <S extends RequestSpec = RequestSpec>(
  spec?: ExactSpec<S>,
  // a new one for each request, so that nothing stays on it
  app: ContextFactory = new Koa(),
): Request => {
  const {
    method = 'GET',
    url = '/',
    fields = [],
    remoteAddress,
  } = checkSpec('mockRequest', spec === undefined ? {} : spec)
  const socket = new Socket()
  if (remoteAddress !== undefined) Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  const req = new IncomingMessage(socket)
  req.method = method
  req.url = url
  receive(req, fields.flat())
  const res = new ServerResponse(req)
  // the initial status of Koa
  res.statusCode = 404
  return app.createContext(req, res).request
}

// Otherwise, code that reads `headers` would find nothing, and tests of absent credentials would always pass
if (mockRequest({ fields: [['Probe', 'a']] }).headers['probe'] !== 'a') {
  throw new Error('koa-with-auth/testing: this version of Node fills the fields of a request in another way')
}
