/** The laws of a store of passkeys. They write to the store, with random ids and users. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { PasskeyRecord, PasskeyStore, PasskeyUse } from '../../sign-in/passkeys/PasskeyStore.js'
import { storeLaws, type Laws, type StoreLaw } from './Law.js'

const random = (bytes: number): string => randomBytes(bytes).toString('base64url')

const newRecord = (more: Partial<PasskeyRecord> = {}): PasskeyRecord => ({
  id: random(16),
  user: randomUUID(),
  userHandle: random(32),
  rpId: 'shop.example',
  publicKey: random(77),
  aaguid: '00000000-0000-0000-0000-000000000000',
  transports: ['internal'],
  createdAt: 1_800_000_000_000,
  counter: 0,
  backupEligible: true,
  backedUp: true,
  ...more,
})

const strange = `Ünïcødé 日本語 🔑 '"\\%_*?:{}; drop table auth_passkeys; --\r\n\t`

const added = async (store: PasskeyStore, more: Partial<PasskeyRecord> = {}): Promise<PasskeyRecord> => {
  const record = newRecord(more)
  await store.add(record)
  return record
}

const use = (counter: number, more: Partial<PasskeyUse> = {}): PasskeyUse => ({
  counter,
  backupEligible: true,
  backedUp: true,
  ...more,
})

const idsOf = (records: ReadonlyArray<PasskeyRecord>): ReadonlyArray<string> => records.map(({ id }) => id).sort()

const laws: ReadonlyArray<StoreLaw<PasskeyStore>> = [
  {
    name: 'keeps every field as it was',
    fix: 'keep all fields of PasskeyRecord, leave out lastUsedAt if it is not there, and keep times to the millisecond',
    hold: async ({ store, expect }) => {
      const full = {
        // the longest id that WebAuthn allows has 1,023 bytes
        id: random(1023),
        user: `${strange}${randomUUID()}`,
        publicKey: random(600),
        transports: ['usb', 'nfc', 'hybrid'],
        counter: 2 ** 32 - 1,
        backupEligible: false,
        backedUp: false,
        lastUsedAt: 4_102_444_800_123,
      }
      for (const more of [{}, full, { user: `__proto__${randomUUID()}`, transports: [] }]) {
        const record = await added(store, more)
        expect('find a record', await store.byId(record.id), record)
        expect('list its user', await store.ofUser(record.user), [record])
      }
      expect('find an id that is not there', await store.byId(random(16)), undefined)
      for (const id of ['', '__proto__', 'constructor', '%', '*', strange]) {
        expect(`find ${JSON.stringify(id)}`, await store.byId(id), undefined)
      }
    },
  },
  {
    name: 'refuses an id that is there',
    fix: 'a unique index on id; add returns false if it is violated, and changes nothing',
    hold: async ({ store, expect }) => {
      const first = await added(store)
      const second = newRecord({ id: first.id })
      expect('add another record under its id', await store.add(second), false)
      expect('find the first', await store.byId(first.id), first)
      expect('list the user of the other', await store.ofUser(second.user), [])
      const id = random(16)
      const many = Array.from({ length: 8 }, () => newRecord({ id }))
      const results = await Promise.all(many.map((each) => store.add(each)))
      expect('how many of 8 at the same time are added', results.filter(Boolean).length, 1)
      expect('find it', await store.byId(id), many[results.indexOf(true)])
      const twin = `${first.id.slice(0, -1)}${first.id.endsWith('A') ? 'a' : 'A'}`
      expect('add an id that differs in one letter', await store.add(newRecord({ id: twin })), true)
    },
  },
  {
    name: 'lists all records of a user, and of no other',
    fix: 'compare users as they are',
    hold: async ({ store, expect }) => {
      const user = `a${randomUUID()}`
      const own = [await added(store, { user }), await added(store, { user, rpId: 'other.example' })]
      for (const near of [user.toUpperCase(), `${user} `, user.slice(0, -1), `${user.slice(0, -1)}%`, '%', '*']) {
        const ids = idsOf(await store.ofUser(near))
        expect(
          `list ${near}`,
          own.filter(({ id }) => ids.includes(id)),
          [],
        )
      }
      expect('list the user', idsOf(await store.ofUser(user)), idsOf(own))
    },
  },
  {
    name: 'updates a record, unless its counter would not grow',
    fix: 'see PasskeyStore.update: the counter grows, or it is 0 and stays 0',
    hold: async ({ store, expect }) => {
      const record = await added(store)
      const other = await added(store, { user: record.user })
      expect('use it without a counter', await store.update(record.id, use(0), 2000), true)
      expect('again, with other flags', await store.update(record.id, use(0, { backedUp: false }), 3000), true)
      expect('find it', await store.byId(record.id), { ...record, backedUp: false, lastUsedAt: 3000 })
      expect('use it with a counter', await store.update(record.id, use(5, { backupEligible: false }), 4000), true)
      const used = { ...record, counter: 5, backupEligible: false, lastUsedAt: 4000 }
      expect('find it', await store.byId(record.id), used)
      for (const counter of [5, 4, 1, 0]) {
        expect(`use it with the counter ${counter} after 5`, await store.update(record.id, use(counter), 5000), false)
      }
      expect('find it as it was', await store.byId(record.id), used)
      expect('use it with an earlier time', await store.update(record.id, use(2 ** 31 + 7), 100), true)
      expect('find it', await store.byId(record.id), { ...record, counter: 2 ** 31 + 7, lastUsedAt: 4000 })
      expect('list its user', idsOf(await store.ofUser(record.user)), idsOf([record, other]))
      expect('find the other passkey of the user as it was', await store.byId(other.id), other)
      const unknown = random(16)
      expect('use an id that is not there', await store.update(unknown, use(1), 1), false)
      expect('find it', await store.byId(unknown), undefined)
    },
  },
  {
    name: 'is atomic: of several uses with one counter at the same time, one is stored',
    fix: 'compare and store in one statement: update ... where id = ? and (counter < ? or (counter = 0 and ? = 0))',
    hold: async ({ store, expect }) => {
      for (let round = 0; round < 5; round += 1) {
        const { id } = await added(store, { counter: round })
        const results = await Promise.all(
          Array.from({ length: 8 }, (_, at) => store.update(id, use(round + 1), 1000 + at)),
        )
        expect('how many of 8 are stored', results.filter(Boolean).length, 1)
      }
    },
  },
  {
    name: 'removes a record of its user, and nothing else',
    fix: 'delete ... where id = ? and user = ?',
    hold: async ({ store, expect }) => {
      const record = await added(store)
      const other = await added(store, { user: record.user })
      expect('remove it for another user', await store.remove(record.id, randomUUID()), false)
      expect('find it', await store.byId(record.id), record)
      expect('remove it', await store.remove(record.id, record.user), true)
      expect('remove it again', await store.remove(record.id, record.user), false)
      expect('find it', await store.byId(record.id), undefined)
      expect('use it', await store.update(record.id, use(1), 1), false)
      expect('find it', await store.byId(record.id), undefined)
      expect('list its user', await store.ofUser(record.user), [other])
      expect('add it again', await store.add(record), true)
      const results = await Promise.all(Array.from({ length: 8 }, () => store.remove(record.id, record.user)))
      expect('how many of 8 at the same time remove it', results.filter(Boolean).length, 1)
    },
  },
]

export const passkeyStoreLaws = (store: PasskeyStore): Laws => storeLaws('a store of passkeys', laws, store)
