/**
 * D-S1 to D-S4 on persistent stores: an attacker knows an id from before the sign-in, or has kept a cookie from before
 * the sign-out.
 */
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { sessionKey } from '../../src/sessions/SessionRecords.js'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  signedInApp,
  idIn,
  setCookies,
  type SessionsAppOptions,
  type Visitor,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'
import { stoppedClock } from '../support/runs/clock.js'

const idOf = ({ cookies }: Visitor): string => idIn(cookies.get('session'))

describeLastingStores((store) => {
  describe('D-S1 fixation', () => {
    it('the cookie from before the sign-in is anonymous afterwards, and the id is new', async () => {
      const { visitor } = await sessionsApp(store)
      const attacker = visitor()
      await attacker.post('/set?basket=pear')
      const victim = attacker.copy()
      expect((await victim.post('/login')).status).toBe(200)
      expect(idOf(victim)).not.toBe(idOf(attacker))
      await expectSignedIn(victim, anna)
      await expectAnonymous(attacker)
      expect((await attacker.ask('/read')).body).toEqual({})
    })

    it('an id that the store does not know is not used', async () => {
      const { store: watched, one: first } = await signedInApp(store)
      const known = first.copy()
      await first.post('/logout')
      const before = idOf(known)
      expect((await known.post('/set?basket=pear')).status).toBe(200)
      expect(idOf(known)).not.toBe(before)
      await known.post('/login')
      expect(idOf(known)).not.toBe(before)
      expect(watched.asked.filter((method) => method === 'insert').length).toBe(3)
    })

    it('the store gets digests of ids, never an id', async () => {
      const { visitor, store: watched } = await sessionsApp(store)
      const one = visitor()
      await one.post('/set?basket=pear')
      const before = idOf(one)
      await one.post('/login')
      await one.post('/set?basket=plum')
      const after = idOf(one)
      await one.post('/logout')
      expect([...watched.ids].sort()).toEqual([before, after].map(sessionKey).sort())
      expect(sessionKey('id')).toBe(`koa-with-auth/session/${createHash('sha256').update('id').digest('base64url')}`)
    })
  })

  describe('D-S2 the data of a session at a sign-in', () => {
    it('are dropped, except the keys that are named', async () => {
      const { visitor } = await sessionsApp(store)
      const dropping = visitor()
      await dropping.post('/set?basket=pear&seen=1')
      const keeping = visitor()
      await keeping.post('/set?basket=pear&seen=1')
      await dropping.post('/login')
      await keeping.post('/login?keep=basket&keep=nothing')
      expect(Object.keys((await dropping.ask('/read')).body as object)).toEqual(['auth'])
      expect((await keeping.ask('/read')).body).toMatchObject({ basket: 'pear' })
      expect(Object.keys((await keeping.ask('/read')).body as object).sort()).toEqual(['auth', 'basket'])
    })

    it('never keep the earlier user', async () => {
      const { visitor } = await sessionsApp(store)
      const one = visitor()
      await one.post('/login?user=root')
      await one.post('/login?user=anna&keep=auth')
      await expectSignedIn(one, anna)
    })

    it('are written once, and the cookie is set once', async () => {
      const { visitor, store: watched } = await sessionsApp(store)
      const one = visitor()
      await one.post('/set?basket=pear')
      watched.asked.length = 0
      const answer = await one.post('/login')
      expect(watched.asked).toEqual(['get', 'get', 'update', 'end', 'insert'])
      expect(setCookies(answer).map((line) => line.split('=')[0])).toEqual(['session'])
      expect(answer.headers['cache-control']).toBe('no-store')
    })

    it('are in the new session if they change after the sign-in', async () => {
      const { visitor } = await sessionsApp(store, {
        acts: {
          '/welcome': async (ctx, { logIn }) => {
            await logIn(ctx, anna)
            Object.assign(ctx['session'] as object, { greeting: 'hello' })
          },
        },
      })
      const attacker = visitor()
      await attacker.post('/set?basket=pear')
      const victim = attacker.copy()
      await victim.post('/welcome')
      expect((await victim.ask('/read')).body).toMatchObject({ greeting: 'hello' })
      await expectSignedIn(victim, anna)
      await expectAnonymous(attacker)
    })
  })

  describe('D-S3 replay of a cookie', () => {
    it('after a sign-out is refused', async () => {
      const { store: watched, one: victim } = await signedInApp(store)
      const thief = victim.copy()
      await expectSignedIn(thief, anna)
      const answer = await victim.post('/logout')
      expect(answer.headers['cache-control']).toBe('no-store')
      expect(victim.cookies.get('session')).toBeUndefined()
      await expectAnonymous(thief)
      for (const method of ['POST', 'PUT', 'DELETE']) expect((await thief.ask('/me', { method })).status).toBe(401)
      expect((await thief.post('/set?basket=pear')).status).toBe(200)
      await expectAnonymous(thief)
      expect(watched.asked).toContain('end')
    })

    it('in a second sign-out, or a sign-out without a session, is not an error', async () => {
      const { visitor, one: victim } = await signedInApp(store)
      const twice = victim.copy()
      for (const one of [victim, twice, visitor()]) expect((await one.post('/logout')).status).toBe(200)
      await expectAnonymous(twice)
    })

    it('after the session was set to null is refused', async () => {
      const { one: victim } = await signedInApp(store)
      const thief = victim.copy()
      await victim.post('/drop')
      await expectAnonymous(thief)
    })
  })

  describe('D-S4 a slow request that read the session before it ended', () => {
    it.each(['GET', 'POST'])('cannot restore it by a change, and sends no cookie: %s', async (method) => {
      const { waiting, release, one: victim } = await signedInApp(store)
      const thief = victim.copy()
      const slow = victim.copy().ask('/slow?seen=1', { method })
      await waiting()
      await victim.post('/logout')
      release()
      const answer = await slow
      expect([answer.status, setCookies(answer)]).toEqual([200, []])
      await expectAnonymous(thief)
      expect((await thief.ask('/read')).body).toEqual({})
    })

    it('cannot restore it by prolonging it', async () => {
      const clock = stoppedClock()
      const { waiting, release, store: watched, one: victim } = await signedInApp(store, { idle: 3_600_000 })
      const thief = victim.copy()
      const slow = victim.copy().ask('/slow')
      await waiting()
      await victim.post('/logout')
      clock.move(0.55 * 3_600_000)
      release()
      expect(setCookies(await slow)).toEqual([])
      expect(watched.asked.at(-1)).toBe('update')
      await expectAnonymous(thief)
    })

    it('does not replace the cookie of the sign-in that ended it', async () => {
      const { visitor, waiting, release } = await sessionsApp(store)
      const browser = visitor()
      await browser.post('/set?basket=pear')
      const slow = browser.ask('/slow?seen=1')
      await waiting()
      await browser.post('/login')
      release()
      expect(setCookies(await slow)).toEqual([])
      await expectSignedIn(browser, anna)
    })

    it('can sign in again itself', async () => {
      const again: SessionsAppOptions = {
        acts: { '/slow': (ctx, { logIn }, next) => next().then(() => logIn(ctx, anna)) },
      }
      const { waiting, release, one: browser } = await signedInApp(store, again)
      const slow = browser.ask('/slow')
      await waiting()
      const other = browser.copy()
      await other.post('/logout')
      release()
      await slow
      await expectSignedIn(browser, anna)
    })
  })
})
