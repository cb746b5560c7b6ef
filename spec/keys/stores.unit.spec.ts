/** The suite of `koa-with-auth/testing/laws` for stores of API keys holds on every store, and finds what breaks it. */
import { memoryKeyStore, type KeyStore } from 'koa-with-auth/keys'
import { LawViolations } from 'koa-with-auth/testing'
import { checkKeyStore, lawsOfKeyStore } from 'koa-with-auth/testing/laws'
import { describe, expect, it } from 'vitest'
import { describeEveryKeyStore } from '../support/keyStores.js'

describeEveryKeyStore((store) => {
  it.each(lawsOfKeyStore(memoryKeyStore()).map(({ name }, at) => ({ name, at })))('$name', async ({ at }) => {
    await lawsOfKeyStore(store())[at]?.check()
  })
})

const [keeps, refuses, lists, rotates, revokes, touches, isAtomic] = lawsOfKeyStore(memoryKeyStore()).map(
  ({ name }) => name,
)
const pause = () => new Promise((resolve) => setTimeout(resolve, 1))

// Each is a mistake that is easily made
const broken: ReadonlyArray<
  readonly [description: string, law: string | undefined, make: (good: KeyStore) => Partial<KeyStore>]
> = [
  ['a field is lost', keeps, (good) => ({ insert: (digest, { last4: _, ...record }) => good.insert(digest, record) })],
  [
    'null for a time that is not there',
    keeps,
    (good) => ({
      find: async (digests) => {
        const found = await good.find(digests)
        return found && { ...found, record: { expiresAt: null as never, ...found.record } }
      },
    }),
  ],
  ['only the first digest is looked for', keeps, (good) => ({ find: ([first = '']) => good.find([first]) })],
  [
    'insert tells yes always',
    refuses,
    (good) => ({ insert: async (digest, record) => (await good.insert(digest, record)) || true }),
  ],
  [
    'revoked ones are left out of the list',
    lists,
    (good) => ({
      list: async (owner) => (await good.list(owner)).filter(({ revokedAt }) => revokedAt === undefined),
    }),
  ],
  [
    'owners are compared in lower case',
    lists,
    (good) => ({
      insert: (digest, record) => good.insert(digest, { ...record, owner: record.owner.toLowerCase() }),
      list: (owner) => good.list(owner.toLowerCase()),
    }),
  ],
  [
    'old digests have no end',
    rotates,
    (good) => ({
      find: async (digests) => {
        const found = await good.find(digests)
        return found && { record: found.record }
      },
    }),
  ],
  [
    'an end that is long over is taken for none',
    rotates,
    (good) => ({
      find: async (digests) => {
        const found = await good.find(digests)
        return found?.until === 1 ? { record: found.record } : found
      },
    }),
  ],
  [
    'an end is prolonged',
    rotates,
    (good) => ({ rotate: (id, rotation) => good.rotate(id, { ...rotation, until: 9e12 }) }),
  ],
  [
    'what is expired rotates',
    rotates,
    (good) => ({ rotate: (id, rotation) => good.rotate(id, { ...rotation, at: 1 }) }),
  ],
  ['revoking tells yes always', revokes, (good) => ({ revoke: async (id, at) => (await good.revoke(id, at)) || true })],
  ['a revocation is forgotten', revokes, (good) => ({ revoke: () => Promise.resolve(true), rotate: good.rotate })],
  [
    'touching backwards',
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
    'a revocation that looks first, and writes later',
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
  it.each(broken)('%s: the law "%s" says so', async (_description, law, make) => {
    const good = memoryKeyStore()
    const error: unknown = await checkKeyStore({ ...good, ...make(good) }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(LawViolations)
    const { violations } = error as LawViolations
    expect(violations.map((breach) => breach.law)).toContain(law)
    for (const { fix, counterexample } of violations) expect([fix, counterexample]).not.toContain('')
  })

  it('one by one they say the same', async () => {
    const store = { ...memoryKeyStore(), revoke: () => Promise.resolve(false) }
    const failed: string[] = []
    for (const { name, check } of lawsOfKeyStore(store)) await check().catch(() => failed.push(name))
    expect(failed).toEqual([revokes, isAtomic])
  })
})
