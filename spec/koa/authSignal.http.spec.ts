/** The end of a credential reaches what a request has opened: `authSignal` and `untilEnd`. */
import { runInNewContext } from 'node:vm'
import { once } from 'node:events'
import { connect, createServer as createHttp2 } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import Koa, { type Context } from 'koa'
import {
  allOf,
  anyOf,
  apiKeyHeader,
  type AuthEndedError,
  AuthError,
  authSignal,
  guardApp,
  cached,
  httpBearer,
  optional,
  untilEnd,
  withAuth,
  type AuthenticatorLike,
} from 'koa-with-auth'
import { map, recoverUnavailable } from 'koa-with-auth/fp'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { collected } from '../support/runs/heap.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { ask, listen } from '../support/servers/server.js'
import { causeOf, eventsSite, stopped } from '../support/sites/eventsSite.js'

const bearer = (expiresAt: unknown) =>
  httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna', expiresAt } })

const sent = { Authorization: 'Bearer supersecret' }

describe('the time of a principal', () => {
  it('ends the stream, cleanly, with the cause expired, and everything is released', async () => {
    const now = stopped()
    const { open } = eventsSite(bearer(new Date(now + 60_000)))
    const stream = await open(sent)
    expect(await stream.read()).toBe('data: hello\n\n')
    vi.advanceTimersByTime(59_999)
    expect(stream.signal.aborted).toBe(false)
    vi.advanceTimersByTime(1)
    expect(causeOf(stream.signal)).toBe('expired')
    expect(await stream.read()).toBe('end')
  })
  it.each<[string, unknown]>([
    ['that is over', Date.now() - 1],
    ['that is over, as a Date of another realm,', runInNewContext('new Date(1)')],
  ])('%s gives an aborted signal, and an empty body', async (_what, at) => {
    const { open } = eventsSite(bearer(at))
    const stream = await open(sent)
    expect([stream.status, causeOf(stream.signal), await stream.read()]).toEqual([200, 'expired', 'end'])
  })
})

describe('what has no end', () => {
  it.each<[string, AuthenticatorLike | null, Record<string, string>]>([
    ['a public operation', null, sent],
    ['a credential without an end', bearer(undefined), sent],
    ['an anonymous caller', optional(bearer(1)), {}],
    ['another member', anyOf([apiKeyHeader({ authenticate: () => ({ expiresAt: 1 }) }), bearer(undefined)]), sent],
  ])('%s: the signal is never aborted', async (_what, auth, headers) => {
    const { open } = eventsSite(auth)
    const stream = await open(headers)
    expect([stream.status, stream.signal.aborted, await stream.read()]).toEqual([200, false, 'data: hello\n\n'])
  })
})

describe('combinators keep the end', () => {
  const at = () => bearer(Date.now() + 60_000)
  interface User {
    readonly user: string
    readonly expiresAt: unknown
  }
  const authenticate = () => {
    const expiresAt = Date.now() + 60_000
    return cached((_request, _token: string) => ({ user: 'anna', expiresAt }), { maxAge: 90_000 })
  }
  const later = () => bearer(Date.now() + 90_000)
  const sooner = map(({ user }: User) => ({ user, expiresAt: Date.now() + 60_000 }))
  it.each<[string, () => AuthenticatorLike]>([
    ['map', () => map(({ user }: User) => ({ name: user }))(at())],
    ['map to a principal that ends sooner', () => sooner(later())],
    ['optional', () => optional(at())],
    ['cached', () => httpBearer({ authenticate: authenticate() })],
    ['allOf', () => allOf([at(), later()])],
    ['anyOf', () => anyOf({ key: apiKeyHeader({ authenticate: () => false }), user: at() })],
  ])('%s, and nothing waits after it', async (_name, make) => {
    stopped()
    const waiting = ownEnds()
    const { open } = eventsSite(make())
    const streams = [await open(sent), await open(sent)]
    vi.advanceTimersByTime(59_999)
    expect(streams.map(({ signal }) => signal.aborted)).toEqual([false, false])
    vi.advanceTimersByTime(1)
    expect(streams.map(({ signal }) => causeOf(signal))).toEqual(['expired', 'expired'])
    expect(waiting()).toBe(0)
  })
})

describe('an API key', () => {
  it('ends at once, too, if another member of the list was recovered from an outage', async () => {
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const down = httpBearer({ authenticate: (): unknown => AuthError.unavailable() })
    const partner = apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate })
    const { open } = eventsSite(allOf([recoverUnavailable(() => ({ user: 'cached' }))(down), partner]))
    const { key, id } = await keys.issue({ owner: 'anna' })
    const stream = await open({ 'X-Key': key, Authorization: 'Bearer x' })
    await stream.read()
    await keys.revoke(id)
    expect(causeOf(stream.signal)).toBe('revoked')
  })
  it('of two ends, whichever is revoked', async () => {
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const [first, second] = ['X-A', 'X-B'].map((paramName) =>
      apiKeyHeader({ paramName, authenticate: keys.authenticate }),
    )
    const { open } = eventsSite(allOf([first!, second!]))
    const [one, other] = [await keys.issue({ owner: 'anna' }), await keys.issue({ owner: 'bert' })]
    const streams = [await open({ 'X-A': one.key, 'X-B': other.key }), await open({ 'X-A': other.key, 'X-B': one.key })]
    await keys.revoke(other.id)
    expect(streams.map(({ signal }) => causeOf(signal))).toStrictEqual(['revoked', 'revoked'])
  })
})

