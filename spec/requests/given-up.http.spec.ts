/** An attacker with a socket: aborted requests, and hooks that decide too late. Hostile hooks: calling.law. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { pipe } from 'fp-ts/lib/function.js'
import { allOf, httpBearer, optional } from 'koa-with-auth'
import { timeout } from 'koa-with-auth/fp'
import { describe, expect, test } from 'vitest'
import { guardedApp, rawRequest, sendCounted } from '../support/sites/guardedApp.js'
import { serve } from '../support/servers/server.js'
import { unhandledRejections } from '../support/runs/unhandled.js'

const unhandled = unhandledRejections()

const TOKEN = 'Authorization: Bearer t'
describe('requests whose client has disconnected', () => {
  let verdict: unknown = false
  let decided: Promise<unknown> = Promise.resolve()
  let requests: Array<Record<'closed' | 'done', Promise<unknown>>> = []
  const slow = httpBearer({ authenticate: () => decided.then(() => verdict) })
  const silent = httpBearer({ authenticate: () => new Promise(() => {}) })
  const routes = {
    '/slow': slow,
    '/list': [slow, slow],
    '/all': allOf([slow, slow]),
    '/limited': pipe(silent, timeout(10)),
    '/optional': optional(slow),
    '/rejects': httpBearer({ authenticate: () => decided.then(() => Promise.reject(new Error('late'))) }),
  }
  const under = guardedApp(routes, {
    above: () => [
      (ctx, next) => {
        const done = next()
        requests.push({ closed: once(ctx.res, 'close'), done: done.catch(() => {}) })
        return done
      },
    ],
  })
  const served = serve(() => under.app)
  const begin = (target: string) => {
    const socket = connect(served.port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(rawRequest(served.port, target, [TOKEN]))
    return socket
  }

  test.each(Object.keys(routes))('%s: no handler runs for a refused one, and the server still works', async (path) => {
    verdict = false
    requests = []
    let decide = (): void => {}
    decided = new Promise<void>((resolve) => (decide = resolve))
    const before = under.calls()
    const sockets = ['GET', 'POST', 'HEAD'].map((method) => begin(`${method} ${path}`))
    await expect.poll(() => requests.length).toBe(3)
    for (const socket of sockets) socket.resetAndDestroy()
    await Promise.all(requests.map(({ closed }) => closed))
    decide()
    await Promise.all(requests.map(({ done }) => done))
    expect(under.calls() - before).toBe(0)
    expect(unhandled()).toEqual([])
    verdict = { user: 'anna' }
    const { status } = await sendCounted(under, served.port, `GET ${path}`, [TOKEN])
    expect(status).toBe({ '/limited': 503, '/rejects': 500 }[path] ?? 200)
  })

  test('a second request on a connection is not admitted because the first was', async () => {
    verdict = { user: 'anna' }
    decided = sleep(30)
    const chunks: Buffer[] = []
    const socket = connect(served.port, '127.0.0.1')
    socket.on('data', (chunk) => chunks.push(chunk))
    const first = `GET /slow HTTP/1.1\r\nHost: a\r\n${TOKEN}\r\n\r\n`
    socket.write(first + rawRequest(served.port, 'GET /slow'))
    await new Promise((resolve) => socket.on('close', resolve))
    const statuses = Buffer.concat(chunks)
      .toString('latin1')
      .match(/HTTP\/1\.1 \d{3}/g)
    expect(statuses).toEqual(['HTTP/1.1 200', 'HTTP/1.1 401'])
  })
})
