/**
 * `koaSessionStore`: when koa-session writes, the store gets an insert, an update or an end; also with a plain
 * koa-session.
 */
import Koa from 'koa'
import koaSession from 'koa-session'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { koaSessionStore } from '../../src/sessions/koaSessionStore.js'
import { listen } from '../support/servers/server.js'
import { strongKey, watchedStore } from '../support/sites/sessionsApp.js'
import { stoppedClock } from '../support/runs/clock.js'

const LONG = 60_000
const DAY = 86_400_000
const limits = {
  name: 'shop',
  idle: DAY,
  absolute: LONG,
  longest: LONG,
  maxLength: 100,
  list: undefined,
  bearer: undefined,
}

const make = (maxLength = 100) => {
  const kept = memoryStore()
  const watched = watchedStore(() => kept)
  return { ...koaSessionStore({ ...limits, store: watched, maxLength }).store, asked: watched.asked, kept }
}

describe('in one request', () => {
  it('an id that was not read is inserted, then updated', async () => {
    const { set, asked } = make()
    const ctx = {}
    await set('id', { a: 1 }, LONG, { ctx })
    await set('id', { a: 2 }, LONG, { ctx })
    expect(asked).toEqual(['insert', 'update'])
  })

  it('an id that was read is updated', async () => {
    const { get, set, asked } = make()
    await set('id', { a: 1 }, LONG, { ctx: {} })
    const ctx = {}
    expect(await get('id', LONG, { ctx })).toEqual({ a: 1 })
    await set('id', { a: 2 }, LONG, { ctx })
    expect(asked).toEqual(['insert', 'get', 'update'])
    expect(await get('id', LONG, { ctx: {} })).toEqual({ a: 2 })
  })

  it('an id that was read and does not exist is inserted', async () => {
    const { get, set, asked } = make()
    const ctx = {}
    expect(await get('id', LONG, { ctx })).toBeUndefined()
    await set('id', { a: 1 }, LONG, { ctx })
    expect(asked).toEqual(['get', 'insert'])
  })

  it('the reads of another request do not count', async () => {
    const { get, set, asked } = make()
    await set('id', { a: 1 }, LONG, { ctx: {} })
    await get('id', LONG, { ctx: {} })
    await set('id', { a: 2 }, LONG, { ctx: {} })
    expect(asked).toEqual(['insert', 'get', 'insert'])
    expect(await get('id', LONG, { ctx: {} })).toEqual({ a: 1 })
  })

  it('an id that was never stored needs no end; others leave a tombstone', async () => {
    const { get, set, destroy, asked } = make()
    await destroy('id', { ctx: {} })
    expect(asked).toEqual([])
    await set('id', { a: 1 }, LONG, { ctx: {} })
    const ctx = {}
    await get('id', LONG, { ctx })
    await destroy('id', { ctx })
    await set('id', { a: 2 }, LONG, { ctx: {} })
    expect(await get('id', LONG, { ctx: {} })).toBeUndefined()
  })

  it('a session that is too large is a RangeError, and is not written', async () => {
    const { set, asked } = make(20)
    await set('id', { a: 'x'.repeat(12) }, LONG, { ctx: {} })
    await expect(set('id', { a: 'x'.repeat(13) }, LONG, { ctx: {} })).rejects.toThrow(
      new RangeError('the session is 21 characters long; at most 20 are kept'),
    )
    expect(asked).toEqual(['insert'])
  })
})

describe('with a plain koa-session', () => {
  // With the options that restore ended sessions in other stores
  it.each([{ rolling: true }, { renew: true, maxAge: 3_600_000 }, {}])(
    'D-S4 %j: an ended session stays ended',
    async (options) => {
      const clock = stoppedClock()
      const app = new Koa({ keys: [strongKey] })
      app.use(koaSession({ store: koaSessionStore({ ...limits, store: memoryStore() }).store, ...options }, app))
      let go = () => {}
      const gate = new Promise<void>((resolve) => (go = resolve))
      let arrive = () => {}
      const arrived = new Promise<void>((resolve) => (arrive = resolve))
      app.use(async (ctx) => {
        if (ctx.path === '/in') ctx['session'] = { user: 'anna' }
        if (ctx.path === '/out') ctx['session'] = null
        if (ctx.path === '/slow') {
          const session = ctx['session'] as unknown as Record<string, unknown>
          arrive()
          await gate
          if (!('rolling' in options) && !('renew' in options)) session['seen'] = true
        }
        ctx.body = (ctx['session'] as object | null) ?? {}
      })
      const { url, close } = await listen(app)
      try {
        const signedIn = await fetch(`${url}/in`)
        const Cookie = signedIn.headers
          .getSetCookie()
          .map((line) => line.split(';')[0])
          .join('; ')
        const ask = (path: string) => fetch(url + path, { headers: { Cookie } })
        expect(await (await ask('/')).json()).toEqual({ user: 'anna' })
        const slow = ask('/slow')
        await arrived
        await ask('/out')
        clock.move('renew' in options ? 1_900_000 : 0)
        go()
        await slow
        expect(await (await ask('/')).json()).toEqual({})
      } finally {
        await close()
      }
    },
  )
})
