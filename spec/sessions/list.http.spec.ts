/** C-07: the list of a user's sessions, and how long a session lasts that says so (rows M14 to M18). */
import { sessions, type ListedSession } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { constant } from 'fp-ts/lib/function.js'
import Koa from 'koa'
import { describe, expect, it, vi } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { sessionsApp, strongKey, type SessionsAppOptions, type Visitor } from '../support/sites/sessionsApp.js'
import { requestSessionOf } from '../../src/sessions/RequestSession.js'
import type { SessionHost } from '../../src/sessions/SignInList.js'
import { expectUser } from '../support/sites/signedIn.js'
import { describeEveryOther } from '../support/stores/sessionStores.js'

const list = { label: (request: { get: (name: string) => string }) => request.get('User-Agent') || undefined }

const HOUR = 3_600_000
const DAY = 24 * HOUR

const isEntry = (key: string) => key.startsWith('koa-with-auth/sign-in/')

// Loses the entries of sign-ins
const forgetful = (store: () => Store) => {
  let isLost = false
  const lossy = (): Store => {
    const kept = store()
    return {
      ...kept,
      get: async (keys) => {
        const texts = await kept.get(keys)
        return texts.map((text, at) => (isLost && isEntry(keys[at] ?? '') ? undefined : text))
      },
    }
  }
  return { lossy, lose: () => (isLost = true) }
}

const site = async (store: () => Store = constant(memoryStore()), options: SessionsAppOptions = {}) => {
  const { lossy, lose } = forgetful(store)
  let host: SessionHost | undefined
  const made = await sessionsApp(lossy, {
    list,
    ...options,
    below: (app) =>
      app.use((ctx, next) => {
        host ??= requestSessionOf(ctx).host
        return next()
      }),
    acts: { '/long': (ctx, { logIn }) => logIn(ctx, { username: 'anna' }, { idle: 72 * HOUR, absolute: 30 * DAY }) },
  })
  const listed = async (visitor: Visitor, of?: string) =>
    (await visitor.ask(`/list${of === undefined ? '' : `?of=${of}`}`)).body as ReadonlyArray<ListedSession>
  const signedIn = async () => {
    const one = made.visitor()
    await one.post('/login')
    return one
  }
  await made.ask('/open')
  return { ...made, listed, lose, signedIn, host: () => host! }
}

const stopped = (): number => {
  stoppedClock()
  return Date.now()
}

const isOut = async (visitor: Visitor): Promise<void> => {
  expect((await visitor.ask('/me')).status).toBe(401)
}

// the stores are shared by the tests of a suite
const fresh = async (store: () => Store, options?: SessionsAppOptions) => {
  const made = await site(store, options)
  for (const user of ['anna', 'sam']) await made.signing.logOutEverywhere(user)
  return made
}

