/** C-06: a second factor that an operation begins without `await` is a 500 that says so, and never ends the process. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from 'koa'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { askSecondFactor, finish, secondFactor } from 'koa-with-auth/sign-in'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { describe, expect, it } from 'vitest'
import { unhandledRejections } from '../support/runs/unhandled.js'
import { at, sessionsApp } from '../support/sites/sessionsApp.js'

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

it('finish without a hook is a TypeError, unless the kind needs none', () => {
  expect(() => finish(code, undefined as never)).toThrow('finish(kind, hook): hook must be a function, not undefined')
})
