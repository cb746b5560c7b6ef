/** What the cookie of a session says, who can read it, and that only speed depends on it. */
import fc from 'fast-check'
import Keygrip from 'keygrip'
import type { Context } from 'koa'
import { memoryStore } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { sealedCookie } from '../../src/sessions/SessionCookie.js'
import { digest, randomId } from '../../src/crypto/secrets.js'
import { bind } from '../../src/sessions/SignIn.js'
import { sealedBy } from '../support/sites/sealedBy.js'
import { expectAnonymous, expectSignedIn, sessionsApp, strongKey } from '../support/sites/sessionsApp.js'

const anna = { username: 'anna', isActive: true }
const HOUR = 3_600_000

// What an application reads in a cookie
const readBy = (keys: unknown, value: string, application = 'shop') => {
  const headers = { cookie: `session=${value}` }
  // Safe: nothing else is used of a context
  const ctx = { req: { headers }, request: { req: { headers } } } as unknown as Context
  const cookie = sealedCookie('session', application, () => keys)
  const read = cookie.read(ctx)
  return { id: read.id, user: cookie.userOf(read) }
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
    const value = `${id}~8F8QFigzQgrnH0ejjpaclkV-20I.8NYdIE5RE4xVVuK0SeLS1K`
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

  it.each(['', '~', '~~', 'short~AAAA', `${'A'.repeat(43)}~`, `${'A'.repeat(43)}~%%%%`, `~${'A'.repeat(43)}`])(
    '%j says nothing',
    (value) => {
      expect(readBy([strongKey], value)).toEqual({ id: '', user: undefined })
    },
  )
})

describe('an id', () => {
  it('is made of 32 random bytes, and is no other one', () => {
    const made = Array.from({ length: 1000 }, randomId)
    for (const id of made) expect(Buffer.from(id, 'base64url')).toHaveLength(32)
    expect(new Set(made).size).toBe(1000)
  })
})

describe('a request of a signed-in user', () => {
  it.each([
    ['', [strongKey]],
    [', also with a cookie of an older key', ['n'.repeat(40), strongKey]],
  ])('reads the session and the mark at the same time%s', async (_what, keys) => {
    const kept = memoryStore()
    const { app, visitor, store } = await sessionsApp(() => kept)
    const one = visitor()
    await one.post('/login')
    app.keys = keys
    // The read of the session waits until the mark was requested, so two round trips would hang
    let asked = (): void => undefined
    const marked = new Promise<void>((resolve) => (asked = resolve))
    Object.assign(store.instead, {
      markOf: (user: string) => {
        asked()
        return kept.markOf(user)
      },
      read: async (id: string) => {
        await marked
        return kept.read(id)
      },
    })
    store.asked.length = 0
    await expectSignedIn(one, anna)
    expect(store.asked.filter((name) => /^(?:read|markOf)$/.test(name))).toEqual(['read', 'markOf'])
  })

  it('is served with a cookie of an older key, and logOutEverywhere ends its session', async () => {
    const { app, visitor, store } = await sessionsApp()
    const one = visitor()
    await one.post('/login')
    app.keys = ['n'.repeat(40), strongKey]
    store.asked.length = 0
    await expectSignedIn(one, anna)
    expect(store.asked.filter((name) => name === 'markOf').length).toBeGreaterThan(0)
    const two = one.copy()
    await one.post('/everywhere')
    await expectAnonymous(two)
  })

  it('belongs to the user in the session, whatever the id says', async () => {
    const kept = memoryStore()
    // so that the cookie is not given out anew, with the user in the session
    const { visitor, signing } = await sessionsApp(() => kept, { name: 'shop', idle: HOUR })
    const id = randomId()
    const auth = bind({ id: 'anna', at: Date.now(), mark: '' }, { keys: [strongKey], name: 'shop', sessionId: id })
    await kept.insert(digest(id), JSON.stringify({ auth, _expire: Date.now() + HOUR, _maxAge: HOUR }), HOUR)
    const one = visitor()
    one.cookies.set('session', sealedBy(strongKey, 'shop', id, 'root'))
    await expectSignedIn(one, anna)
    await signing.logOutEverywhere('root')
    await expectSignedIn(one, anna)
    await signing.logOutEverywhere('anna')
    await expectAnonymous(one)
  })

  it('whose session has ended is refused, even if the mark cannot be read', async () => {
    const { visitor, store } = await sessionsApp()
    const one = visitor()
    await one.post('/login')
    const copy = one.copy()
    await one.post('/logout')
    Object.assign(store.instead, { markOf: () => Promise.reject(new Error('no answer')) })
    await expectAnonymous(copy)
  })
})