describeEveryOther((store) => {
  describe('C-07 the list of sessions', () => {
    it('M14 has each device, the current one marked, and what each of them is', async () => {
      const s = await fresh(store)
      const began = Date.now()
      const [phone, laptop, other] = [s.visitor(), s.visitor(), s.visitor()]
      // a longer one would make the session too large
      const agent = '"'.repeat(15_000)
      expect((await phone.post('/login', { 'User-Agent': agent })).status).toBe(200)
      await laptop.post('/login')
      await other.post('/login?user=sam')
      const seen = await s.listed(phone)
      expect(seen).toHaveLength(2)
      expect(seen.find(({ current }) => current)).toMatchObject({ label: agent.slice(0, 256), methods: ['other'] })
      expect(seen.find(({ current }) => !current)).not.toHaveProperty('label')
      for (const { signedInAt, lastSeenAt, id } of seen) {
        expect([signedInAt, lastSeenAt].every((at) => at >= began - 1000 && at <= Date.now())).toBe(true)
        expect(id).toMatch(/^[\w-]{22}$/)
      }
      // ended by the other device
      const { id } = seen.find(({ current }) => current)!
      expect((await laptop.post(`/end?of=anna&id=${id}`)).status).toBe(204)
      await isOut(phone)
      await expectUser(laptop, 'anna')
      expect(await s.listed(laptop)).toMatchObject([{ current: true }])
      expect((await laptop.post(`/end?of=anna&id=${id}`)).status).toBe(404)
      // signed out
      await laptop.post('/logout')
      expect(await s.listed(other, 'anna')).toEqual([])
      expect((await laptop.ask('/list')).status).toBe(401)
      // everywhere
      await phone.post('/login')
      await laptop.post('/login')
      expect(await s.listed(other, 'anna')).toHaveLength(2)
      await s.signing.logOutEverywhere('anna')
      expect(await s.listed(other, 'anna')).toEqual([])
      expect(await s.listed(other)).toMatchObject([{ current: true }])
    })

    it('M15 a session that was ended cannot write itself back, nor by a step-up, nor by another id', async () => {
      const s = await fresh(store)
      const visitor = await s.signedIn()
      const [{ id } = { id: '' }] = await s.listed(visitor)
      const copy = visitor.copy()
      const slow = copy.ask('/slow?seen=1', { method: 'POST' })
      await s.waiting()
      // the id stays the same through a step-up
      await visitor.post('/step')
      expect(await s.listed(visitor)).toMatchObject([{ id, methods: ['other', 'totp'] }])
      expect((await visitor.post(`/end?of=anna&id=${id}`)).status).toBe(204)
      s.release()
      await slow
      for (const one of [visitor, copy]) {
        await isOut(one)
        expect((await one.post('/step')).status).toBe(401)
        await isOut(one)
      }
      expect(await s.listed(visitor, 'anna')).toEqual([])
    })

    it.each([
      ['endSession', (s: Awaited<ReturnType<typeof fresh>>) => s.signing.endSession('anna', 'x')],
      ['logOutEverywhere', (s: Awaited<ReturnType<typeof fresh>>) => s.signing.logOutEverywhere('anna')],
    ])('%s forgets the answers of this user that came a moment ago: a copy of one leads nowhere', async (_how, end) => {
      const s = await fresh(store)
      const { finished } = s.host()
      for (const user of ['anna', 'sam']) finished.set(user, { until: Infinity, user })
      await end(s)
      expect([...finished.keys()]).toEqual(['sam'])
    })

    it('M16 a session of another user is not found', async () => {
      const s = await fresh(store)
      const [one, other] = [s.visitor(), s.visitor()]
      await one.post('/login')
      await other.post('/login?user=sam')
      const [{ id } = { id: '' }] = await s.listed(one)
      for (const which of [id, 'x', '']) expect((await other.post(`/end?of=sam&id=${which}`)).status).toBe(404)
      await expectUser(one, 'anna')
    })

    it('a second sign-in in one browser replaces the first in the list', async () => {
      const s = await fresh(store)
      const visitor = await s.signedIn()
      await visitor.post('/login')
      expect(await s.listed(visitor)).toMatchObject([{ current: true }])
    })

    it('M17 an entry that the store has lost ends its sign-in, for it may have been ended', async () => {
      const s = await fresh(store)
      const visitor = await s.signedIn()
      await expectUser(visitor, 'anna')
      s.lose()
      expect(await s.listed(s.visitor(), 'anna')).toEqual([])
      await isOut(visitor)
    })

    it('M17 an entry whose session was lost signs no visitor in, and can be ended', async () => {
      const s = await fresh(store)
      const [visitor, other] = [s.visitor(), s.visitor()]
      s.store.ids.clear()
      await visitor.post('/login')
      const [{ id } = { id: '' }] = await s.listed(visitor)
      for (const key of s.store.ids) await store().end(key, 1000)
      await isOut(visitor)
      await other.post('/login')
      expect(await s.listed(other)).toHaveLength(2)
      expect((await other.post(`/end?of=anna&id=${id}`)).status).toBe(204)
      expect(await s.listed(other)).toMatchObject([{ current: true }])
    })
  })

  describe('C-07 how long a sign-in lasts', () => {
    it('M18 a sign-in may last longer, unused and in all, and no longer than it says; others do not', async () => {
      const s = await fresh(store, { idle: HOUR, absolute: 7 * DAY })
      const start = stopped()
      const [long, unused, short] = [s.visitor(), s.visitor(), s.visitor()]
      for (const one of [long, unused]) await one.post('/long')
      await short.post('/login')
      const after = async (hours: number, visitor: Visitor) => {
        vi.setSystemTime(start + hours * HOUR)
        return (await visitor.ask('/me')).status
      }
      expect([await after(2, long), await after(2, short)]).toEqual([200, 401])
      expect([await after(60, long), await after(72, unused)]).toEqual([200, 401])
      for (let hours = 120; hours < 24 * 30; hours += 60)
        expect([hours, await after(hours, long)]).toEqual([hours, 200])
      expect(await after(24 * 30, long)).toBe(401)
    })
  })
})

