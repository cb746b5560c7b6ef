/** header lines that Node drops, and keys in URLs. */
import { createServer } from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyQuery, constantTimeEqual, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectAccepted, guardedApp, sendCounted } from '../support/sites/guardedApp.js'
import { valuesOf } from '../support/servers/rawSocket.js'
import { ask, listen, listening, serve } from '../support/servers/server.js'

const SECRET = 'supersecret'
let asked: string[] = []
const byKey = (_request: unknown, key: string) => {
  asked.push(key)
  return constantTimeEqual(key, SECRET) && { username: 'anna' }
}
const under = guardedApp({
  '/bearer': httpBearer({ authenticate: byKey }),
  '/query': apiKeyQuery({ paramName: 'api_key', authenticate: byKey }),
  '/public': null,
})
const served = serve(() => under.app)
const request = (target: string) => sendCounted(under, served.port, target)

describe('A-24 header lines that Node dropped', () => {
  const onServer = async (maxHeadersCount: number | undefined, use: (port: number) => Promise<void>) => {
    const answer = under.app.callback()
    const server = createServer((req, res) => void answer(req, res))
    if (maxHeadersCount !== undefined) server.maxHeadersCount = maxHeadersCount
    await use(await listening(server))
  }
  // Host and Connection are two of the lines
  const withLines = (port: number, path: string, lines: number) =>
    sendCounted(under, port, `GET ${path}`, [
      `Authorization: Bearer ${SECRET}`,
      ...Array.from({ length: lines - 3 }, () => 'a:'),
    ])

  it.each([
    [undefined, 999, 1000],
    [20, 19, 20],
  ])('A-24 are a 431 before authentication with maxHeadersCount %s', (maxHeadersCount, fits, cut) =>
    onServer(maxHeadersCount, async (port) => {
      expectAccepted(await withLines(port, '/bearer', fits))
      for (const lines of [cut, cut + 1, cut + 500]) {
        asked = []
        const answer = await withLines(port, '/bearer', lines)
        expect([answer.status, answer.ran, asked]).toEqual([431, 0, []])
        // Newer versions of Node refuse more lines than they keep themselves, for every request, with an empty 431
        const open = await withLines(port, '/public', lines)
        if (open.status === 431) {
          expect([lines > cut, answer.body]).toEqual([true, ''])
          continue
        }
        expect(valuesOf(answer, 'Cache-Control')).toEqual(['no-store'])
        expect(JSON.parse(answer.body)).toMatchObject({ status: 431 })
        expectAccepted(open)
      }
    }),
  )

  it('A-24 do not exist with maxHeadersCount 0, which is no limit', () =>
    onServer(0, async (port) => expectAccepted(await withLines(port, '/bearer', 2500))))
})

describe('A-28 a key in the URL', () => {
  it.each([
    ['accepted', SECRET, 200],
    ['denied', 'wrong-but-secret', 401],
  ])('A-28 is not stored by caches, and not sent on in Referer: %s', async (_what, key, status) => {
    const answer = await request(`GET /query?api_key=${key}`)
    expect(answer.status).toBe(status)
    expect(valuesOf(answer, 'Referrer-Policy')).toEqual(['same-origin'])
    expect(JSON.stringify([answer.headers, answer.body])).not.toContain(key)
  })

  it('A-28 is not sent on either after an error of the handler, for which Koa removes all fields', async () => {
    const router = new Router().get('/x', withAuth(apiKeyQuery({ authenticate: byKey })), () => {
      throw new Error('broken')
    })
    const app = new Koa().use(router.routes())
    app.silent = true
    const { url, close } = await listen(app)
    onTestFinished(close)
    const { status, headers } = await ask(`${url}/x?key=${SECRET}`)
    expect([status, headers.get('referrer-policy'), headers.get('cache-control')]).toEqual([
      500,
      'same-origin',
      'private, no-store',
    ])
  })

  it('A-28 for other kinds, Referrer-Policy is not set', async () => {
    expect(valuesOf(await request('GET /bearer'), 'Referrer-Policy')).toEqual([])
  })
})
