/** A-39 a response is restored, whatever was done to it since the snapshot. */
import { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Koa, { type Response } from 'koa'
import { describe, expect, it, test } from 'vitest'
import { restore, take } from '../../src/koa/respond.js'

const app = new Koa()

// With HTTP/2, Koa sets no message beside the status
const responseOf = (httpVersionMajor: 1 | 2): Response => {
  const req = Object.assign(new IncomingMessage(new Socket()), { httpVersionMajor })
  const { response } = app.createContext(req, new ServerResponse(req))
  // As Koa does before the first middleware
  response.res.statusCode = 404
  return response
}

const state = (response: Response) => ({
  status: response.res.statusCode,
  message: response.res.statusMessage,
  // Safe: Koa's response has these properties
  ...(({ _body, _explicitStatus, _explicitNullBody }) => ({ _body, _explicitStatus, _explicitNullBody }))(
    response as unknown as Record<string, unknown>,
  ),
  headers: structuredClone({ ...response.res.getHeaders() }),
})

const changes: ReadonlyArray<readonly [string, (response: Response) => void]> = [
  ['nothing', () => {}],
  ['the current status, set explicitly', (response) => (response.status = 404)],
  ['another status', (response) => (response.status = 202)],
  ['a status set on Node’s response', ({ res }) => (res.statusCode = 500)],
  ['a message', ({ res }) => (res.statusMessage = 'Own')],
  ['a string', (response) => (response.body = 'text')],
  ['no body', (response) => (response.body = null)],
  ['a header', ({ res }) => res.setHeader('X-A', 'a')],
  ['another header', ({ res }) => res.setHeader('X-B', ['b', 'c'])],
  ['a cookie', ({ res }) => res.appendHeader('Set-Cookie', 'a=b')],
  ['no header', ({ res }) => res.getHeaderNames().forEach((name) => res.removeHeader(name))],
]

describe.each([1, 2] as const)('with HTTP/%i', (version) => {
  describe.each(changes)('before the snapshot: %s', (_before, change) => {
    test.each(changes)('after the snapshot: %s', (_between, changeAgain) => {
      const response = responseOf(version)
      change(response)
      change(response)
      const before = state(response)
      const snapshot = take(response)
      changeAgain(response)
      restore(response, snapshot)
      expect(state(response)).toStrictEqual(before)
    })
  })
})

it('restoring does not change unchanged fields: their names keep their letter case', () => {
  const response = responseOf(1)
  response.res.setHeader('X-A', 'a')
  const snapshot = take(response)
  response.res.setHeader('X-B', 'b')
  restore(response, snapshot)
  // Every outgoing message has it, although the types have it for those of clients only
  expect(Reflect.apply(ClientRequest.prototype.getRawHeaderNames, response.res, [])).toStrictEqual(['X-A'])
})

it('restoring removes a cookie that was added to the list of cookies', () => {
  const response = responseOf(1)
  const cookies = ['a=b']
  response.res.setHeader('Set-Cookie', cookies)
  const snapshot = take(response)
  cookies.push('c=d')
  restore(response, snapshot)
  expect(response.res.getHeader('Set-Cookie')).toStrictEqual(['a=b'])
})

it('restoring does nothing if the head was sent', () => {
  const response = responseOf(1)
  const snapshot = take(response)
  response.res.setHeader('X-A', 'a')
  response.res.writeHead(200)
  restore(response, snapshot)
  expect([response.res.statusCode, response.res.getHeader('X-A')]).toStrictEqual([200, 'a'])
})
