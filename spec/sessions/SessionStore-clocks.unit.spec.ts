/** C-14: a system clock that is set ahead and right again makes nothing good that was used up. */
import Koa from 'koa'
import { memoryStore, type SessionStore } from 'koa-with-auth/sessions'
import { totp } from 'koa-with-auth/sign-in'
import { sqliteStore } from 'koa-with-auth/sqlite'
import { describe, expect, it } from 'vitest'
import { idsOf } from '../../src/sessions/SessionStore.js'
import { codeOf } from '../support/servers/authenticatorApp.js'
import { stoppedClock } from '../support/runs/clock.js'
import { strongKey } from '../support/sites/sessionsApp.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

const url = sqliteFile()
const DAY = 86_400_000

const stores: ReadonlyArray<readonly [string, () => SessionStore]> = [
  ['memory', memoryStore],
  ['SQLite', () => sqliteStore({ url: url() })],
]

/** Enough writes for a store to sweep. */
const sweep = async (store: SessionStore) => {
  for (let at = 0; at < 1100; at++) await store.end(`another ${at % 10}`, 1000)
}

describe.each(stores)('C-14 the store in %s, after its clock was a day ahead while it swept', (_name, make) => {
  it('knows what was spent, ended and marked', async () => {
    const clock = stoppedClock()
    const store = make()
    const { use } = idsOf(store, 'shop')
    expect(await use('a link', DAY / 2)).toBe(true)
    await store.insert('session', 'text', DAY / 2)
    await store.end('session', DAY / 2)
    await store.mark('anna', 'mark', DAY / 2)
    clock.set(DAY)
    await sweep(store)
    clock.set(-DAY)
    await store.insert('session', 'text', DAY / 2)
    expect([await use('a link', DAY / 2), await store.read('session'), await store.markOf('anna')]).toEqual([
      false,
      undefined,
      'mark',
    ])
  })

  it('still forgets what is over', async () => {
    const clock = stoppedClock()
    const store = make()
    await store.insert('session', 'text', 1000)
    clock.move(DAY)
    await sweep(store)
    await store.insert('session', 'another', 1000)
    expect(await store.read('session')).toBe('another')
  })
})

describe.each(stores)('C-14 a code of an authenticator app, with the store in %s', (_name, make) => {
  it.each([60_000, 600_000, DAY])('is good once, also after the clock was set back by %i ms', async (back) => {
    const clock = stoppedClock()
    const app = new Koa({ keys: [strongKey] })
    const secrets = new Map<string, string>()
    const { enrol, verify, confirm } = totp({
      issuer: 'Shop',
      keys: () => app.keys,
      secretOf: (user) => secrets.get(user),
      store: make(),
    })
    const { secret, sealed } = enrol('anna')
    secrets.set('anna', sealed)
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
})
