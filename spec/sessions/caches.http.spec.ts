/**
 * R03: no shared cache may store a response that sets the session's cookie, whoever wrote its Cache-Control, and
 * whenever.
 */
import { createServer } from 'node:http'
import { Readable } from 'node:stream'
import type Koa from 'koa'
import type { Context } from 'koa'
import { describe, expect, it } from 'vitest'
import { sessionsApp, setCookies, visitorOf } from '../support/sites/sessionsApp.js'
import { stoppedClock } from '../support/runs/clock.js'
import { listening } from '../support/servers/server.js'

const PUBLIC = 'public, max-age=3600'

// Safe: some of these values are not in Node's types
const head = (ctx: Context, ...args: unknown[]): void => {
  ctx.respond = false
  Reflect.apply(ctx.res.writeHead, ctx.res, args)
  ctx.res.end('news')
}

type Way = (ctx: Context) => unknown

const saying =
  (name: string, value: string | string[], body: () => unknown = () => 'news'): Way =>
  (ctx) => {
    ctx.set(name, value)
    ctx.body = body()
  }
const plain: Way = (ctx) => (ctx.body = 'news')

// An operation that changes the session and declares its response public
const ways: Readonly<Record<string, Way>> = {
  'the handler, before the change': saying('Cache-Control', PUBLIC),
  'the handler, several lines': saying('Cache-Control', ['private', 's-maxage=3600']),
  'the handler, with private in a string': saying('Cache-Control', 'public, x="a, private, no-store"'),
  'the handler, with private before a directive that is none': saying('Cache-Control', 'private, max-age=60x'),
  'the handler, with private for one field': saying('Cache-Control', 'private="x-name", max-age=3600'),
  'a stream': saying('Cache-Control', PUBLIC, () => Readable.from(['news'])),
  'no Cache-Control': plain,
  'only Expires': saying('Expires', new Date(Date.now() + 3_600_000).toUTCString()),
}

const targeted = [
  'CDN-Cache-Control',
  'Cloudflare-CDN-Cache-Control',
  'Surrogate-Control',
  'Edge-Control',
  'X-Accel-Expires',
]

const expectUncached = (headers: Readonly<Record<string, unknown>>): void => {
  expect(String(headers['cache-control'])).toMatch(/^(?:private, )?no-store$/)
  for (const name of targeted) expect(headers[name.toLowerCase()]).toBeUndefined()
}

const serving = (way: Way, above: (app: Koa) => void = () => {}) =>
  sessionsApp(undefined, {
    above,
    acts: {
      '/news': (ctx) => {
        Object.assign(ctx['session'] as object, { seen: true })
        return way(ctx)
      },
    },
  })

describe('R03 an operation that changes the session', () => {
  it.each(Object.entries(ways))('%s: the response is private', async (_what, way) => {
    const { visitor } = await serving(way)
    const answer = await visitor().ask('/news')
    expect([answer.status, answer.body, setCookies(answer).length]).toEqual([200, 'news', 1])
    expectUncached(answer.headers)
  })

  it.each(targeted)('%s, which some caches read instead (RFC 9213), is removed', async (name) => {
    const { visitor } = await serving(saying(name, 'max-age=3600'))
    const answer = await visitor().ask('/news')
    expect(setCookies(answer)).toHaveLength(1)
    expectUncached(answer.headers)
  })
})

const raw =
  (write: (res: Context['res']) => unknown): Way =>
  (ctx) => {
    ctx.respond = false
    ctx.res.statusCode = 200
    ctx.res.setHeader('Cache-Control', PUBLIC)
    write(ctx.res)
  }

// Writes the head itself after a sign-in, when the cookie is already set
const heads: Readonly<Record<string, Way>> = {
  'no headers': (ctx) => (ctx.set('Cache-Control', PUBLIC), head(ctx, 200)),
  'an object': (ctx) => head(ctx, 200, { 'Cache-Control': PUBLIC }),
  'an object with names in another letter case': (ctx) => head(ctx, 200, { 'CACHE-CONTROL': PUBLIC }),
  'a message and an object': (ctx) => head(ctx, 200, 'OK', { 'Cache-Control': PUBLIC }),
  'no message and an object': (ctx) => head(ctx, 200, undefined, { 'Cache-Control': PUBLIC }),
  'an array': (ctx) => head(ctx, 200, ['Cache-Control', PUBLIC]),
  'a message and an array': (ctx) => head(ctx, 200, 'OK', ['cache-control', PUBLIC]),
  'an array with the name twice': (ctx) => head(ctx, 200, ['Cache-Control', 'private', 'Cache-Control', PUBLIC]),
  'the cookies given again': (ctx) =>
    head(ctx, 200, { 'Set-Cookie': ctx.res.getHeader('Set-Cookie'), 'Cache-Control': PUBLIC }),
  flushHeaders: raw((res) => (res.flushHeaders(), res.end('news'))),
  'the first write': raw((res) => (res.write('ne'), res.end('ws'))),
  'a pipe': raw((res) => Readable.from(['news']).pipe(res)),
}

