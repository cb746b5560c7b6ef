/** What every store of API keys must do: its laws, no shared objects, and exact limits of time. */
import { memoryKeyStore, type KeyStore, apiKeys, type ApiKey } from 'koa-with-auth/keys'
import { LawViolations, mockRequest } from 'koa-with-auth/testing'
import { laws } from 'koa-with-auth/testing/laws'
import { describe, expect, it, afterEach, beforeEach, vi } from 'vitest'
import { createHash, randomBytes } from 'node:crypto'
import { either as E } from 'fp-ts'
import { on } from 'koa-with-auth/events'
import { describeEveryKeyStore, digestOf, recordOf } from '../support/stores/keyStores.js'

// The suite of `koa-with-auth/testing/laws` for stores of API keys passes on every store, and finds stores that break a law.

describeEveryKeyStore((store) => {
  it.each(laws.keyStore(memoryKeyStore()).tests.map(({ name }, at) => ({ name, at })))('$name', async ({ at }) => {
    await laws.keyStore(store()).tests[at]?.check()
  })
})

const [keeps, refuses, lists, rotates, revokes, touches, isAtomic] = laws
  .keyStore(memoryKeyStore())
  .tests.map(({ name }) => name)
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
    const error: unknown = await laws
      .keyStore({ ...good, ...make(good) })
      .check()
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(LawViolations)
    const { violations } = error as LawViolations
    expect(violations.map((breach) => breach.law)).toContain(law)
    for (const { fix, counterexample } of violations) expect([fix, counterexample]).not.toContain('')
  })

  it('fails the same laws if they are checked one by one', async () => {
    const store = { ...memoryKeyStore(), revoke: () => Promise.resolve(false) }
    const failed: string[] = []
    for (const { name, check } of laws.keyStore(store).tests) await check().catch(() => failed.push(name))
    expect(failed).toEqual([revokes, isAtomic])
  })
})

// A store shares no object with the application: changing an object changes no key, and no principal of another request.
describe('no object is shared', () => {
  const request = mockRequest({})
  const principalOf = (result: E.Either<unknown, ApiKey>): ApiKey => {
    if (E.isLeft(result)) throw new Error('refused')
    return result.right
  }
  // What a handler without TypeScript could do
  const changed = (scopes: ReadonlyArray<string>): void => {
    // Safe: a frozen array throws, and nothing else is read
    expect(() => (scopes as string[]).push('admin')).toThrow(TypeError)
  }

  describeEveryKeyStore((store, name) => {
    it('scopes that were given to issue or adopt can change later: the key keeps its scopes', async () => {
      const keys = apiKeys({ prefix: 'acme', store: store(), adopted: /^old-/ })
      const given = ['read']
      const old = `old-${name}`
      const { key, id } = await keys.issue({ owner: `${name} shared`, scopes: given })
      await keys.adopt(createHash('sha256').update(old).digest('hex'), { owner: `${name} shared`, scopes: given })
      given.push('admin')
      for (const one of [key, old]) {
        expect(principalOf(await keys.authenticate(request, one)).scopes).toEqual(['read'])
      }
      const { key: second } = await keys.rotate(id, { overlap: 0 })
      expect(principalOf(await keys.authenticate(request, second)).scopes).toEqual(['read'])
      for (const { scopes } of await keys.list(`${name} shared`)) expect(scopes).toEqual(['read'])
    })

    it('scopes of a principal, of a list and of an event are frozen, and each has its own Dates', async () => {
      const keys = apiKeys({ prefix: 'acme', store: store() })
      const events: ReadonlyArray<string>[] = []
      const end = on('api-key', (event) => 'scopes' in event && events.push(event.scopes))
      const expiresAt = new Date(Date.now() + 3_600_000)
      const { key } = await keys.issue({ owner: `${name} frozen`, scopes: ['read'], expiresAt })
      end()
      const until = expiresAt.getTime()
      expiresAt.setTime(0)
      const first = principalOf(await keys.authenticate(request, key))
      const [listed] = await keys.list(`${name} frozen`)
      for (const scopes of [first.scopes, listed?.scopes ?? [], events[0] ?? []]) changed(scopes)
      first.expiresAt?.setTime(9e12)
      first.createdAt.setTime(0)
      listed?.expiresAt?.setTime(0)
      Object.assign(first, { owner: 'root', name: 'root' })
      const second = principalOf(await keys.authenticate(request, key))
      expect([second.owner, second.name, second.scopes, second.expiresAt?.getTime()]).toEqual([
        `${name} frozen`,
        '',
        ['read'],
        until,
      ])
      expect(second.createdAt.getTime()).toBeGreaterThan(0)
    })

    it('a record that a store takes or returns is not the one that it keeps', async () => {
      const [digest, scopes] = [digestOf(`${name} given`), ['read']]
      const record = { ...recordOf(`${name} given`), owner: `${name} given`, scopes }
      await store().insert(digest, record)
      scopes.push('admin')
      record.owner = 'sam'
      for (let at = 0; at < 2; at++) {
        for (const found of [(await store().find([digest]))?.record, ...(await store().list(`${name} given`))]) {
          expect([found?.owner, found?.scopes]).toEqual([`${name} given`, ['read']])
          Reflect.set(found ?? {}, 'owner', 'root')
          Reflect.set(found?.scopes ?? [], 0, 'admin')
        }
      }
    })
  })

  it('if your own store returns one record to all requests, none of them can change it', async () => {
    const kept = { ...recordOf('one'), scopes: ['read'] }
    const store = { ...memoryKeyStore(), find: () => Promise.resolve({ record: kept }) }
    const keys = apiKeys({ prefix: 'acme', store })
    const { key } = await keys.issue({ owner: 'anna' })
    changed(principalOf(await keys.authenticate(request, key)).scopes)
    expect(kept.scopes).toEqual(['read'])
    kept.scopes.push('write')
    expect(principalOf(await keys.authenticate(request, key)).scopes).toEqual(['read', 'write'])
  })

  it('a pepper and its array can be overwritten later: digests stay the same', async () => {
    const store = memoryKeyStore()
    const [newest, oldest] = [new Uint8Array(randomBytes(32)), new Uint8Array(randomBytes(32))]
    const { key: first } = await apiKeys({ prefix: 'acme', store, pepper: Uint8Array.from(oldest) }).issue({
      owner: 'anna',
    })
    const given = [newest, oldest]
    const keys = apiKeys({ prefix: 'acme', store, pepper: given })
    const { key: second } = await keys.issue({ owner: 'anna' })
    for (const one of given) one.fill(0)
    given.length = 0
    for (const key of [first, second]) expect(E.isRight(await keys.authenticate(request, key))).toBe(true)
  })
})

