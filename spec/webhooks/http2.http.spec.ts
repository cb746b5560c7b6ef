/** Deliveries over HTTP/2, where only the end of a body shows its length. H-01, H-03. */
import { once } from 'node:events'
import { connect, createServer, type IncomingHttpHeaders } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Router from '@koa/router'
import parse from 'co-body'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { github, webhook } from 'koa-with-auth/webhooks'
import { expect, it, onTestFinished } from 'vitest'
import { githubSignature, SECRET } from '../support/sites/webhookSite.js'

it('a delivery is verified, and a parser behind the guard reads the same bytes', async () => {
  const router = new Router()
  router.all('/hook', withAuth(webhook({ scheme: github, secrets: SECRET, maxLength: 100_000 })), async (ctx) => {
    ctx.body = `${ctx.request.auth.text()} ${await parse.text(ctx.req)}`
  })
  const app = new Koa().use(router.routes())
  const server = createServer((req, res) => void app.callback()(req, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  const send = async (method: string, body: string, signed = body) => {
    const head = { ':method': method, ':path': '/hook', 'x-hub-signature-256': githubSignature(signed) }
    const stream = client.request(head, { endStream: body === '' })
    const answered = once(stream, 'response') as Promise<[IncomingHttpHeaders]>
    if (body !== '') stream.end(body)
    const [headers] = await answered
    return [headers[':status'], await text(stream)]
  }
  const long = 'b'.repeat(90_000)
  expect(await send('POST', 'abc')).toStrictEqual([200, 'abc abc'])
  expect(await send('POST', long)).toStrictEqual([200, `${long} ${long}`])
  expect(await send('POST', '')).toStrictEqual([200, ' '])
  expect(await send('GET', '')).toStrictEqual([200, ' '])
  expect((await send('POST', 'abc', 'abd'))[0]).toBe(401)
  expect((await send('POST', `${long}${long}`))[0]).toBe(413)
  expect(await send('POST', 'abc')).toStrictEqual([200, 'abc abc'])
})
