/** An attacker with a socket: aborted requests, hooks that decide too late, and hostile hooks in every combinator. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { pipe } from 'fp-ts/lib/function.js'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  authorize,
  authSettings,
  httpBearer,
  optional,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { firstPresent, lenient, flatMap, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import { describe, expect, test } from 'vitest'
import { guardedApp, rawRequest, sendCounted } from '../support/sites/guardedApp.js'
import { hostile } from '../support/sites/hostile.js'
import { serve } from '../support/servers/server.js'
import { unhandledRejections } from '../support/runs/unhandled.js'

const unhandled = unhandledRejections()

const KEY = 'X-Key: k'
const TOKEN = 'Authorization: Bearer t'
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: () => ({ client: 'Acme' }) })

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

describe('hostile hooks in combinators', () => {
  let hook: () => unknown = () => false
  const one = httpBearer<unknown>({ authenticate: () => hook() })
  const plain: AuthenticatorLike = () => hook()
  const good = httpBearer({ authenticate: () => ({ user: 'anna' }) })
  const down = recoverUnavailable(() => hook())
  /** Each passes only if the hook alone would pass; an anonymous caller is `undefined`. */
  const combinations: Readonly<Record<string, unknown>> = {
    alone: one,
    function: plain,
    list: [one, plain],
    tagged: anyOf({ one, plain }),
    first: firstPresent([one, key]),
    all: allOf([good, one]),
    'all-first': allOf([one, good]),
    'all-functions': allOf([plain, plain]),
    map: pipe(
      one,
      flatMap((p) => p),
    ),
    'map-to': pipe(
      good,
      flatMap(() => hook()),
    ),
    timeout: pipe(one, timeout(40)),
    authorize: pipe(
      one,
      authorize<unknown>(() => true),
    ),
    recover: pipe(pipe(one, timeout(40)), down),
    optional: optional(one),
    lenient: lenient(one),
    'optional-all': optional(allOf({ one, good })),
    nested: allOf({
      a: anyOf([one, plain]),
      b: pipe(firstPresent({ good, one }), timeout(40)),
    }),
  }
  const welcoming = ['optional', 'lenient', 'optional-all']
  const seen: unknown[] = []
  const under = guardedApp(Object.fromEntries(Object.entries(combinations).map(([name, auth]) => [`/${name}`, auth])), {
    handler: (ctx) => {
      seen.push(Reflect.get(ctx.request, 'auth'))
      ctx.body = 'in'
    },
    above: () => [authSettings({ timeout: 60 })],
  })
  const served = serve(() => under.app)
  const send = (name: string) => sendCounted(under, served.port, `GET /${name}`, [TOKEN, KEY])

  test('every combinator admits what a good hook admits', async () => {
    hook = () => ({ user: 'anna' })
    for (const name of Object.keys(combinations)) expect([name, (await send(name)).status]).toEqual([name, 200])
    hook = () => false
    for (const name of Object.keys(combinations)) {
      expect([name, (await send(name)).status]).toEqual([name, name === 'lenient' ? 200 : 401])
    }
  })

  test('law: each request gets a response, none passes that the hook alone would refuse, and the process does not end', async () => {
    await fc.assert(
      fc.asyncProperty(hostile, fc.constantFrom(...Object.keys(combinations)), async ({ hook: answer }, name) => {
        hook = answer
        seen.length = 0
        const alone = await send('alone')
        if (alone.status === 200) expect(Boolean(seen[0])).toBe(true)
        seen.length = 0
        const answered = await send(name)
        expect(answered.ran).toBe(answered.status === 200 ? 1 : 0)
        expect(typeof answered.status).toBe('number')
        if (answered.status === 200 && alone.status !== 200) {
          expect(welcoming).toContain(name)
          expect(seen).toEqual([undefined])
        }
        expect(unhandled()).toEqual([])
      }),
      { seed: 20_757, numRuns: 1500 },
    )
  })
})
