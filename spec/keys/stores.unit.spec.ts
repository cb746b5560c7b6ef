/**
 * The suite of `koa-with-auth/testing/laws` for stores of API keys passes on every store, and finds stores that break a
 * law.
 */
import { memoryKeyStore, type KeyStore } from 'koa-with-auth/keys'
import { LawViolations } from 'koa-with-auth/testing'
import { checkKeyStore, lawsOfKeyStore } from 'koa-with-auth/testing/laws'
import { describe, expect, it } from 'vitest'
import { describeEveryKeyStore } from '../support/stores/keyStores.js'

describeEveryKeyStore((store) => {
  it.each(lawsOfKeyStore(memoryKeyStore()).map(({ name }, at) => ({ name, at })))('$name', async ({ at }) => {
    await lawsOfKeyStore(store())[at]?.check()
  })
})

const [keeps, refuses, lists, rotates, revokes, touches, isAtomic] = lawsOfKeyStore(memoryKeyStore()).map(
  ({ name }) => name,
)
const pause = () => new Promise((resolve) => setTimeout(resolve, 1))

// Each is a probable mistake
const broken: ReadonlyArray<
  readonly [description: string, law: string | undefined, make: (good: KeyStore) => Partial<KeyStore>]
> = [
  [
    'a field that is lost',
    keeps,
    (good) => ({ insert: (digest, { last4: _, ...record }) => good.insert(digest, record) }),
  ],
  [
    'null for a missing time',
    keeps,
    (good) => ({
      find: async (digests) => {
        const found = await good.find(digests)
        return found && { ...found, record: { expiresAt: null as never, ...found.record } }
      },
    }),
  ],
  ['a look-up of the first digest only', keeps, (good) => ({ find: ([first = '']) => good.find([first]) })],
  [
    'insert always returns true',
    refuses,
    (good) => ({ insert: async (digest, record) => (await good.insert(digest, record)) || true }),
  ],
  [
    'a list without revoked keys',
    lists,
    (good) => ({
      list: async (owner) => (await good.list(owner)).filter(({ revokedAt }) => revokedAt === undefined),
    }),
  ],
  [
    'owners compared in lower case',
    lists,
    (good) => ({
      insert: (digest, record) => good.insert(digest, { ...record, owner: record.owner.toLowerCase() }),
      list: (owner) => good.list(owner.toLowerCase()),
    }),
  ],
  [
    'replaced digests without an end',
    rotates,
    (good) => ({
      find: async (digests) => {
        const found = await good.find(digests)
        return found && { record: found.record }
      },
    }),
  ],
  [
    'an end long ago that counts as none',
    rotates,
    (good) => ({
      find: async (digests) => {
        const found = await good.find(digests)
        return found?.until === 1 ? { record: found.record } : found
      },
    }),
  ],
  [
    'an end that is extended',
    rotates,
    (good) => ({ rotate: (id, rotation) => good.rotate(id, { ...rotation, until: 9e12 }) }),
  ],
  [
    'an expired key that can be rotated',
    rotates,
    (good) => ({ rotate: (id, rotation) => good.rotate(id, { ...rotation, at: 1 }) }),
  ],
  [
    'revoke always returns true',
    revokes,
    (good) => ({ revoke: async (id, at) => (await good.revoke(id, at)) || true }),
  ],
  [
    'a revocation that is not written',
    revokes,
    (good) => ({ revoke: () => Promise.resolve(true), rotate: good.rotate }),
  ],
  [
    'a last use that moves back',
    touches,
    (good) => {
      const used = new Map<string, number>()
      return {
        touch: async (id, at) => void used.set(id, at),
        find: async (digests) => {
          const found = await good.find(digests)
          const lastUsedAt = found && used.get(found.record.id)
          return found && { ...found, record: { ...found.record, ...(lastUsedAt !== undefined && { lastUsedAt }) } }
        },
      }
    },
  ],
  [
    'a revocation that reads first and writes later',
    isAtomic,
    (good) => {
      const revoked = new Map<string, number>()
      return {
        rotate: async (id, rotation) => {
          const isRevoked = revoked.has(id)
          await pause()
          if (isRevoked) return false
          const done = await good.rotate(id, rotation)
          if (done) revoked.delete(id)
          return done
        },
        revoke: async (id, at) => {
          if ((await good.list('')).length > 0) return false
          revoked.set(id, revoked.get(id) ?? at)
          return true
        },
        find: async (digests) => {
          const found = await good.find(digests)
          const revokedAt = found && revoked.get(found.record.id)
          return found && { ...found, record: { ...found.record, ...(revokedAt !== undefined && { revokedAt }) } }
        },
      }
    },
  ],
  ['a store that is down', keeps, () => ({ insert: () => Promise.reject(new Error('ECONNREFUSED')) })],
]

describe('K-08 a store that breaks a law', () => {
  it.each(broken)('%s: breaks the law "%s"', async (_description, law, make) => {
    const good = memoryKeyStore()
    const error: unknown = await checkKeyStore({ ...good, ...make(good) }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(LawViolations)
    const { violations } = error as LawViolations
    expect(violations.map((breach) => breach.law)).toContain(law)
    for (const { fix, counterexample } of violations) expect([fix, counterexample]).not.toContain('')
  })

  it('fails the same laws if they are checked one by one', async () => {
    const store = { ...memoryKeyStore(), revoke: () => Promise.resolve(false) }
    const failed: string[] = []
    for (const { name, check } of lawsOfKeyStore(store)) await check().catch(() => failed.push(name))
    expect(failed).toEqual([revokes, isAtomic])
  })
})
