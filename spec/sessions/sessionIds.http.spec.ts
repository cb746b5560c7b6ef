/** What the cookie of a session says, who can read it, and that only speed depends on it. */
import fc from 'fast-check'
import Keygrip from 'keygrip'
import type { Context } from 'koa'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { SealedCookie } from '../../src/sessions/SessionCookie.js'
import { randomId } from '../../src/crypto/secrets.js'
import { sessionKey, stampKey } from '../../src/sessions/SessionRecords.js'
import { bind } from '../../src/sessions/SignIn.js'
import { sealedBy } from '../support/sites/sealedBy.js'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  signedInApp,
  strongKey,
} from '../support/sites/sessionsApp.js'

const HOUR = 3_600_000

// What an application reads in a cookie
const readBy = (keys: unknown, value: string, application = 'shop') => {
  const headers = { cookie: `session=${value}` }
  // Safe: nothing else is used of a context
  const ctx = { req: { headers }, request: { req: { headers } } } as unknown as Context
  const cookie = new SealedCookie('session', application, () => keys)
  const read = cookie.read(ctx)
  return { id: read.id, user: cookie.hintOf(read)?.user }
}

describe('the cookie of a session', () => {
  it('says the id and who signed in, if the key is known', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (user) => {
        const id = randomId()
        const value = sealedBy(strongKey, 'shop', id, user)
        expect(value).toMatch(/^[A-Za-z0-9_-]{43}~[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{22}$/)
        expect(readBy([strongKey], value)).toEqual({ id, user })
        expect(readBy(['n'.repeat(40), strongKey], value)).toEqual({ id, user })
      }),
    )
  })

  it('says nothing to others, and to another application', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 20 }), (user) => {
        const value = sealedBy(strongKey, 'shop', randomId(), user)
        const nothing = { id: '', user: undefined }
        for (const keys of [['k'.repeat(40)], new Keygrip(['k'.repeat(40)]), [], undefined, [undefined]]) {
          expect(readBy(keys, value)).toEqual(nothing)
        }
        expect(readBy([strongKey], value, 'shops')).toEqual(nothing)
        expect(Buffer.from(value.split('~')[1] ?? '', 'base64url').includes(user) && user.length > 3).toBe(false)
      }),
    )
  })

  it('has one form, because a release with another one would sign all users out', () => {
    const id = 'A'.repeat(43)
    const value = `${id}~aVtqeN1lnJtuikPkioqeRp2hBOxy.TKkP-wD2FDwOLkkaXjrp3X`
    expect(sealedBy(strongKey, 'shop', id, 'anna')).toBe(value)
    expect(readBy([strongKey], value)).toEqual({ id, user: 'anna' })
  })

  it('is not what it was if any of it is changed', () => {
    const value = sealedBy(strongKey, 'shop', randomId(), 'anna')
    fc.assert(
      fc.property(fc.nat(value.length - 1), fc.constantFrom(...'ABab01-_~.='), (at, letter) => {
        const changed = value.slice(0, at) + letter + value.slice(at + 1)
        if (changed !== value) expect(readBy([strongKey], changed)).toEqual({ id: '', user: undefined })
      }),
    )
  })

  it('has nothing in common with other ones of the same user', () => {
    const made = Array.from({ length: 100 }, () => sealedBy(strongKey, 'shop', randomId(), 'who signs in often'))
    for (const at of [0, 1]) expect(new Set(made.map((value) => value.split('~')[at])).size).toBe(100)
  })

  it('is the same whenever it is given out, and another one for another user', () => {
    const id = randomId()
    expect(sealedBy(strongKey, 'shop', id, 'anna')).toBe(sealedBy(strongKey, 'shop', id, 'anna'))
    const nonces = ['anna', 'bert', undefined].map((user) => sealedBy(strongKey, 'shop', id, user).slice(44, 65))
    expect(new Set(nonces).size).toBe(3)
  })

  it.each([
    ['without a user', undefined],
    ['with a name that is too long for a cookie', 'é'.repeat(65)],
  ])('%s says the id alone', (_how, user) => {
    const id = randomId()
    expect(readBy([strongKey], sealedBy(strongKey, 'shop', id, user))).toEqual({ id, user: undefined })
  })
})

describe('a request of a signed-in user', () => {
  it.each([
    ['', [strongKey]],
    [', also with a cookie of an older key', ['n'.repeat(40), strongKey]],
  ])('is one question of the store, for the session, the stamp and the entry of the list%s', async (_what, keys) => {
    for (const list of [false, true]) {
      const kept = memoryStore()
      const { app, store, one } = await signedInApp(() => kept, { list })
      app.keys = keys
      const asked: Array<ReadonlyArray<string>> = []
      Object.assign(store.instead, { get: (all: ReadonlyArray<string>) => (asked.push(all), kept.get(all)) })
      await expectSignedIn(one, anna)
      expect(asked.map((all) => all.map((key) => key.split('/')[1]))).toEqual([
        list ? ['session', 'stamp', 'sign-in'] : ['session', 'stamp'],
      ])
      expect(asked.flat().every((key) => /^koa-with-auth\/[a-z-]+\/[\w-]{43}$/.test(key))).toBe(true)
    }
  })

  it('belongs to the user in the session, whatever the id says', async () => {
    const kept = memoryStore()
    // so that the cookie is not given out anew, with the user in the session
    const { visitor, signing } = await sessionsApp(() => kept, { name: 'shop', idle: HOUR })
    const id = randomId()
    const auth = bind({ id: 'anna', at: Date.now(), stamp: 'now' }, { keys: [strongKey], name: 'shop', sessionId: id })
    await kept.insert(stampKey('shop', 'anna'), 'now', HOUR)
    await kept.insert(sessionKey(id), JSON.stringify({ auth, _expire: Date.now() + HOUR, _maxAge: HOUR }), HOUR)
    const one = visitor()
    one.cookies.set('session', sealedBy(strongKey, 'shop', id, 'root'))
    await expectSignedIn(one, anna)
    await signing.logOutEverywhere('root')
    await expectSignedIn(one, anna)
    await signing.logOutEverywhere('anna')
    await expectAnonymous(one)
  })

  it('whose identifier is too long for the cookie is two questions', async () => {
    const kept = memoryStore()
    const username = 'a'.repeat(200)
    const { visitor, users, store } = await sessionsApp(() => kept, { list: true })
    users.set(username, { username, isActive: true })
    const one = visitor()
    await one.post(`/login?user=${username}`)
    store.asked.length = 0
    await expectSignedIn(one, { username, isActive: true })
    expect(store.asked).toEqual(['get', 'get'])
  })

  it('R30 is refused if the store has lost the stamp of its user, because a lost stamp may have ended the session', async () => {
    const kept = memoryStore()
    const { visitor, signing } = await sessionsApp(() => kept, { name: 'shop' })
    const [before, after] = [visitor(), visitor()]
    await before.post('/login')
    await signing.logOutEverywhere('anna')
    await kept.end(stampKey('shop', 'anna'), 1)
    await new Promise((resolve) => setTimeout(resolve, 5))
    await expectAnonymous(before)
    // a sign-in makes another stamp, which is not that of the session before
    await after.post('/login')
    await expectSignedIn(after, anna)
    await expectAnonymous(before)
  })
})
