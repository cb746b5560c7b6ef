/**
 * The suite of `koa-with-auth/testing/laws` for stores of passkeys passes on every store, and finds stores that break a
 * law.
 */
import { memoryPasskeyStore, type PasskeyStore } from 'koa-with-auth/sign-in/passkeys'
import { redisPasskeyStore } from 'koa-with-auth/redis'
import { sqlitePasskeyStore } from 'koa-with-auth/sqlite'
import { LawViolations } from 'koa-with-auth/testing'
import { laws } from 'koa-with-auth/testing/laws'
import { describe, expect, it } from 'vitest'
import { describeEveryPasskeyStore } from '../support/stores/passkeyStores.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

describeEveryPasskeyStore((store) => {
  it.each(laws.passkeyStore(memoryPasskeyStore()).tests.map(({ name }, at) => ({ name, at })))(
    '$name',
    async ({ at }) => {
      await laws.passkeyStore(store()).tests[at]?.check()
    },
  )
})

const [keeps, refuses, lists, updates, isAtomic, removes] = laws
  .passkeyStore(memoryPasskeyStore())
  .tests.map(({ name }) => name)
const pause = () => new Promise((resolve) => setTimeout(resolve, 1))

// Each is a probable mistake
const broken: ReadonlyArray<
  readonly [description: string, law: string | undefined, make: (good: PasskeyStore) => Partial<PasskeyStore>]
> = [
  ['transports that are lost', keeps, (good) => ({ add: (record) => good.add({ ...record, transports: [] }) })],
  ['ids that are cut off', keeps, (good) => ({ byId: (id) => good.byId(id.slice(0, 255)) })],
  [
    'null for a missing time',
    keeps,
    (good) => ({
      byId: async (id) => {
        const found = await good.byId(id)
        return found && { lastUsedAt: null as never, ...found }
      },
    }),
  ],
  [
    'insert or replace',
    refuses,
    (good) => ({
      add: async (record) => {
        const kept = await good.byId(record.id)
        if (kept) await good.remove(kept.id, kept.user)
        return good.add(record)
      },
    }),
  ],
  [
    'ids compared in lower case',
    refuses,
    (good) => ({
      add: (record) => good.add({ ...record, id: record.id.toLowerCase() }),
      byId: (id) => good.byId(id.toLowerCase()),
    }),
  ],
  [
    'users compared in lower case',
    lists,
    (good) => ({
      add: (record) => good.add({ ...record, user: record.user.toLowerCase() }),
      ofUser: (user) => good.ofUser(user.toLowerCase()),
    }),
  ],
  [
    'a counter that moves back',
    updates,
    (good) => {
      const counters = new Map<string, number>()
      return {
        update: async (id, use, at) => {
          counters.set(id, use.counter)
          return good.update(id, { ...use, counter: 0 }, at)
        },
        byId: async (id) => {
          const found = await good.byId(id)
          return found && { ...found, counter: counters.get(id) ?? found.counter }
        },
      }
    },
  ],
  [
    'update always returns true',
    updates,
    (good) => ({ update: async (id, use, at) => (await good.update(id, use, at)) || true }),
  ],
  [
    'a last use that moves back',
    updates,
    (good) => {
      const used = new Map<string, number>()
      return {
        update: async (id, use, at) => {
          const done = await good.update(id, use, at)
          if (done) used.set(id, at)
          return done
        },
        byId: async (id) => {
          const found = await good.byId(id)
          const lastUsedAt = used.get(id)
          return found && (lastUsedAt === undefined ? found : { ...found, lastUsedAt })
        },
      }
    },
  ],
  [
    'a counter that is read first and written later',
    isAtomic,
    (good) => ({
      update: async (id, use, at) => {
        const kept = await good.byId(id)
        if (!kept || (use.counter <= kept.counter && use.counter + kept.counter > 0)) return false
        await pause()
        await good.update(id, use, at)
        return true
      },
    }),
  ],
  [
    'remove asks for no user',
    removes,
    (good) => ({
      remove: async (id) => {
        const kept = await good.byId(id)
        return kept !== undefined && good.remove(id, kept.user)
      },
    }),
  ],
  ['remove does nothing', removes, () => ({ remove: () => Promise.resolve(true) })],
  ['a store that is down', keeps, () => ({ add: () => Promise.reject(new Error('ECONNREFUSED')) })],
]

describe('a store of passkeys that breaks a law', () => {
  it.each(broken)('%s: breaks the law "%s"', async (_description, law, make) => {
    const good = memoryPasskeyStore()
    const error: unknown = await laws
      .passkeyStore({ ...good, ...make(good) })
      .check()
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(LawViolations)
    const { violations } = error as LawViolations
    expect(violations.map((breach) => breach.law)).toContain(law)
    for (const { fix, counterexample } of violations) expect([fix, counterexample]).not.toContain('')
  })

  it('fails the same laws if they are checked one by one', async () => {
    const store = { ...memoryPasskeyStore(), remove: () => Promise.resolve(false) }
    const failed: string[] = []
    for (const { name, check } of laws.passkeyStore(store).tests) await check().catch(() => failed.push(name))
    expect(failed).toEqual([removes])
  })
})

describe('stores of passkeys', () => {
  const file = sqliteFile()
  const record = {
    id: 'AAAA',
    user: 'anna',
    userHandle: 'BBBB',
    rpId: 'shop.example',
    publicKey: 'CCCC',
    aaguid: '00000000-0000-0000-0000-000000000000',
    transports: [],
    createdAt: 1,
    counter: 0,
    backupEligible: true,
    backedUp: true,
  }

  it('two processes share one file', async () => {
    const url = file()
    const [first, second] = [sqlitePasskeyStore({ url }), sqlitePasskeyStore({ url })]
    expect(await first.add(record)).toBe(true)
    expect(await second.byId('AAAA')).toStrictEqual(record)
    expect(await second.add(record)).toBe(false)
    first.close()
    second.close()
  })

  it('a record in memory cannot be changed from outside', async () => {
    const store = memoryPasskeyStore()
    const transports = ['internal']
    const given = { ...record, transports }
    await store.add(given)
    transports.push('usb')
    given.user = 'bert'
    const kept = await store.byId('AAAA')
    expect([kept?.user, kept?.transports]).toEqual(['anna', ['internal']])
    expect(Object.isFrozen(kept)).toBe(true)
  })

  it.each([
    ['another record', ['{"id":"XXXX"}', '0', 'true', 'true', null]],
    ['not an array', 'OK'],
    ['fewer values', [null]],
    ['a counter that is none', [JSON.stringify({ ...record, counter: undefined }), '-1', 'true', 'true', null]],
    ['the record of another id', [JSON.stringify({ ...record, id: 'XXXX' }), '0', 'true', 'true', null]],
  ])('Redis answers %s: it rejects', async (_name, answer) => {
    const store = redisPasskeyStore({ command: () => Promise.resolve(answer) })
    await expect(store.byId('AAAA')).rejects.toThrow(TypeError)
  })

  it('options that cannot work are refused', () => {
    expect(() => sqlitePasskeyStore({ url: '/tmp/x.db' })).toThrow(/sqlitePasskeyStore\(\{ url \}\).*redisPasskeyStore/)
    expect(() => redisPasskeyStore({ command: 'GET' as never })).toThrow(/redisPasskeyStore\(\{ command \}\)/)
  })
})