// Keys at their limits of time, on every store: the exact millisecond, and a clock that is set back.
describe('limits of time', () => {
  const NOW = 1_800_000_000_000
  const HOUR = 3_600_000

  const request = mockRequest({})
  let runs = 0

  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW }))
  afterEach(() => void vi.useRealTimers())

  describeEveryKeyStore((store, name) => {
    const made = () => {
      const keys = apiKeys({ prefix: 'acme', store: store(), adopted: /^old-/ })
      const verdictOf = async (key: string) => {
        const result = await keys.authenticate(request, key)
        return E.isRight(result) ? 'in' : result.left._tag
      }
      return { keys, verdictOf, owner: `${name} ${runs++}` }
    }

    it('K-04 a key is over from the exact millisecond of its end, and cannot be rotated from then on', async () => {
      const { keys, verdictOf, owner } = made()
      const expiresAt = new Date(NOW + 1000)
      const { key, id } = await keys.issue({ owner, expiresAt })
      vi.setSystemTime(NOW + 999)
      expect(await verdictOf(key)).toBe('in')
      vi.setSystemTime(NOW + 1000)
      expect(await verdictOf(key)).toBe('expired')
      await expect(keys.rotate(id, { overlap: HOUR })).rejects.toThrow('expired')
      await expect(keys.issue({ owner, expiresAt })).rejects.toThrow('must not be in the past')
      // A revoked key is invalid, whether it is over or not
      await keys.revoke(id)
      expect(await verdictOf(key)).toBe('invalid')
    })

    it('K-09 an overlap is over from the exact millisecond of its end, and never lasts longer than the key', async () => {
      const { keys, verdictOf, owner } = made()
      const { key, id } = await keys.issue({ owner, expiresAt: new Date(NOW + 500) })
      const { key: second } = await keys.rotate(id, { overlap: 100 })
      const { key: third } = await keys.rotate(id, { overlap: HOUR })
      const all = () => Promise.all([key, second, third].map(verdictOf))
      vi.setSystemTime(NOW + 99)
      expect(await all()).toEqual(['in', 'in', 'in'])
      vi.setSystemTime(NOW + 100)
      expect(await all()).toEqual(['expired', 'in', 'in'])
      vi.setSystemTime(NOW + 500)
      expect(await all()).toEqual(['expired', 'expired', 'expired'])
    })

    it('K-09 a secret that was replaced without an overlap stays over when the clock is set back', async () => {
      const { keys, verdictOf, owner } = made()
      const { key, id } = await keys.issue({ owner })
      const digest = digestOf(`old-${owner}`)
      const { id: adopted } = await keys.adopt(digest, { owner })
      const [next] = [await keys.rotate(id, { overlap: 0 }), await keys.rotate(adopted, { overlap: 0 })]
      for (const ms of [0, -1, -HOUR, HOUR]) {
        vi.setSystemTime(NOW + ms)
        expect([await verdictOf(key), await verdictOf(`old-${owner}`)]).toEqual(['expired', 'expired'])
        expect(await verdictOf(next.key)).toBe('in')
      }
      // The next rotation does not give it another end either, if the clock is behind
      vi.setSystemTime(NOW - HOUR)
      await keys.rotate(id, { overlap: 2 * HOUR })
      expect(await verdictOf(key)).not.toBe('in')
      expect(await verdictOf(next.key)).toBe('in')
    })

    it('K-10 a revoked key stays invalid, whatever the clock says', async () => {
      const { keys, verdictOf, owner } = made()
      const { key, id } = await keys.issue({ owner })
      const { key: second } = await keys.rotate(id, { overlap: HOUR })
      await keys.revoke(id)
      for (const ms of [-HOUR, 0, HOUR]) {
        vi.setSystemTime(NOW + ms)
        expect([await verdictOf(key), await verdictOf(second)]).toEqual(['invalid', 'invalid'])
        await expect(keys.rotate(id, { overlap: HOUR })).rejects.toThrow('revoked')
      }
    })
  })
})
