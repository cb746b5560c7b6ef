/** RFC 9110 §5.1: names of headers have no letter case. This library writes them as Node keeps them, but for the challenge. */
import { get } from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import { httpBearer, withAuth } from 'koa-with-auth'
import { expect, test } from 'vitest'
import { listen } from '../../support/servers/server.js'

test('a refusal names its headers in lower case, and WWW-Authenticate as people read it', async () => {
  let calls = 0
  const router = new Router().get('/x', withAuth(httpBearer({ authenticate: () => false })), () => void calls++)
  const served = await listen(new Koa().use(router.routes()))
  try {
    const [status, lines] = await new Promise<readonly [number | undefined, ReadonlyArray<string>]>(
      (resolve, reject) => {
        const sent = get({ port: served.port, path: '/x', host: '127.0.0.1' }, (response) => {
          response.resume()
          resolve([response.statusCode, response.rawHeaders])
        })
        sent.on('error', reject)
      },
    )
    expect(status).toBe(401)
    expect(calls).toBe(0)
    const names = lines.filter((_, at) => at % 2 === 0)
    expect(names).toEqual(expect.arrayContaining(['cache-control', 'vary', 'content-type', 'WWW-Authenticate']))
  } finally {
    await served.close()
  }
})
