/** what a hook throws or returns by mistake is a 500, also where Koa alone would answer nothing, or the process would end. */
import { setTimeout as pause } from 'node:timers/promises'
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import { authSettings, httpBasicAuth, httpBearer, rateLimit, throttled, withAuth } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { countFailures, passwordSignIn, askSecondFactor, secondFactor } from 'koa-with-auth/sign-in'
import { mockRequest } from 'koa-with-auth/testing'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Context } from 'koa'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { unhandledRejections } from '../support/runs/unhandled.js'
import { sessionsApp, at } from '../support/sites/sessionsApp.js'

const body = JSON.stringify({ username: 'anna', password: 'p' })
const sent = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body }

describe('A-30', () => {
  const unhandled = unhandledRejections()

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a frozen error', Object.freeze(new Error('x'))],
    ['the error of a client that calls a success a failure', Object.assign(new Error('x'), { status: 204 })],
    ['an error with a header that Node refuses', Object.assign(new Error('x'), { headers: { 'x\n': 'y' } })],
    ['an error that cannot be read', Object.defineProperty(new Error('x'), 'status', { get: () => JSON.parse('') })],
  ])('a hook of a sign-in that throws %s gets a 500', async (_what, thrown) => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app) => {
        const router = new Router()
        router.post('/password', withAuth(null), passwordSignIn({ accountOf: () => Promise.reject(thrown) }))
        app.use(router.routes())
      },
    })
    expect(await visitor().ask('/password', sent)).toMatchObject({ status: 500, body: 'Internal Server Error' })
    await pause(1)
    expect(unhandled()).toEqual([])
  })

  it('a hook that may return no promise, and returns one that rejects, gets a 500', async () => {
    const limiter = new RateLimiterMemory({ points: 9, duration: 9 })
    // Safe: the types refuse a promise, and JavaScript does not
    const promised = () => Promise.reject(new Error('no')) as never
    const { visitor } = await sessionsApp(undefined, {
      isSuperuser: promised,
      list: { label: promised },
      below: (app) => {
        const user = httpBearer({ authenticate: () => ({ name: 'anna' }) })
        const router = new Router()
        router.get('/by', withAuth(user, rateLimit({ limiter, by: promised })), () => {})
        router.get('/points', withAuth(user, rateLimit({ limiter, by: () => 'x', points: promised })), () => {})
        router.get('/limiter', withAuth(user, rateLimit({ limiter: promised, by: () => 'x' })), () => {})
        const basic = httpBasicAuth({ authenticate: () => false })
        router.get('/keys', withAuth(throttled({ limiter, keys: promised })(basic)), () => {})
        app.use(authSettings({ trustedOrigins: promised, events: { subject: promised } }))
        app.use(router.routes())
      },
    })
    onTestFinished(on('decision', () => {}))
    const anna = visitor()
    expect((await anna.post('/login')).status).toBe(200)
    const bearer = { headers: { Authorization: 'Bearer t' } }
    const basic = { headers: { Authorization: 'Basic YTpi' } }
    const answers = [
      ...['/by', '/points', '/limiter'].map((path) => anna.ask(path, bearer)),
      anna.ask('/keys', basic),
      anna.ask('/super'),
      anna.post('/me', { Origin: 'https://other.example' }),
    ]
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([500, 500, 500, 500, 500, 500])
    await pause(1)
    expect(unhandled()).toEqual([])
  })
})

describe('A-31 countFailures judges what its check finds as any hook is judged', () => {
  const guess = (found: unknown) => countFailures()({ request: mockRequest() }, 'anna', () => found)

  it.each<[string, unknown]>([
    ['None', O.none],
    ['a Left', E.left('no')],
    ['false', false],
    ['nothing', undefined],
    ['a promise of None', Promise.resolve(O.none)],
  ])('%s is a wrong guess', async (_what, found) => {
    await expect(guess(found)).rejects.toMatchObject({ name: 'SignInRefused', failure: { reason: 'wrong' } })
  })

  it('counts ten of an address in a quarter of an hour, and a hundred of all addresses in a day', async () => {
    const count = countFailures()
    const reasons: unknown[] = []
    for (let at = 0; at < 120; at++) {
      const request = mockRequest({ remoteAddress: `192.0.2.${Math.floor(at / 12)}` })
      const refused = await count({ request }, 'anna', () => false).catch((error: unknown) => error)
      // Safe: it is a `SignInRefused`
      reasons.push((refused as { failure: { _tag: string } }).failure._tag)
    }
    const ofAddress = [...Array<string>(10).fill('invalid'), 'throttled', 'throttled']
    expect(reasons).toEqual(Array(10).fill(ofAddress).flat())
    const last = count({ request: mockRequest({ remoteAddress: '198.51.100.1' }) }, 'anna', () => true)
    await expect(last).rejects.toMatchObject({ failure: { _tag: 'throttled' } })
  })

  it.each<unknown>([true, { name: 'anna' }, O.some(1)])('%j is what it finds', async (found) => {
    expect(await guess(found)).toBe(found)
  })
})

// Each method takes its time, as over a network
const slow = (store: Store): Store => ({
  ...store,
  get: async (keys) => {
    await pause(20)
    return store.get(keys)
  },
})
const failing = (store: Store): Store => ({ ...store, get: () => Promise.reject(new Error('down')) })

const code = secondFactor({
  factors: [{ method: 'totp', verify: async () => true }],
  limiter: new RateLimiterMemory({ points: 5, duration: 900 }),
})
const first = { user: { username: 'anna' }, proof: { method: 'password' } }

describe('C-06 askSecondFactor', () => {
  const unhandled = unhandledRejections()

  it.each<readonly [string, Store]>([
    ['memory', memoryStore()],
    ['a slow store', slow(memoryStore())],
    ['a store that is down', failing(memoryStore())],
  ])('without await is a 500 that names it, over %s', async (_name, store) => {
    const { visitor, errors } = await sessionsApp(() => store, {
      origin: 'http://127.0.0.1',
      below: (app) => {
        const handlers: Record<string, (ctx: Context) => unknown> = {
          // eslint-disable-next-line @typescript-eslint/no-misused-promises -- it is what is tested
          '/spread': (ctx) => (ctx.body = { next: 'code', ...askSecondFactor(ctx, code, first) }),
          '/ignored': (ctx) => {
            void askSecondFactor(ctx, code, first)
            ctx.body = 'signed in?'
          },
        }
        for (const [path, handler] of Object.entries(handlers)) app.use(at(path, handler))
      },
    })
    for (const path of ['/spread', '/ignored']) {
      expect(await visitor().post(path)).toMatchObject({ status: 500, body: 'Internal Server Error' })
      expect(String(errors.at(-1))).toContain('write await askSecondFactor(...)')
    }
    await pause(60)
    expect(unhandled()).toEqual([])
  })

  it('with await goes on as before', async () => {
    const { visitor } = await sessionsApp(() => slow(memoryStore()), {
      origin: 'http://127.0.0.1',
      below: (app) =>
        app.use(
          at('/awaited', async (ctx) => {
            ctx.body = { next: 'code', ...(await askSecondFactor(ctx, code, first)) }
          }),
        ),
    })
    const answer = await visitor().post('/awaited')
    expect([answer.status, answer.body]).toEqual([200, { next: 'code', handle: expect.any(String) }])
    // another site begins none
    expect((await visitor().post('/awaited', { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403)
  })
})