describe('R03 an operation that signs in and writes its head itself', () => {
  it.each(Object.entries(heads))('%s: the response is private', async (_what, write) => {
    const { visitor } = await sessionsApp(undefined, {
      acts: {
        '/head': async (ctx, { logIn }) => {
          await logIn(ctx, { username: 'anna' })
          ctx.remove('Content-Length')
          await write(ctx)
        },
      },
    })
    const answer = await visitor().post('/head')
    expect([answer.status, answer.body, setCookies(answer).length]).toEqual([200, 'news', 1])
    expectUncached(answer.headers)
  })
})

describe('R03 upstream middleware', () => {
  it('that sets Cache-Control afterwards: the response is private', async () => {
    const { visitor } = await serving(plain, (app) =>
      app.use(async (ctx, next) => {
        await next()
        ctx.set('Cache-Control', PUBLIC)
      }),
    )
    expectUncached((await visitor().ask('/news')).headers)
  })

  // As the package on-headers does. It is called after this package, so what it writes is its own decision
  it('that replaced writeHead: finds a private response there, and decides itself', async () => {
    const found: unknown[] = []
    const { visitor } = await serving(plain, (app) =>
      app.use(async (ctx: Context, next) => {
        const { res } = ctx
        const writeHead = res.writeHead
        Object.assign(res, {
          writeHead: (...args: unknown[]): unknown => {
            found.push(res.getHeader('Cache-Control'))
            if (ctx.path === '/news') res.setHeader('X-Above', 'yes')
            return Reflect.apply(writeHead, res, args)
          },
        })
        await next()
      }),
    )
    const answer = await visitor().ask('/news')
    expect([answer.status, answer.headers['x-above'], setCookies(answer).length]).toEqual([200, 'yes', 1])
    expectUncached(answer.headers)
    expect(found.at(-1)).toBe('private, no-store')
  })
})

describe('R03 responses that do not change', () => {
  it('a response that does not set the cookie of the session', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app) =>
        app.use(async (ctx, next) => {
          if (ctx.path !== '/plain') return void (await next())
          ctx.cookies.set('theme', 'dark')
          ctx.set({ 'Cache-Control': PUBLIC, 'CDN-Cache-Control': 'max-age=60' })
          ctx.body = 'news'
        }),
    })
    const answer = await visitor().ask('/plain')
    expect([answer.headers['cache-control'], answer.headers['cdn-cache-control']]).toEqual([PUBLIC, 'max-age=60'])
    expect(setCookies(answer)[0]).toMatch(/^theme=dark/)
  })

  it.each(['private', 'no-store', 'private, max-age=60', 'no-cache, PRIVATE'])(
    'a response with Cache-Control: %s',
    async (value) => {
      const { visitor } = await serving(saying('Cache-Control', value))
      const answer = await visitor().ask('/news')
      expect([answer.headers['cache-control'], setCookies(answer).length]).toEqual([value, 1])
    },
  )
})

it('R03 a cache that stores what RFC 9111 allows gives no session to another client', async () => {
  const clock = stoppedClock()
  const site = await sessionsApp(undefined, {
    idle: 3_600_000,
    acts: { '/news': saying('Cache-Control', PUBLIC) },
  })
  const kept = new Map<string, { status: number; headers: object; text: string }>()
  const cache = createServer((req, res) => {
    void (async () => {
      const { url = '', method = 'GET' } = req
      const known = method === 'GET' ? kept.get(url) : undefined
      if (known !== undefined) return res.writeHead(known.status, { ...known.headers }).end(known.text)
      const { headers, status, body } = await site.ask(url, { method, headers: { Cookie: req.headers.cookie ?? '' } })
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      const { 'content-length': _length, ...rest } = headers
      if (/public/.test(headers['cache-control'] ?? '')) kept.set(url, { status, headers: rest, text })
      return res.writeHead(status, rest).end(text)
    })()
  })
  const port = await listening(cache)
  const anna = visitorOf(port)
  await anna.post('/login')
  clock.move(0.55 * 3_600_000)
  const prolonged = await anna.ask('/news')
  expect(setCookies(prolonged)).toHaveLength(1)
  const mallory = visitorOf(port)
  await mallory.ask('/news')
  expect((await mallory.ask('/me')).status).toBe(401)
  expect([...kept.keys()]).toEqual(['/news'])
})
