/** C-14: a system clock that is set ahead and right again, or back, makes nothing good that was used up. */
import Koa from 'koa'
import { UnavailableError } from 'koa-with-auth'
import { totp } from 'koa-with-auth/sign-in'
import { memoryStore, oneTimeIds, sqliteStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it, vi } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { codeOf } from '../support/servers/authenticatorApp.js'
import { strongKey } from '../support/sites/sessionsApp.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

const url = sqliteFile()
const DAY = 86_400_000

const stores: ReadonlyArray<readonly [string, () => Store]> = [
  ['memory', memoryStore],
  ['SQLite', () => sqliteStore({ url: url() })],
]

it('C-14 a store in memory that swept while the clock was a day ahead knows what was used and ended', async () => {
  const clock = stoppedClock()
  const store = memoryStore()
  const { use } = oneTimeIds(store)
  expect(await use('a link', DAY / 2)).toBe(true)
  await store.end('session', DAY / 2)
  clock.set(DAY)
  for (let at = 0; at < 1100; at++) await store.end(`another ${at % 10}`, 1000)
  clock.set(-DAY)
  expect([await use('a link', DAY / 2), await store.insert('session', 'text', DAY / 2)]).toEqual([false, false])
})

const appOf = (store: Store) => {
  const app = new Koa({ keys: [strongKey] })
  const secrets = new Map<string, string>()
  const made = totp({ issuer: 'Shop', keys: () => app.keys, secretOf: (user) => secrets.get(user), store })
  const { secret, sealed } = made.enrol('anna')
  secrets.set('anna', sealed)
  return { ...made, sealed, secret }
}

describe.each(stores)('C-14 a code of an authenticator app, with the store in %s', (_name, make) => {
  it.each([60_000, 600_000, DAY])('is good once, also after the clock was set back by %i ms', async (back) => {
    const clock = stoppedClock()
    const { confirm, verify, sealed, secret } = appOf(make())
    const now = () => codeOf(secret, 0)
    expect(await confirm('anna', sealed, now())).toBe(true)
    clock.set(-back)
    // never used, and older than one that was
    expect(await verify('anna', now())).toBe(false)
    clock.set(back)
    clock.move(30_000)
    expect(await verify('anna', now())).toBe(true)
    expect(await verify('anna', now())).toBe(false)
  })

  it('is good for one of many requests at once, and no older one is after it', async () => {
    stoppedClock()
    const { verify, secret } = appOf(make())
    const [older, newer] = [codeOf(secret, -1), codeOf(secret, 0)]
    const all = await Promise.all(
      [newer, ...Array(7).fill(older), ...Array(7).fill(newer)].map((code: string) => verify('anna', code)),
    )
    expect(all.slice(8).concat(all[0]!).filter(Boolean)).toHaveLength(1)
    expect([await verify('anna', older), await verify('anna', newer)]).toEqual([false, false])
  })
})

it('C-14 the newest step is kept for 90 days, also one that replaces another', async () => {
  const kept = memoryStore()
  const lifetimes: number[] = []
  const noted: Store['insert'] = (key, text, ms) => (lifetimes.push(ms), kept.insert(key, text, ms))
  const { verify, secret } = appOf({ ...kept, insert: noted, update: (key, text, ms) => noted(key, text, ms) })
  stoppedClock()
  await verify('anna', codeOf(secret, 0))
  await verify('anna', codeOf(secret, 1))
  expect(new Set(lifetimes)).toEqual(new Set([90 * DAY]))
})

it('C-14 what is in the store and is no step lets no code pass; a store that is silent is an outage after two seconds', async () => {
  const { verify, secret } = appOf({ ...memoryStore(), get: () => ['rubbish'] })
  expect(await verify('anna', codeOf(secret, 0))).toBe(false)
  vi.useFakeTimers({ toFake: ['setTimeout', 'setImmediate'] })
  const silent = appOf({ ...memoryStore(), get: () => new Promise(() => {}) })
  const asked = silent.verify('anna', codeOf(silent.secret, 0)).catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(2001)
  vi.useRealTimers()
  expect(await asked).toBeInstanceOf(UnavailableError)
})
