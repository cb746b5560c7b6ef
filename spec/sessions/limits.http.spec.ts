/** How long a session lasts, when it is prolonged, and what counts at the next request. The tests set the clock. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  keptFor,
  sessionsApp,
  signedInApp,
  setCookies,
  type SessionsAppOptions,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() }))
afterEach(() => void vi.useRealTimers())
const pass = (ms: number) => vi.setSystemTime(Date.now() + ms)

const statuses: SessionsAppOptions = { acts: { '/status': (ctx) => (ctx.status = Number(ctx.query['is'])) } }

describeLastingStores((store) => {
  const limits = { idle: HOUR, absolute: 4 * HOUR }

  describe('the idle limit', () => {
    it('ends a session that is not used', async () => {
      const { one } = await signedInApp(store, limits)
      pass(HOUR - MINUTE)
      await expectSignedIn(one.copy(), anna)
      pass(HOUR + MINUTE)
      await expectAnonymous(one)
      expect((await one.ask('/read')).body).toEqual({})
    })

    it('is final once the user signs out or in, also where only the clock was set back', async () => {
      for (const [path, isOver] of [
        ['/me', false],
        ['/logout', true],
        ['/login', true],
      ] as const) {
        const { one, visitor } = await signedInApp(store, { ...limits, list: true })
        const thief = one.copy()
        const [{ id } = { id: '' }] = (await thief.copy().ask('/list')).body as ReadonlyArray<{ readonly id: string }>
        pass(-3 * HOUR)
        await one.post(path)
        await expectAnonymous(thief.copy())
        pass(3 * HOUR)
        await (isOver ? expectAnonymous(thief) : expectSignedIn(thief, anna))
        // nor is it in the list
        expect((await visitor().post(`/end?of=anna&id=${id}`)).status).toBe(isOver ? 404 : 204)
      }
    })

    it('is prolonged when a session is used, but only after half of it', async () => {
      const { store: watched, one } = await signedInApp(store, limits)
      watched.asked.length = 0
      pass(29 * MINUTE)
      expect(setCookies(await one.ask('/me'))).toEqual([])
      expect(watched.asked).toEqual(['get'])
      pass(2 * MINUTE)
      const prolonged = await one.ask('/me')
      expect(setCookies(prolonged)).toHaveLength(1)
      expect(Math.abs(keptFor(prolonged) - HOUR)).toBeLessThanOrEqual(1000)
      expect(watched.asked).toEqual(['get', 'get', 'update'])
      expect(setCookies(await one.ask('/me'))).toEqual([])
      pass(59 * MINUTE)
      await expectSignedIn(one, anna)
    })

    it.each([
      ['400', 'GET', '/status?is=400', {}],
      ['401', 'GET', '/super', {}],
      ['403', 'POST', '/me', { 'Sec-Fetch-Site': 'cross-site' }],
      ['404', 'GET', '/nowhere', {}],
      ['500', 'POST', '/throw', {}],
    ])('is not prolonged by a response %s', async (status, method, path, headers) => {
      const { store: watched, one } = await signedInApp(store, { ...limits, ...statuses })
      pass(31 * MINUTE)
      watched.asked.length = 0
      const answer = await one.ask(path, { method, headers })
      expect([answer.status, setCookies(answer), watched.asked]).toEqual([Number(status), [], ['get']])
      pass(30 * MINUTE)
      await expectAnonymous(one)
    })

    it('is prolonged by a public operation, by a change, and by a redirect', async () => {
      const { one } = await signedInApp(store, { ...limits, ...statuses })
      for (const act of [
        () => one.ask('/open'),
        () => one.post('/set?basket=pear'),
        () => one.post('/status?is=303'),
      ]) {
        pass(40 * MINUTE)
        expect(setCookies(await act())).toHaveLength(1)
      }
      pass(40 * MINUTE)
      await expectSignedIn(one, anna)
    })
  })

  describe('R17 a shortened idle limit', () => {
    const before = { idle: 4 * HOUR, absolute: 24 * HOUR }
    // The operator restarts with other limits
    const restarted = async (
      pausing: number,
      options: SessionsAppOptions = { idle: HOUR, absolute: 24 * HOUR },
      path = '/login',
    ) => {
      const old = (await sessionsApp(store, before)).visitor()
      await old.post(path)
      pass(pausing)
      return (await sessionsApp(store, options)).visitor(old.cookies)
    }

    it('ends a session that was not used for that time, with and without a sign-in', async () => {
      for (const path of ['/login', '/set?basket=pear']) {
        const one = await restarted(HOUR + MINUTE, undefined, path)
        await expectAnonymous(one)
        expect((await one.ask('/read')).body).toEqual({})
      }
    })

    it('counts from the last use: a session in use continues, and is prolonged by the new limit', async () => {
      const one = await restarted(40 * MINUTE)
      expect(setCookies(await one.ask('/me'))).toHaveLength(1)
      pass(59 * MINUTE)
      await expectSignedIn(one.copy(), anna)
      pass(2 * HOUR)
      await expectAnonymous(one)
    })

    it('may be the absolute limit, too', async () => {
      await expectAnonymous(await restarted(30 * MINUTE, { idle: 10 * MINUTE, absolute: 20 * MINUTE }))
    })

    it('may also become longer, which counts from the next time that the session is prolonged', async () => {
      const one = await restarted(3 * HOUR, { idle: 10 * HOUR, absolute: 24 * HOUR })
      await expectSignedIn(one, anna)
      pass(9 * HOUR)
      await expectSignedIn(one, anna)
    })
  })

  describe('the absolute limit', () => {
    it('ends a session from a time when the clock was that much ahead, and no other', async () => {
      const acts: SessionsAppOptions['acts'] = {
        '/short': (ctx, { logIn }) => logIn(ctx, anna, { idle: 4 * HOUR, absolute: HOUR }),
      }
      const { visitor } = await sessionsApp(store, { ...limits, acts })
      for (const [path, ahead, isOver] of [
        ['/login', 30 * MINUTE, false],
        ['/login', 365 * 24 * HOUR, true],
        ['/short', 30 * MINUTE, false],
        ['/short', 2 * HOUR, true],
      ] as const) {
        const one = visitor()
        pass(ahead)
        await one.post(path)
        pass(-ahead)
        await (isOver ? expectAnonymous(one) : expectSignedIn(one, anna))
      }
    })

    it('ends a session, however much it is used; a new sign-in begins again', async () => {
      const { one } = await signedInApp(store, limits)
      for (let time = 0; time < 7; time++) {
        pass(34 * MINUTE)
        await expectSignedIn(one, anna)
      }
      const before = one.copy()
      pass(3 * MINUTE)
      await expectAnonymous(one)
      expect((await one.ask('/read')).body).toEqual({})
      await one.post('/login')
      await expectSignedIn(one, anna)
      await expectAnonymous(before)
    })
  })

  describe('what counts at the next request', () => {
    it('the user is loaded at each guarded request, and at no other', async () => {
      const { loaded, one } = await signedInApp(store)
      for (const path of ['/open', '/read', '/nowhere']) await one.ask(path)
      expect(loaded()).toBe(0)
      for (let at = 1; at <= 3; at++) {
        await one.ask('/me')
        expect(loaded()).toBe(at)
      }
    })
  })

  describe('a second sign-in', () => {
    it('at the same time in one browser makes two separate sessions', async () => {
      const { visitor } = await sessionsApp(store)
      const one = visitor()
      await one.post('/set?basket=pear')
      const before = one.copy()
      const tabs = [one.copy(), one.copy(), one.copy()]
      await Promise.all(tabs.map((tab) => tab.post('/login')))
      expect(new Set(tabs.map(({ cookies }) => cookies.get('session'))).size).toBe(3)
      for (const tab of tabs) await expectSignedIn(tab, anna)
      await expectAnonymous(before)
    })
  })

  describe('logOutEverywhere', () => {
    it('ends five sessions; later sign-ins and other users are not affected', async () => {
      // The store is shared, so this test has its own user
      const { visitor, users } = await sessionsApp(store)
      users.set('bo', { username: 'bo' })
      const browsers = Array.from({ length: 5 }, () => visitor())
      for (const browser of browsers) await browser.post('/login?user=bo')
      const other = visitor()
      await other.post('/login?user=sam')
      expect((await browsers[0]!.post('/everywhere')).status).toBe(200)
      for (const browser of browsers) await expectAnonymous(browser)
      await expectSignedIn(other, { username: 'sam', isStaff: true })
      for (const round of [1, 2]) {
        const back = visitor()
        await back.post('/login?user=bo')
        await expectSignedIn(back, { username: 'bo' })
        expect((await back.post('/everywhere')).status, `round ${round}`).toBe(200)
        await expectAnonymous(back)
        for (const browser of browsers) await expectAnonymous(browser)
      }
    })

    it.each([undefined, null, '', 7, {}])('with %j is a TypeError', async (id) => {
      const { signing, store: watched } = await sessionsApp(store)
      await expect(signing.logOutEverywhere(id as never)).rejects.toThrow(TypeError)
      expect(watched.asked).toEqual([])
    })
  })

  it('a session that is too large is refused, and the one before stays', async () => {
    const { errors, one } = await signedInApp(store, { maxLength: 500 })
    expect((await one.post(`/set?basket=${'x'.repeat(200)}`)).status).toBe(200)
    const answer = await one.post(`/set?basket=${'y'.repeat(500)}`)
    expect([answer.status, answer.body, setCookies(answer)]).toEqual([500, 'Internal Server Error', []])
    expect(String(errors[0])).toMatch(/^RangeError: the session is \d+ characters long; at most 500 are kept$/)
    await expectSignedIn(one, anna)
    expect((await one.ask('/read')).body).toMatchObject({ basket: 'x'.repeat(200) })
  })

  it.each([
    { kind: 'Map', value: new Map([['a', 1]]) },
    { kind: 'Set', value: new Set([1]) },
    { kind: 'WeakMap', value: new WeakMap() },
    { kind: 'Promise', value: Promise.resolve(1) },
    { kind: 'RegExp', value: /a/ },
    { kind: 'Error', value: new RangeError('a') },
  ])('a $kind, whose content JSON drops, is refused by the name of its key', async ({ kind, value }) => {
    const { errors, one } = await signedInApp(store, {
      acts: { '/keep': (ctx) => Object.assign(ctx['session'] as object, { basket: [{ sizes: value }] }) },
    })
    const answer = await one.post('/keep')
    expect([answer.status, setCookies(answer)]).toEqual([500, []])
    expect(errors.map(String)).toEqual([
      `TypeError: ctx.session: "sizes" is a ${kind}, which JSON empties; keep strings, numbers, arrays and objects`,
    ])
    await expectSignedIn(one, anna)
    expect((await one.ask('/read')).body).not.toHaveProperty('basket')
  })
})
