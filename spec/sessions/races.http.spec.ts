/**
 * Requests of one cookie at the same time, on persistent stores: a session that was ended stays ended, whatever meets.
 */
import fc from 'fast-check'
import type { Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  signedInApp,
  setCookies,
  type SessionsAppOptions,
} from '../support/sites/sessionsApp.js'
import { stoppedClock } from '../support/runs/clock.js'
import { aroundStore } from '../support/stores/aroundStore.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'

const regenerate = (ctx: object) =>
  (ctx as { readonly session: { readonly regenerate: () => Promise<void> } }).session.regenerate()

// An application that asks for a new id, as after a change of rights
const renewing = async (store: Parameters<typeof signedInApp>[0], options: SessionsAppOptions = {}) => {
  const meanwhile: Array<() => Promise<unknown>> = []
  const made = await signedInApp(store, {
    ...options,
    acts: {
      '/renew': async (ctx) => {
        for (const run of meanwhile.splice(0)) await run()
        await regenerate(ctx)
      },
      '/again': (ctx, { logIn }) => regenerate(ctx).then(() => logIn(ctx, anna)),
    },
  })
  return { ...made, meanwhile }
}

describeLastingStores((store) => {
  describe('D-S4 a session whose id is renewed by a request that read it before it ended', () => {
    it('goes on once, if two requests renew it at the same moment, and a failed one keeps no other from it', async () => {
      const clock = stoppedClock()
      const { one: browser, store: watched } = await renewing(store)
      const [before, second, third] = [browser.copy(), browser.copy(), browser.copy()]
      watched.instead.end = async (...ended) => {
        watched.instead.end = undefined
        const lost = await second.post('/step')
        expect([lost.status, setCookies(lost)]).toEqual([401, []])
        expect((await third.post('/again')).status).toBe(200)
        return store().end(...ended)
      }
      await browser.post('/renew')
      await expectSignedIn(browser, anna)
      for (const other of [before, second]) await expectAnonymous(other)
      // a sign-in after it is another session
      await expectSignedIn(third, anna)
      watched.instead.end = () => Promise.reject(new Error('the store is down'))
      expect((await browser.copy().post('/renew')).status).toBe(503)
      watched.instead.end = undefined
      clock.move(5000)
      const last = browser.copy()
      await browser.post('/renew')
      await expectSignedIn(browser, anna)
      await expectAnonymous(last)
    })

    it.each([-60_000, 60_000])('goes on once at most, and ends, if the other clock is %i ms off', async (off) => {
      const clock = stoppedClock()
      const { one: browser, store: watched } = await renewing(store)
      const other = browser.copy()
      watched.instead.end = async (...ended) => {
        watched.instead.end = undefined
        clock.set(off)
        await other.post('/renew')
        clock.set(-off)
        return store().end(...ended)
      }
      await browser.post('/renew')
      const alive = await Promise.all([browser, other].map(async (one) => (await one.copy().ask('/me')).status))
      expect(alive.filter((status) => status === 200).length).toBeLessThanOrEqual(1)
      await other.post('/logout')
      for (const one of [browser, other]) await expectAnonymous(one)
    })

    it.each([
      { how: 'signing out', end: '/logout' },
      { how: 'signing in', end: '/login' },
    ])('has ended: $how', async ({ end }) => {
      const { one: victim, meanwhile, store: watched } = await renewing(store)
      await victim.post('/set?basket=pear')
      const thief = victim.copy()
      meanwhile.push(() => victim.post(end))
      const answer = await thief.post('/renew')
      expect(setCookies(answer)).toEqual([])
      await expectAnonymous(thief)
      expect((await thief.ask('/read')).body).toEqual({})
      // nor is it kept under an id that no cookie has
      expect(JSON.stringify(await store().get([...watched.ids]))).not.toContain('pear')
      if (end === '/login') await expectSignedIn(victim, anna)
      else await expectAnonymous(victim)
    })
  })

  describe.each([{ list: false }, { list: true }])(
    'a sign-out with the id before, with the list: $list',
    ({ list }) => {
      it('ends the session that got another id just before, and its next ones', async () => {
        const { one: browser } = await renewing(store, { list })
        const before = browser.copy()
        for (const _ of [1, 2]) await browser.post('/renew')
        await expectSignedIn(browser, anna)
        // as a page that was open before: the new cookie is on the way
        expect((await before.post('/logout')).status).toBe(200)
        await expectAnonymous(browser)
        // and so does a sign-in, which replaces it
        await browser.post('/login')
        const second = browser.copy()
        await browser.post('/renew')
        await second.post('/login')
        await expectAnonymous(browser)
        await expectSignedIn(second, anna)
        // it counts once, and ends no later sign-in
        await browser.post('/login')
        await before.post('/logout')
        await expectSignedIn(browser, anna)
      })

      it('ends the session also before its new id is written', async () => {
        const { one: browser, store: watched } = await renewing(store, { list })
        const before = browser.copy()
        watched.instead.insert = async (...written) => {
          if (written[1].includes('"auth"')) {
            watched.instead.insert = undefined
            expect((await before.post('/logout')).status).toBe(200)
          }
          return store().insert(...written)
        }
        await browser.post('/renew')
        await expectAnonymous(browser)
      })

      it.each([
        { at: 'before its id is ended', isLate: false },
        { at: 'after it', isLate: true },
      ])('ends the session if its renewal, or the clock of its process, is a minute late: $at', async ({ isLate }) => {
        const clock = stoppedClock()
        const { one: browser, store: watched } = await renewing(store, { list })
        const before = browser.copy()
        watched.instead.end = async (...ended) => {
          watched.instead.end = undefined
          if (isLate) await store().end(...ended)
          clock.set(61_000)
          expect((await before.post('/logout')).status).toBe(200)
          // it stood still, or it was the other clock that is a minute ahead
          if (!isLate) clock.set(-61_000)
          return store().end(...ended)
        }
        await browser.post('/renew')
        await expectAnonymous(browser)
      })

      it('ends nothing a minute later, and is a 503 in an outage', async () => {
        const clock = stoppedClock()
        const { one: browser, store: watched } = await renewing(store, { list })
        const before = browser.copy()
        await browser.post('/renew')
        watched.instead.end = () => Promise.reject(new Error('the store is down'))
        expect((await before.post('/logout')).status).toBe(503)
        watched.instead.end = undefined
        await expectSignedIn(browser, anna)
        clock.set(61_000)
        expect((await before.post('/logout')).status).toBe(200)
        await expectSignedIn(browser, anna)
      })
    },
  )

  it("D-S4 a request that ends a session wins against all others at the same time, whatever the order of the store's commands", async () => {
    // renewals of one batch are at the same moment, however long a busy machine takes
    stoppedClock()
    const delays: number[] = []
    const { visitor, signing } = await renewing(() => slowed(store(), delays))
    const seen = { over: 0, alive: 0 }
    await fc.assert(
      fc.asyncProperty(batch, async ({ paths, everywhere, latencies }) => {
        const known = visitor()
        await known.post('/login')
        await known.post('/set?basket=pear')
        const before = known.copy()
        const copies = paths.map(() => known.copy())
        delays.push(...latencies)
        await Promise.all([
          ...paths.map((path, at) => copies[at]!.post(path)),
          everywhere && signing.logOutEverywhere('anna'),
        ])
        delays.length = 0
        const isOver = everywhere || paths.some((path) => path !== '/set?seen=1')
        const count = async () => {
          const answers = await Promise.all(copies.map((one) => one.copy().ask('/me')))
          return answers.filter(({ status }) => status === 200).length
        }
        if (isOver) await expectAnonymous(before)
        const times = (wanted: string) => paths.filter((path) => path === wanted).length
        // A sign-in may have been made after all sessions were ended; a new id never outlives the one that was ended
        const isEnded = everywhere || times('/logout') + times('/login') > 0
        const others = times('/login') + (isEnded ? 0 : Math.min(1, times('/renew')))
        const alive = await count()
        if (isOver) expect(alive).toBeLessThanOrEqual(others)
        else expect(alive).toBe(paths.length)
        seen[alive > 0 ? 'alive' : 'over']++
        await signing.logOutEverywhere('anna')
        expect(await count()).toBe(0)
      }),
      { numRuns: 60, examples: decided.map((one): [Batch] => [one]) },
    )
    for (const [name, runs] of Object.entries(seen)) expect(runs, name).toBeGreaterThan(5)
  })
})