describe('untilEnd', () => {
  const serve = async (handler: (ctx: Context) => unknown) => {
    const router = new Router().get('/', withAuth(bearer(Date.now() + 60_000)), handler)
    const app = Object.assign(new Koa(), { silent: true })
    return (await listen(app.use(router.routes()))).url
  }
  it('destroys the source when the client goes away, and nothing waits any more', async () => {
    const waiting = ownEnds()
    const source = new PassThrough()
    const url = await serve((ctx) => {
      source.write('hello')
      ctx.body = untilEnd(ctx, source)
    })
    const stop = new AbortController()
    await fetch(url, { headers: sent, signal: stop.signal })
    expect(waiting()).toBe(1)
    stop.abort()
    await vi.waitFor(() => expect(source.destroyed).toBe(true), 120_000)
    expect(waiting()).toBe(0)
  })
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  it('takes from its source only as much as the client reads', async () => {
    let paused: unknown
    const url = await serve(async (ctx) => {
      const source = new PassThrough()
      const body = untilEnd(ctx, source)
      source.write('a')
      source.write('b')
      source.end('c')
      await turn()
      paused = [source.isPaused(), body.readableLength]
      ctx.body = body
    })
    expect(await (await fetch(url, { headers: sent })).text()).toBe('abc')
    expect(paused).toStrictEqual([true, 1])
  })
  it('cuts off a response whose source failed before anything read it', async () => {
    const url = await serve(async (ctx) => {
      const source = new PassThrough()
      const body = untilEnd(ctx, source)
      source.destroy(new Error('disk'))
      await turn()
      ctx.body = body
    })
    await expect(fetch(url, { headers: sent }).then((response) => response.text())).rejects.toThrow()
  })
  it('ends cleanly what nothing reads at the end', async () => {
    stopped()
    const url = await serve(async (ctx) => {
      const source = new PassThrough()
      const body = untilEnd(ctx, source).pause()
      vi.advanceTimersByTime(60_000)
      await turn()
      ctx.body = body
    })
    expect(await (await fetch(url, { headers: sent })).text()).toBe('')
  })
  it('passes a whole body on', async () => {
    const url = await serve((ctx) => void (ctx.body = untilEnd(ctx, new PassThrough().end('x'.repeat(1_000_000)))))
    const response = await fetch(url, { headers: sent })
    expect((await response.text()).length).toBe(1_000_000)
  })
  it('cuts a download with a length off, so that no client takes it for the whole', async () => {
    stopped()
    const url = await serve((ctx) => {
      const source = new PassThrough()
      source.write('half')
      ctx.length = 8
      ctx.body = untilEnd(ctx, source)
      ctx.length = 8
    })
    const response = await fetch(url, { headers: sent })
    const text = response.text()
    vi.advanceTimersByTime(60_000)
    await expect(text).rejects.toThrow()
  })
  const destroyed = (error?: Error) => new PassThrough().on('error', () => {}).destroy(error)
  it.each([
    ['has ended', () => new PassThrough().resume().end()],
    ['is destroyed', () => destroyed()],
    ['has failed', () => destroyed(new Error('disk'))],
  ])('lets no client wait for a source that %s before', async (how, make) => {
    const source = make()
    await turn()
    const url = await serve((ctx) => void (ctx.body = untilEnd(ctx, source)))
    const text = fetch(url, { headers: sent }).then((response) => response.text())
    await (how === 'has ended' ? expect(text).resolves.toBe('') : expect(text).rejects.toThrow())
  })
  it.each([
    ['fails', new Error('disk')],
    ['is destroyed', undefined],
  ])('cuts off a response whose source %s, so that no client waits', async (_how, error) => {
    const source = new PassThrough()
    const url = await serve((ctx) => {
      source.write('half')
      ctx.body = untilEnd(ctx, source)
    })
    const response = await fetch(url, { headers: sent })
    const text = response.text()
    source.destroy(error)
    await expect(text).rejects.toThrow()
  })
  it.each([undefined, 'text', {}])('refuses %j', async (value) => {
    const url = await serve((ctx) => {
      expect(() => untilEnd(ctx, value as never)).toThrow('untilEnd(ctx, stream): stream must be')
      ctx.status = 204
    })
    expect((await fetch(url, { headers: sent })).status).toBe(204)
  })
})

