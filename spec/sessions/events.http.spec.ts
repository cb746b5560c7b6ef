/** Records of sign-ins and sign-outs: when they are published, what they contain, and which session they are about. */
import type { Context } from 'koa'
import { authSettings } from 'koa-with-auth'
import { endsSession, on, type SignedInEvent, type SignedOutEvent, type SessionDigest } from 'koa-with-auth/events'
import { sessionDigest, type Signing } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  at,
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  signedInApp,
  type SessionsAppOptions,
  type Visitor,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'
import { schemaOf } from '../support/runs/eventRecords.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

const [inSchema, outSchema] = [schemaOf('signed-in'), schemaOf('signed-out')]

const digest = expect.stringMatching(/^[\w-]{43}$/) as string

let ins: SignedInEvent[] = []
let outs: SignedOutEvent[] = []
const ends: Array<() => void> = []
beforeEach(() => {
  ins = []
  outs = []
  ends.push(
    on('signed-in', (record) => ins.push(record)),
    on('signed-out', (record) => outs.push(record)),
  )
})
afterEach(() => {
  for (const end of ends.splice(0)) end()
  vi.useRealTimers()
  for (const record of ins) expect(inSchema(record), JSON.stringify(inSchema.errors)).toBe(true)
  for (const record of outs) expect(outSchema(record), JSON.stringify(outSchema.errors)).toBe(true)
})

/** `/digests`: what an operation remembers with a socket. */
const own: SessionsAppOptions = { name: 'shop', acts: { '/digests': (ctx) => (ctx.body = sessionDigest(ctx) ?? {}) } }

const app = (store?: () => Store, options: Parameters<typeof sessionsApp>[1] = {}) =>
  sessionsApp(store, { ...own, ...options })

const signedIn = (...[store, options]: Parameters<typeof app>) => signedInApp(store, { ...own, ...options })

const digestsOf = async (visitor: Visitor) => (await visitor.ask('/digests')).body as SessionDigest

describeLastingStores((store) => {
  describe('the record of a sign-in', () => {
    it('is one, frozen, about the session that the visitor then has', async () => {
      const { one } = await signedIn(store)
      const signIn = await digestsOf(one)
      expect(ins).toStrictEqual([{ application: 'shop', user: digest, session: digest }])
      expect(ins[0]).toMatchObject(signIn)
      expect(Object.isFrozen(ins[0])).toBe(true)
      expect(outs).toStrictEqual([])
      await expectSignedIn(one, { username: 'anna', isActive: true })
      expect(ins).toHaveLength(1)
    })

    it('of two visitors has the same user and two sessions; in another application it has another user', async () => {
      const { visitor } = await app(store)
      await visitor().post('/login')
      await visitor().post('/login')
      await (await app(store, { name: 'admin' })).visitor().post('/login')
      const [first, second, other] = ins
      expect(second?.user).toBe(first?.user)
      expect(second?.session).not.toBe(first?.session)
      expect([other?.application, other?.user === first?.user]).toStrictEqual(['admin', false])
    })
  })

  describe('the record of a sign-out', () => {
    it.each([
      ['logOut', '/logout', 'logOut'],
      ['session = null', '/drop', 'logOut'],
      ['session = {}', '/empty', 'logOut'],
      ['a new id', '/renew', 'renewed'],
      ['another sign-in', '/login?user=sam', 'renewed'],
    ])('by %s is one, frozen, about this session only', async (_how, path, reason) => {
      const { visitor } = await app(store)
      const [one, two] = [visitor(), visitor()]
      await one.post('/login')
      await two.post('/login')
      const [first, second] = [await digestsOf(one), await digestsOf(two)]
      expect((await one.post(path)).status).toBe(200)
      expect(outs).toStrictEqual([{ application: 'shop', reason, ...first }])
      const [record] = outs
      expect(Object.isFrozen(record)).toBe(true)
      expect(record && endsSession(record, first)).toBe(true)
      expect(record && endsSession(record, second)).toBe(false)
    })

    it('everywhere is about all sessions of the user, and no others', async () => {
      const { visitor } = await app(store)
      const [one, two, sam] = [visitor(), visitor(), visitor()]
      await one.post('/login')
      await two.post('/login')
      await sam.post('/login?user=sam')
      const [first, second, other] = [await digestsOf(one), await digestsOf(two), await digestsOf(sam)]
      expect((await one.post('/everywhere')).status).toBe(200)
      expect(outs).toStrictEqual([{ application: 'shop', reason: 'logOutEverywhere', user: first.user }])
      // As another process gets it
      const sent = JSON.parse(JSON.stringify(outs[0])) as SignedOutEvent
      expect([first, second, other].map((signIn) => endsSession(sent, signIn))).toStrictEqual([true, true, false])
    })

    it('everywhere in another process is published once, when a request of the session shows it', async () => {
      const here = await app(store)
      const there = await app(store)
      const one = here.visitor()
      await one.post('/login')
      const signIn = await digestsOf(one)
      await there.visitor(one.cookies).post('/everywhere')
      outs = []
      await expectAnonymous(one)
      await expectAnonymous(one)
      expect(outs).toStrictEqual([{ application: 'shop', reason: 'logOutEverywhere', ...signIn }])
    })
  })

  it.each([
    ['idle', 70, { idle: 60 * MINUTE, absolute: 9 * HOUR }],
    ['absolute', 40, { idle: 60 * MINUTE, absolute: 60 * MINUTE }],
  ] as const)(
    'the end of a session by expiry (%s) is published once, when a request shows it',
    async (reason, idleFor, options) => {
      const kept = store()
      const lax = (await app(() => kept, { idle: 9 * HOUR, absolute: 9 * HOUR })).visitor()
      await lax.post('/login')
      const signIn = await digestsOf(lax)
      const begun = Date.now()
      vi.useFakeTimers({ toFake: ['Date'], now: begun + 40 * MINUTE })
      await lax.post('/set?basket=pear')
      // The store keeps it longer than this application allows
      const strict = (await app(() => kept, options)).visitor(lax.cookies)
      expect(await digestsOf(strict)).toStrictEqual(signIn)
      vi.setSystemTime(begun + (40 + idleFor) * MINUTE)
      await expectAnonymous(strict)
      await expectAnonymous(strict)
      expect(outs).toStrictEqual([{ application: 'shop', reason, ...signIn }])
    },
  )
})