interface Batch {
  readonly paths: ReadonlyArray<'/login' | '/logout' | '/set?seen=1' | '/renew'>
  readonly everywhere: boolean
  readonly latencies: ReadonlyArray<number>
}

const batch: fc.Arbitrary<Batch> = fc.record({
  paths: fc.array(fc.constantFrom('/login', '/logout', '/set?seen=1', '/renew'), { minLength: 2, maxLength: 5 }),
  everywhere: fc.boolean(),
  latencies: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 30, maxLength: 30 }),
})

// Of random batches, the order of the commands decides how many leave a session. Of these, it decides nothing.
const write = '/set?seen=1'
const decided = [0, 1, 2].flatMap((first): ReadonlyArray<Batch> => {
  const latencies = Array.from({ length: 30 }, (_, at) => (at * 3 + first) % 4)
  return [
    { paths: [write, write, write], everywhere: false, latencies },
    { paths: ['/login', write], everywhere: false, latencies },
    { paths: ['/logout', write], everywhere: false, latencies },
    { paths: ['/logout', '/renew', '/renew'], everywhere: false, latencies },
    { paths: [write, write], everywhere: true, latencies },
  ]
})

/** The store, which delays each command by the next of these milliseconds, while there are any. */
const slowed = (store: Store, delays: number[]): Store => {
  const later = () => new Promise((resolve) => setTimeout(resolve, delays.shift() ?? 0))
  return aroundStore(
    () => store,
    async (_method, _args, ask) => {
      await later()
      const answer = await ask()
      await later()
      return answer
    },
  )
}