it('what a guard around the operation let in ends it, too: that of the application, or of an operation before it', async () => {
  const over = httpBearer({ authenticate: () => ({ name: 'anna', expiresAt: Date.now() - 1 }) })
  const key = apiKeyHeader({ authenticate: () => ({ name: 'key' }) })
  const answer = (ctx: Context) => {
    const { aborted, reason } = authSignal(ctx)
    ctx.body = aborted && String((reason as AuthEndedError).cause)
  }
  const inside = () => new Router().get('/key', withAuth(key), answer).get('/open', withAuth(null), answer).routes()
  const ahead = new Router().get('/:any', withAuth(over), (_ctx, next) => next())
  const whole = await listen(guardApp(over)(new Koa()).use(inside()))
  const chained = await listen(new Koa().use(ahead.routes()).use(inside()))
  for (const { url, close } of [whole, chained]) {
    onTestFinished(close)
    const headers = { Authorization: 'Bearer x', Key: 'k' }
    for (const path of ['/key', '/open']) expect((await ask(`${url}${path}`, { headers })).text).toBe('expired')
  }
})

it('a client that goes away leaves no end of a guard around the operation, nor of the operation', async () => {
  const waiting = ownEnds()
  const inner = apiKeyHeader({ authenticate: () => ({ expiresAt: Date.now() + 90_000 }) })
  const app = guardApp(bearer(Date.now() + 60_000))(new Koa()).use((ctx, next) => (authSignal(ctx), next()))
  const stop = new AbortController()
  let closed: Promise<unknown> | undefined
  const router = new Router().get('/', withAuth(inner), async (ctx) => {
    authSignal(ctx)
    expect(waiting()).toBe(3)
    closed = once(ctx.res, 'close')
    stop.abort()
    await closed
  })
  const { url } = await listen(app.use(router.routes()))
  await expect(fetch(url, { headers: { ...sent, Key: 'k' }, signal: stop.signal })).rejects.toThrow()
  await closed
  expect(waiting()).toBe(0)
})

describe('after the response', () => {
  const serve = async () => {
    const signals: AbortSignal[] = []
    const contexts: Context[] = []
    const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
    const router = new Router()
    const guard = withAuth(apiKeyHeader({ paramName: 'X-Key', authenticate: keys.authenticate }))
    router.get('/now', guard, (ctx) => {
      signals.push(authSignal(ctx))
      ctx.body = 'begun'
    })
    router.get('/later', guard, (ctx) => {
      contexts.push(ctx)
      ctx.body = 'begun'
    })
    const app = new Koa().use(router.routes())
    const { url } = await listen(app)
    const { key, id } = await keys.issue({ owner: 'anna' })
    const get = async (path: string) => {
      expect((await ask(`${url}${path}`, { headers: { 'X-Key': key } })).text).toBe('begun')
      // its response is closed here, too
      await vi.waitFor(() => expect(contexts.every(({ res }) => res.destroyed)).toBe(true), 120_000)
    }
    return { app, key, get, signals, contexts, revoke: () => keys.revoke(id) }
  }

  it('what goes on and holds the signal hears of the end', async () => {
    const { get, signals, revoke } = await serve()
    await get('/now')
    expect(signals.map(causeOf)).toStrictEqual([false])
    await revoke()
    expect(signals.map(causeOf)).toStrictEqual(['revoked'])
  })

  it('what asks first then hears of it, too', async () => {
    const { get, contexts, revoke } = await serve()
    await get('/later')
    const signals = contexts.flatMap((ctx) => [authSignal(ctx), authSignal(ctx)])
    expect(new Set(signals).size).toBe(1)
    await revoke()
    expect(signals.map(causeOf)).toStrictEqual(['revoked', 'revoked'])
  })

  it('a stream that is made then waits for nothing', async () => {
    const waiting = ownEnds()
    const { get, contexts } = await serve()
    await get('/later')
    for (const ctx of contexts) untilEnd(ctx, new PassThrough())
    expect(waiting()).toBe(0)
  })

  it('a signal that nothing holds leaves nothing behind', async () => {
    const waiting = ownEnds()
    const { get, signals } = await serve()
    for (let count = 0; count < 20; count++) await get('/now')
    expect(waiting()).toBe(20)
    signals.length = 0
    await vi.waitFor(async () => {
      await collected()
      expect(waiting()).toBe(0)
    }, 120_000)
  })

  it('a signal that is asked for then leaves nothing behind over HTTP/2', async () => {
    const waiting = ownEnds()
    const { app, key, contexts } = await serve()
    const handle = app.callback()
    const closed: Promise<unknown>[] = []
    const server = createHttp2((req, res) => {
      closed.push(once(res, 'close'))
      void handle(req, res)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    onTestFinished(() => {
      client.destroy()
      server.close()
    })
    await once(client.request({ ':path': '/later', 'x-key': key }).resume(), 'close')
    await Promise.all(closed)
    expect(contexts.map((ctx) => causeOf(authSignal(ctx)))).toStrictEqual([false])
    expect(waiting()).toBe(1)
    contexts.length = closed.length = 0
    await vi.waitFor(async () => {
      await collected()
      expect(waiting()).toBe(0)
    }, 120_000)
  })
})

it('authSignal refuses what is no context', () => {
  expect(() => authSignal({} as never)).toThrow('authSignal(ctx): ctx must be the context of a request')
})
