/**
 * D-S5: a store that fails, hangs, or returns a failure as a value is unavailable. No user becomes anonymous because of
 * it.
 */
import { Readable } from 'node:stream'
import type { Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { expectDenied, type Answer } from '../support/models/behavior.js'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  idIn,
  signedInApp,
  sessionsApp,
  setCookies,
  type SessionsApp,
  type SessionsAppOptions,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores, describeEveryOther } from '../support/stores/sessionStores.js'
import { stoppedClock } from '../support/runs/clock.js'
import { expectUser } from '../support/sites/signedIn.js'

const TIMEOUT = 2000

const faults: Readonly<Record<string, () => never>> = {
  rejects: () => Promise.reject(new Error('ECONNREFUSED')) as never,
  'rejects with nothing': () => Promise.reject(undefined) as never,
  throws: () => {
    throw new Error('not connected')
  },
  'never settles': () => new Promise(() => {}) as never,
  'answers an Error': () => Promise.resolve(new Error('LOADING')) as never,
}

const start = async (store: () => Store, options: SessionsAppOptions = {}) => {
  const site = await sessionsApp(store, { timeout: TIMEOUT, ...options })
  const user = site.visitor()
  await user.post('/login')
  return { site, user }
}

const breaking = (site: SessionsApp, methods: ReadonlyArray<keyof Store>, fault: () => never): void => {
  for (const method of methods) Object.assign(site.store.instead, { [method]: fault })
}

const fixing = (site: SessionsApp): void => {
  for (const method of Object.keys(site.store.instead)) Object.assign(site.store.instead, { [method]: undefined })
}

// No operation ran, or what it did was not kept
const expectUnavailable = (answer: Answer, ran = 0): void => {
  expect(answer.seen).toHaveLength(ran)
  expectDenied({ ...answer, seen: [] }, 503, [])
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  expect(setCookies(answer)).toEqual([])
}

const everything = ['get', 'insert', 'update', 'end', 'add', 'members'] as const

