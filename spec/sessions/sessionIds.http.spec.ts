/** What the id of a session says, who can read it, and that only speed depends on it. */
import fc from 'fast-check'
import Keygrip from 'keygrip'
import { memoryStore } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { digestOf } from '../../src/sessions/SessionStore.js'
import { sessionIds, bind } from '../../src/sessions/SignIn.js'
import { expectAnonymous, expectSignedIn, sessionsApp, strongKey } from '../support/sites/sessionsApp.js'

const anna = { username: 'anna', isActive: true }
const HOUR = 3_600_000
const ids = sessionIds(() => [strongKey])

describe('an id that was made at a sign-in', () => {
  it('says who signed in, if the first key is known', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }), (user) => {
        const id = ids.made(user)
        expect(id).toMatch(/^[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]+$/)
        expect(ids.userOf(id)).toBe(user)
      }),
    )
  })

  it('says nothing right to others', () => {
    // With another key the result is random, so a name of one letter would be read by chance
    fc.assert(
      fc.property(fc.string({ minLength: 12, maxLength: 20 }), (user) => {
        expect(sessionIds(() => new Keygrip(['k'.repeat(40)])).userOf(ids.made(user))).not.toBe(user)
      }),
    )
  })

  it('has nothing in common with other ids of the same user', () => {
    const made = Array.from({ length: 100 }, () => ids.made('a user who signs in often'))
    for (const at of [0, 1]) expect(new Set(made.map((id) => id.split('.')[at])).size).toBe(100)
  })

  it.each([
    ['without a user', undefined],
    ['with a name that is too long for a cookie', 'é'.repeat(65)],
  ])('%s says nothing', (_how, user) => {
    const id = ids.made(user)
    expect(id).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(ids.userOf(id)).toBeUndefined()
  })

  it.each(['', '.', 'short.AAAA', `${'A'.repeat(43)}.`, `${'A'.repeat(43)}.%%%%`])('%j says nothing', (id) => {
    expect(ids.userOf(id)).toBeUndefined()
  })
})

describe('a request of a signed-in user', () => {
  it('reads the session and the mark at the same time', async () => {
    const kept = memoryStore()
    const { visitor, store } = await sessionsApp(() => kept)
    const one = visitor()
    await one.post('/login')
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
    expect(store.asked).toEqual(['read', 'markOf'])
  })

  it('is served with an id of an older key, and logOutEverywhere ends its session', async () => {
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
    const { visitor, signing } = await sessionsApp(() => kept, { name: 'shop' })
    const id = ids.made('root')
    const auth = bind({ id: 'anna', at: Date.now(), mark: '' }, { keys: [strongKey], name: 'shop', sessionId: id })
    await kept.insert(digestOf(id), JSON.stringify({ auth, _expire: Date.now() + HOUR, _maxAge: HOUR }), HOUR)
    const one = visitor()
    one.cookies.set('session', id)
    one.cookies.set('session.sig', new Keygrip([strongKey]).sign(`session=${id}`))
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