describe('C-07 a store of the list', () => {
  it('a store that is down is 503, and a store without lists, or an id that is none, is a TypeError', async () => {
    const s = await site()
    const visitor = await s.signedIn()
    s.store.instead.get = async () => Promise.reject(new Error('down'))
    expect((await visitor.ask('/list')).status).toBe(503)
    expect((await visitor.ask('/me')).status).toBe(503)
    for (const wrong of [7, undefined]) {
      await expect(s.signing.endSession(wrong as never, 'x')).rejects.toThrow(TypeError)
      await expect(s.signing.endSession('anna', wrong as never)).rejects.toThrow(TypeError)
    }
    const { members: _none, ...plain } = memoryStore()
    for (const [name, wrong] of Object.entries({ members: { store: plain }, list: { list: 'yes' } })) {
      const make = () => sessions(new Koa({ keys: [strongKey] }), { loadUser: () => undefined, ...wrong } as never)
      expect(make).toThrow(name)
    }
  })
})

describe('C-07 how long an entry lasts', () => {
  it('longer than its session, which is prolonged before it', async () => {
    const s = await site(undefined, { idle: HOUR })
    const start = stopped()
    const visitor = s.visitor()
    await visitor.post('/login')
    const [{ id } = { id: '' }] = await s.listed(visitor, 'anna')
    const at = (minutes: number) => vi.setSystemTime(start + minutes * 60_000)
    at(29)
    await visitor.post('/basket')
    at(65)
    expect(await s.listed(s.visitor(), 'anna')).toHaveLength(1)
    expect((await s.visitor().post(`/end?of=anna&id=${id}`)).status).toBe(204)
    at(70)
    await isOut(visitor)
  })
})

it('C-07 the list of a program that signs in again and again has no more names than sessions that may be used', async () => {
  const start = stopped()
  const sets = new Set<string>()
  const inner = memoryStore()
  const store: Store = { ...inner, add: (set, ...rest) => (sets.add(set), inner.add(set, ...rest)) }
  const { signedIn, listed } = await site(() => store)
  const names = async () => (await Promise.all([...sets].map(inner.members))).flat().length
  const [one] = [await signedIn(), await signedIn()]
  expect(await names()).toBe(2)
  for (const hours of [15, 30]) {
    vi.setSystemTime(start + hours * HOUR)
    expect((await one.ask('/me')).status).toBe(200)
  }
  expect([await names(), (await listed(one)).length]).toEqual([1, 1])
})

describe('C-07 how long a session lasts', () => {
  it('is no longer than logOutEverywhere is remembered, also if a release makes that time shorter', async () => {
    const store = memoryStore()
    const before = await site(constant(store), { idle: 30 * DAY, absolute: 30 * DAY })
    const start = stopped()
    const visitor = before.visitor()
    await visitor.post('/long')
    const after = await site(constant(store), { idle: DAY, absolute: DAY })
    const late = after.visitor()
    late.cookies.clear()
    for (const [name, value] of visitor.cookies) late.cookies.set(name, value)
    for (const days of [0, 2, 4, 6, 8, 9.5]) {
      vi.setSystemTime(start + days * DAY)
      await late.post('/basket')
      await expectUser(late, 'anna')
    }
    vi.setSystemTime(start + 10.5 * DAY)
    await isOut(late)
  })

  it('is at most as long as logOutEverywhere is remembered', async () => {
    const s = await site(undefined, { idle: 1000, absolute: 1000 })
    s.app.silent = true
    expect((await s.visitor().post('/long')).status).toBe(500)
    expect(String(s.errors.at(-1))).toContain('at most 10 times')
    const just = await site(undefined, { idle: HOUR, absolute: 3 * DAY })
    expect((await just.visitor().post('/long')).status).toBe(200)
  })
})