describe('nothing is published', () => {
  it.each<[string, number, (ctx: Context, signing: Signing<{ username: string }>) => unknown]>([
    ['is reverted because the operation threw', 500, () => Promise.reject(new Error('afterwards'))],
    ['the same request ended', 200, (ctx, { logOut }) => logOut(ctx)],
  ])('for a sign-in that %s', async (_how, status, act) => {
    const { visitor } = await app(undefined, {
      below: (koa, signing) => {
        koa.silent = true
        koa.use(at('/both', (ctx) => signing.logIn(ctx, { username: 'anna' }).then(() => act(ctx, signing))))
      },
    })
    const one = visitor()
    expect((await one.post('/both')).status).toBe(status)
    await expectAnonymous(one)
    expect([ins, outs]).toStrictEqual([[], []])
  })

  it.each(['end', 'get'] as const)('during an outage (%s)', async (method) => {
    const { one, store } = await signedIn()
    ins = []
    Object.assign(store.instead, { [method]: () => Promise.reject(new Error('down')) })
    expect((await one.post('/logout')).status).toBe(503)
    expect((await one.post('/login')).status).toBe(503)
    expect([ins, outs]).toStrictEqual([[], []])
  })

  it('for a forged record, a sign-out without a session, or a refused sign-in from another site', async () => {
    const kept = memoryStore()
    const { visitor } = await app(() => kept)
    const one = visitor()
    await one.post('/set?basket=pear')
    await one.post('/logout')
    await visitor().post('/logout')
    expect((await visitor().post('/login', { 'Sec-Fetch-Site': 'cross-site' })).status).toBe(403)
    expect([ins, outs]).toStrictEqual([[], []])
  })
})

describe('the content of a record', () => {
  it('is no credential: no id of a session, no key of the store, no user name', async () => {
    const { visitor, store } = await app()
    const one = visitor()
    const cookies: string[] = []
    for (const path of ['/login', '/login?user=sam', '/renew', '/logout', '/login', '/everywhere']) {
      await one.post(path)
      cookies.push(...one.cookies.values())
    }
    const text = JSON.stringify([ins, outs])
    expect(ins.length + outs.length).toBeGreaterThan(5)
    for (const secret of [...cookies, ...store.ids, 'anna', 'sam']) expect(text).not.toContain(secret)
  })

  it('is the subject, if the setting returns one', async () => {
    const { visitor } = await app(undefined, {
      below: (koa) => koa.use(authSettings({ events: { subject: (user) => (user as { username: string }).username } })),
    })
    await visitor().post('/login')
    expect(ins).toStrictEqual([{ application: 'shop', user: digest, session: digest, subject: 'anna' }])
  })
})

describe('sessionDigest', () => {
  it('returns nothing without a session, after a sign-out, in an outage, or without sessions(app)', async () => {
    const { visitor, store } = await app()
    const one = visitor()
    expect(await digestsOf(one)).toStrictEqual({})
    await one.post('/set?basket=pear')
    expect(await digestsOf(one)).toStrictEqual({})
    await one.post('/login')
    expect(await digestsOf(one)).toStrictEqual({ user: digest, session: digest })
    Object.assign(store.instead, { get: () => Promise.reject(new Error('down')) })
    expect(await digestsOf(one)).toStrictEqual({})
    Object.assign(store.instead, { get: undefined })
    await one.post('/logout')
    expect(await digestsOf(one)).toStrictEqual({})
  })

  it('returns the same for a session with a new id, and for a user with a new session', async () => {
    const { one } = await signedIn()
    const first = await digestsOf(one)
    await one.post('/renew')
    const second = await digestsOf(one)
    expect(second.user).toBe(first.user)
    expect(second.session).not.toBe(first.session)
    await one.post('/logout')
    expect(outs.map(({ session }) => session)).toStrictEqual([first.session, second.session])
  })
})
