/** The laws of a store of API keys. They write to the store, with random ids and owners. */
import { createHash, randomUUID } from 'node:crypto'
import type { KeyRecord, KeyStore } from '../../keys/KeyStore.js'
import { storeLaws, type Laws, type StoreLaw } from './Law.js'

const newDigest = (): string => createHash('sha256').update(randomUUID()).digest('hex')
const newRecord = (more: Partial<KeyRecord> = {}): KeyRecord => ({
  id: randomUUID(),
  owner: randomUUID(),
  name: '',
  scopes: [],
  createdAt: 1_800_000_000_000,
  ...more,
})

const strange = `Ünïcødé 日本語 🔑 '"\\%_*?:{}; drop table auth_keys; --\r\n\t`

const kept = async (store: KeyStore, more: Partial<KeyRecord> = {}) => {
  const [digest, record] = [newDigest(), newRecord(more)]
  await store.insert(digest, record)
  return { digest, record, id: record.id }
}

const rotationAt = (at: number, until: number) => ({ digest: newDigest(), prefix: 'acme', last4: 'wxyz', at, until })

const laws: ReadonlyArray<StoreLaw<KeyStore>> = [
  {
    name: 'keeps every field as it was',
    fix: 'keep all fields of KeyRecord, leave out those that are not there, and times to the millisecond',
    hold: async ({ store, expect }) => {
      const full = {
        name: strange,
        owner: `${strange}${randomUUID()}`,
        scopes: ['read', 'write:all'],
        prefix: 'acme_live',
        last4: 'wxyz',
        expiresAt: 4_102_444_800_123,
        lastUsedAt: 1_800_000_000_001,
      }
      for (const more of [{}, full, { owner: `__proto__${randomUUID()}`, scopes: ['__proto__'] }]) {
        const { digest, record } = await kept(store, more)
        expect('find a record', await store.find([digest]), { record })
        expect('find it beside digests that are not there', await store.find([newDigest(), digest]), { record })
        expect('list its owner', await store.list(record.owner), [record])
      }
      expect('find what was never kept', await store.find([newDigest()]), undefined)
    },
  },
  {
    name: 'refuses a digest or an id that is there',
    fix: 'unique indexes on digest and id; insert returns false if one is violated, and changes nothing',
    hold: async ({ store, expect }) => {
      const { digest, record } = await kept(store)
      const [other, second] = [newRecord(), newDigest()]
      expect('insert another record under its digest', await store.insert(digest, other), false)
      expect('list the owner of the other', await store.list(other.owner), [])
      expect('insert its id under another digest', await store.insert(second, record), false)
      expect('find that digest', await store.find([second]), undefined)
      expect('find the first', await store.find([digest]), { record })
      const [one, many] = [newDigest(), Array.from({ length: 8 }, () => newRecord())]
      const answers = await Promise.all(many.map((each) => store.insert(one, each)))
      expect('how many of 8 at the same time are kept', answers.filter(Boolean).length, 1)
      expect('find it', await store.find([one]), { record: many[answers.indexOf(true)] })
    },
  },
  {
    name: 'lists all records of an owner, and of no other',
    fix: 'compare owners as they are, and leave revoked and expired records in',
    hold: async ({ store, expect }) => {
      const owner = `a${randomUUID()}`
      const { id } = await kept(store, { owner })
      const { id: over } = await kept(store, { owner, expiresAt: 1 })
      await store.revoke(id, 5)
      for (const near of [owner.toUpperCase(), `${owner} `, owner.slice(0, -1), `${owner.slice(0, -1)}%`, '%', '*']) {
        const listed = await store.list(near)
        expect(
          `list ${near}`,
          listed.filter((one) => one.id === id || one.id === over),
          [],
        )
      }
      expect('list the owner', (await store.list(owner)).map((one) => one.id).sort(), [id, over].sort())
      expect('list somebody without keys', await store.list(randomUUID()), [])
    },
  },
  {
    name: 'rotates a live record: the new digest has no end, each older one the earliest of its ends',
    fix: 'see KeyStore.rotate; all of it in one transaction',
    hold: async ({ store, expect }) => {
      const { digest: first, record, id } = await kept(store, { expiresAt: 1000 })
      const [second, third, fourth] = [rotationAt(10, 500), rotationAt(20, 300), rotationAt(400, 600)] as const
      const at = ({ last4, prefix, at }: ReturnType<typeof rotationAt>) => ({ ...record, last4, prefix, rotatedAt: at })
      expect('rotate', await store.rotate(id, second), true)
      expect('find the new digest', await store.find([second.digest]), { record: at(second) })
      expect('find the old one', await store.find([first]), { record: at(second), until: 500 })
      expect('rotate again, with an earlier end', await store.rotate(id, third), true)
      expect('find the first', await store.find([first]), { record: at(third), until: 300 })
      expect('find the second', await store.find([second.digest]), { record: at(third), until: 300 })
      expect('rotate once they are over', await store.rotate(id, fourth), true)
      expect('find the third, which was not over', await store.find([third.digest]), { record: at(fourth), until: 600 })
      const leaked = await kept(store)
      await store.rotate(leaked.id, rotationAt(20, 1))
      for (const [over, until] of Object.entries({ [first]: 300, [second.digest]: 300, [leaked.digest]: 1 })) {
        const found = await store.find([over])
        expect('when a digest is over that was over', found === undefined || found.until === until, true)
      }
      expect('rotate an id that is not there', await store.rotate(randomUUID(), rotationAt(1, 2)), false)
      const other = await kept(store)
      for (const digest of [other.digest, fourth.digest]) {
        expect('rotate to a digest that is there', await store.rotate(id, { ...rotationAt(401, 402), digest }), false)
      }
      expect('rotate at the moment of its end', await store.rotate(id, rotationAt(1000, 2000)), false)
      expect('find it as it was', await store.find([fourth.digest]), { record: at(fourth) })
      expect('find the other as it was', await store.find([other.digest]), { record: other.record })
    },
  },
  {
    name: 'revokes once and for all',
    fix: 'keep the first time; nothing removes it; rotate returns false after it',
    hold: async ({ store, expect }) => {
      const { digest, record, id } = await kept(store)
      const rotation = rotationAt(10, 500)
      await store.rotate(id, rotation)
      expect('revoke', await store.revoke(id, 20), true)
      expect('revoke again', await store.revoke(id, 30), true)
      expect('revoke an id that is not there', await store.revoke(randomUUID(), 20), false)
      await store.touch(id, 40)
      const refused = rotationAt(50, 60)
      expect('rotate it', await store.rotate(id, refused), false)
      expect('find the digest that was refused', await store.find([refused.digest]), undefined)
      for (const one of [digest, rotation.digest]) {
        const found = await store.find([one])
        expect('when it was revoked, by any of its digests', found?.record.revokedAt, 20)
      }
      expect(
        'list its owner',
        (await store.list(record.owner)).map(({ revokedAt }) => revokedAt),
        [20],
      )
    },
  },
  {
    name: 'touches forward only',
    fix: 'write the time where it is later than the one that is there',
    hold: async ({ store, expect }) => {
      const { digest, record, id } = await kept(store)
      for (const at of [50, 70, 60]) await store.touch(id, at)
      expect('find it', await store.find([digest]), { record: { ...record, lastUsedAt: 70 } })
      const none = randomUUID()
      await store.touch(none, 5)
      expect('revoke what was only touched', await store.revoke(none, 6), false)
    },
  },
  {
    name: 'is atomic: whatever happens at the same time, no secret outlives a revocation, and one has no end',
    fix: 'one transaction, or one script, for each method',
    hold: async ({ store, expect }) => {
      const { digest, id } = await kept(store)
      const rotations = Array.from({ length: 6 }, () => rotationAt(10, 500))
      const answers = await Promise.all(rotations.map((rotation) => store.rotate(id, rotation)))
      expect('how many of 6 at the same time are done', answers.filter(Boolean).length, 6)
      const found = await Promise.all(
        [digest, ...rotations.map((one) => one.digest)].map(async (one) => store.find([one])),
      )
      expect(
        'how many digests have no end',
        found.filter((one) => one !== undefined && one.until === undefined).length,
        1,
      )
      const late = Array.from({ length: 3 }, () => rotationAt(20, 500))
      await Promise.all([
        ...late.slice(0, 2).map((rotation) => store.rotate(id, rotation)),
        store.revoke(id, 20),
        ...late.slice(2).map((rotation) => store.rotate(id, rotation)),
      ])
      for (const one of [...rotations, ...late]) {
        const there = await store.find([one.digest])
        expect(
          'whether a digest is good behind a revocation',
          there !== undefined && there.record.revokedAt === undefined,
          false,
        )
      }
    },
  },
]

export const keyStoreLaws = (store: KeyStore): Laws => storeLaws('a store of API keys', laws, store)
