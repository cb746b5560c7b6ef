/**
 * Laws of records over HTTP, for all operations, credentials and clients: each guarded request has one record, which
 * agrees with the response and contains no part of a credential.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import Router from '@koa/router'
import fc from 'fast-check'
import Koa from 'koa'
import {
  also,
  anyOf,
  apiKeyCookie,
  apiKeyQuery,
  authSettings,
  httpBasicAuth,
  httpBearer,
  optional,
  withAuth,
} from 'koa-with-auth'
import { on, type Decision } from 'koa-with-auth/events'
import { describe, expect, it } from 'vitest'
import { listen } from '../support/servers/server.js'

const site = (secret: string, over: Map<string, number>) => {
  const knows = (_request: unknown, sent: string) => sent === secret && { user: 'anna', sent }
  const bearer = httpBearer({ authenticate: knows })
  const late = httpBearer({ authenticate: async (request, sent) => pause(15).then(() => knows(request, sent)) })
  const hangs = httpBearer({ authenticate: () => new Promise(() => {}) })
  const basic = httpBasicAuth({ authenticate: (request, _user, password) => knows(request, password) })
  const any = anyOf([
    basic,
    apiKeyCookie({ paramName: 'id', authenticate: knows }),
    apiKeyQuery({ paramName: 'key', authenticate: knows }),
  ])

  const level = withAuth(any)(new Router({ prefix: '/level' }))
  level.all('/also', withAuth(also(bearer)), (ctx) => void (ctx.body = 'in'))
  const router = new Router()
  router.all('/any', withAuth(any), (ctx) => void (ctx.body = 'in'))
  router.all('/late', withAuth(late), (ctx) => void (ctx.body = 'in'))
  router.all('/hangs', withAuth(hangs), (ctx) => void (ctx.body = 'in'))
  router.all('/optional', withAuth(optional(bearer)), (ctx) => void (ctx.body = 'in'))
  router.all('/public', withAuth(null), (ctx) => void (ctx.body = 'in'))
  router.all('/waits', withAuth(bearer), (ctx) => pause(15).then(() => void (ctx.status = 202)))
  router.all('/throws', withAuth(bearer), () => Promise.reject(new Error('handler')))
  router.all('/stream', withAuth(bearer), (ctx) => {
    ctx.body = Readable.from(
      (async function* () {
        for (const part of ['a', 'b']) yield pause(5).then(() => part)
      })(),
    )
  })
  router.all('/broken', withAuth(bearer), (ctx) => {
    ctx.body = Readable.from(
      (async function* () {
        yield 'a'
        throw await pause(5).then(() => new Error('stream'))
      })(),
    )
  })
  router.all('/raw', withAuth(bearer), (ctx) => {
    ctx.respond = false
    ctx.res.writeHead(207).end('in')
  })
  router.all('/undecided', (ctx) => void (ctx.body = 'in'))

  const app = new Koa()
  app.silent = true
  let open = 0
  app.use((ctx, next) => {
    open++
    ctx.res.once('close', () => {
      open--
      if (ctx.path === '/undecided') return
      const said = `${ctx.method} ${ctx.path} ${ctx.res.headersSent ? ctx.res.statusCode : 499}`
      over.set(said, (over.get(said) ?? 0) + 1)
    })
    return next()
  })
  app
    .use(authSettings({ timeout: 30 }))
    .use(router.routes())
    .use(level.routes())
  return { app, open: () => open }
}

const paths = [
  '/any',
  '/late',
  '/hangs',
  '/optional',
  '/public',
  '/waits',
  '/throws',
  '/stream',
  '/broken',
  '/raw',
  '/undecided',
  '/level/also',
]
const basic = (password: string) => `Basic ${Buffer.from(`anna:${password}`).toString('base64')}`
const credentials: Readonly<Record<string, (secret: string) => readonly [query: string, ...lines: string[]]>> = {
  none: () => [''],
  bearer: (secret) => ['', `Authorization: Bearer ${secret}`],
  wrong: (secret) => ['', `Authorization: Bearer ${secret}x`],
  malformed: (secret) => ['', `Authorization: Bearer ${secret} ${secret}`],
  basic: (secret) => ['', `Authorization: ${basic(secret)}`],
  cookie: (secret) => ['', `Cookie: id=${secret}`],
  forged: (secret) => ['', `Cookie: id=${secret}`, 'Sec-Fetch-Site: cross-site'],
  query: (secret) => [`?key=${secret}`],
  both: (secret) => [`?key=${secret}`, `Authorization: Bearer ${secret}`],
}
const request = fc.record({
  path: fc.constantFrom(...paths),
  method: fc.constantFrom('GET', 'GET', 'HEAD', 'POST'),
  credential: fc.constantFrom(...Object.keys(credentials)),
  // The milliseconds after which the client disconnects; most clients stay
  leaves: fc.option(fc.constantFrom(1, 8, 20), { freq: 3 }),
})
type Sent = typeof request extends fc.Arbitrary<infer A> ? A : never

/** Sends a request. Resolves when its connection is closed. */
const send = (port: number, secret: string, { path, method, credential, leaves }: Sent): Promise<void> =>
  new Promise((resolve) => {
    const [query, ...lines] = credentials[credential]!(secret)
    const head = [`${method} ${path}${query} HTTP/1.1`, 'Host: x', 'Connection: close', 'Content-Length: 0', ...lines]
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head.join('\r\n')}\r\n\r\n`))
    const timer = leaves === null ? undefined : setTimeout(() => socket.destroy(), leaves)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
    socket.resume()
  })

// These are always tried: each outcome and each way to answer
const always = (
  [
    { path: '/any', method: 'POST', credential: 'forged' },
    { path: '/any', method: 'GET', credential: 'query' },
    { path: '/level/also', method: 'HEAD', credential: 'both' },
    { path: '/hangs', method: 'GET', credential: 'bearer' },
    { path: '/optional', method: 'GET', credential: 'none' },
    { path: '/public', method: 'GET', credential: 'none' },
    { path: '/waits', method: 'GET', credential: 'bearer' },
    { path: '/throws', method: 'GET', credential: 'bearer' },
    { path: '/raw', method: 'GET', credential: 'bearer' },
    { path: '/late', method: 'GET', credential: 'wrong' },
  ] as const
).map((one): Sent => ({ ...one, leaves: null }))

const counted = (records: ReadonlyArray<Decision>): Map<string, number> => {
  const counts = new Map<string, number>()
  for (const { method, route, status } of records) {
    const said = `${method} ${route} ${status}`
    counts.set(said, (counts.get(said) ?? 0) + 1)
  }
  return counts
}

describe('laws of records, over HTTP', () => {
  it('each guarded request has one record, which agrees with the response and contains no part of a credential', async () => {
    const outcomes = new Set<string>()
    const statuses = new Set<number>()
    const secretText = fc.string({
      unit: fc.constantFrom(...'abcdefghkmnprstuvwxyz23456789'),
      minLength: 24,
      maxLength: 32,
    })
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 8, maxLength: 24 }), secretText, async (requests, secret) => {
        const answered = new Map<string, number>()
        const { app, open } = site(secret, answered)
        const { port, close } = await listen(app)
        const records: Decision[] = []
        const end = on('decision', (record) => records.push(record))
        await Promise.all(requests.map((one) => send(port, secret, one)))
        // The server may not have seen a client that left; after this request it has
        await close()
        await expect.poll(open, { interval: 2 }).toBe(0)
        // A hook that hangs is decided at its time limit, even if the client has left
        const total = () => [...answered.values()].reduce((sum, count) => sum + count, 0)
        await expect.poll(() => records.length, { interval: 2 }).toBe(total())
        await pause(5)
        end()
        expect(new Map([...counted(records)].sort())).toStrictEqual(new Map([...answered].sort()))
        const text = JSON.stringify(records)
        for (const part of [secret, secret.slice(0, 12), basic(secret).slice(6), basic(secret).slice(20, 40)]) {
          expect(text).not.toContain(part)
        }
        for (const { outcome, status } of records) {
          outcomes.add(outcome)
          statuses.add(status)
        }
      }),
      { numRuns: 25, examples: [[always, 'a2b3c4d5e6f7g8h9k2m3n4p5']] },
    )
    // All of these occurred
    for (const outcome of ['accepted', 'anonymous', 'public', 'refused', 'forbidden', 'unavailable']) {
      expect([...outcomes]).toContain(outcome)
    }
    for (const status of [200, 202, 207, 401, 403, 499, 500, 503]) expect([...statuses]).toContain(status)
  })
})