describeLastingStores((store) => {
  describe.each(Object.entries(faults))('D-S5 a store that %s', (_how, fault) => {
    it('guarded operations are 503 in time and public ones 200, without a cookie; later the same cookie is valid again', async () => {
      const { site, user } = await start(store)
      breaking(site, everything, fault)
      expectUnavailable(await user.ask('/me'))
      expectUnavailable(await user.ask('/super'))
      expectUnavailable(await user.post('/me'))
      const open = await user.ask('/open')
      expect([open.status, open.seen.length, setCookies(open)]).toEqual([200, 1, []])
      expect(site.loaded()).toBe(0)
      fixing(site)
      await expectSignedIn(user, anna)
    })

    it('a request without a cookie, or with a forged one, is a 401 as usual', async () => {
      const { site, user } = await start(store)
      breaking(site, everything, fault)
      await expectAnonymous(site.visitor())
      const forger = user.copy()
      forger.cookies.set('session', `${idIn(user.cookies.get('session'))}~.${'A'.repeat(22)}`)
      await expectAnonymous(forger)
    })

    it('no user is signed in or out: 503, and nothing has changed', async () => {
      const { site, user } = await start(store)
      breaking(site, everything, fault)
      expectUnavailable(await user.post('/logout'))
      expectUnavailable(await user.post('/login?user=root'))
      const stranger = site.visitor()
      expectUnavailable(await stranger.post('/login'))
      expectUnavailable(await user.post('/everywhere'))
      fixing(site)
      await expectSignedIn(user, anna)
      await expectAnonymous(stranger)
    })

    it('a change of the session is a 503, and nothing of it is kept', async () => {
      const { site, user } = await start(store)
      breaking(site, everything, fault)
      expectUnavailable(await user.post('/set?basket=pear'), 1)
      expectUnavailable(await site.visitor().post('/set?basket=pear'), 1)
      fixing(site)
      expect(Object.keys((await user.ask('/read')).body as object)).toEqual(['auth'])
    })
  })

  describe.each(['rejects', 'never settles', 'answers an Error'])('D-S5 one method of a store only %s', (how) => {
    const fault = faults[how]!

    it('insert: no cookie is sent for a session that was not stored', async () => {
      const { site } = await start(store)
      const stranger = site.visitor()
      breaking(site, ['insert'], fault)
      expectUnavailable(await stranger.post('/login'))
      expect(stranger.header()).toBe('')
    })

    it('end: a sign-out is a 503, and can be repeated', async () => {
      const { site, user } = await start(store)
      breaking(site, ['end'], fault)
      const thief = user.copy()
      expectUnavailable(await user.post('/logout'))
      expectUnavailable(await user.post('/login?user=root'))
      await expectSignedIn(user, anna)
      fixing(site)
      expect((await user.post('/logout')).status).toBe(200)
      await expectAnonymous(thief)
    })

    it('update: a change and signing out everywhere are a 503; a session that cannot be prolonged still works', async () => {
      const clock = stoppedClock()
      const { site, user } = await start(store, { idle: 3_600_000 })
      breaking(site, ['update'], fault)
      expectUnavailable(await user.post('/set?basket=pear'), 1)
      expectUnavailable(await user.post('/everywhere'))
      clock.move(0.51 * 3_600_000)
      const answer = await user.ask('/me')
      expect([answer.status, setCookies(answer)]).toEqual([200, []])
      expect(site.store.asked.at(-1)).toBe('update')
    })

    it('get: it is not known whether the user was signed out everywhere, so 503', async () => {
      const { site, user } = await start(store)
      breaking(site, ['get'], fault)
      expectUnavailable(await user.ask('/me'))
      expectUnavailable(await site.visitor().post('/login'))
      fixing(site)
      await expectSignedIn(user, anna)
    })
  })

  describe('D-S5 an operation that catches the failure', () => {
    const acts: SessionsAppOptions['acts'] = {
      '/in': (ctx, { logIn }) => logIn(ctx, anna).catch(() => Object.assign(ctx['session'] as object, { a: 1 })),
    }
    it.each([
      ['a sign-in', '/in', 'rejects'],
      ['a sign-in', '/in', 'never settles'],
      ['an end by hand', '/drop', 'rejects'],
      ['an end by hand', '/drop', 'never settles'],
    ])('of %s (%s) in a store that %s is a 503 all the same', async (_what, path, how) => {
      const { site, user } = await start(store, { acts })
      breaking(site, everything, faults[how]!)
      expectUnavailable(await user.post(path))
      fixing(site)
      await expectSignedIn(user, anna)
    })
  })

  it('D-S5 a stream that was to be the body is closed if the change was not kept', async () => {
    let stream: Readable | undefined
    const { site, user } = await start(store, {
      acts: {
        '/stream': (ctx) => {
          Object.assign(ctx['session'] as object, { a: 1 })
          ctx.body = stream = new Readable({ read: () => {} })
        },
      },
    })
    breaking(site, ['update'], faults['rejects']!)
    expectUnavailable(await user.ask('/stream'))
    expect(stream?.destroyed).toBe(true)
  })

  it('D-S5 if the operation fails, too, its own failure is the response', async () => {
    const { site, user } = await start(store)
    breaking(site, everything, faults['rejects']!)
    const answer = await user.post('/throw?basket=pear')
    expect([answer.status, answer.body]).toEqual([500, 'Internal Server Error'])
    expect(site.errors.map(String)).toEqual(['Error: after a change'])
  })
})

interface Own {
  regenerate: (callback?: () => void) => Promise<void>
  save: () => Promise<void>
  manuallyCommit: () => Promise<void>
}

describeEveryOther((store) => {
  describe('C-09 while the session cannot be read', () => {
    const ways: Readonly<Record<string, (session: Own) => unknown>> = {
      regenerate: (session) => session.regenerate(),
      'regenerate with a callback': (session) => new Promise<void>((resolve) => void session.regenerate(resolve)),
      save: (session) => session.save(),
      manuallyCommit: (session) => session.manuallyCommit(),
    }
    const cases = Object.keys(ways).flatMap((way) => [false, true].map((isSwallowed) => ({ way, isSwallowed })))
    it.each(cases)('$way is 503 without a cookie; swallowed: $isSwallowed', async ({ way, isSwallowed }) => {
      const { one: visitor, ...site } = await signedInApp(store, {
        acts: {
          '/change': (ctx) => {
            const change = Promise.resolve(ways[way]!(ctx['session'] as unknown as Own))
            return isSwallowed ? change.catch(() => undefined) : change
          },
        },
      })
      site.store.instead.get = async () => Promise.reject(new Error('down'))
      const answer = await visitor.post('/change')
      expect([answer.status, setCookies(answer)]).toEqual([503, []])
      delete site.store.instead.get
      await expectUser(visitor, 'anna')
    })
  })
})
