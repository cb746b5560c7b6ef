/** Keys over every engine: what interrupts a change, texts that nobody wrote, no shared objects, and exact limits of time. */
import { createHash, randomBytes } from 'node:crypto'
import { UnavailableError } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { NoLiveKey, type ApiKeys, type IssuedKey } from 'koa-with-auth/keys'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { evidenceOf } from '../../src/core/Evidence.js'
import { recordDigest } from '../../src/core/events.js'
import { ends } from '../../src/ends/ends.js'
import { KeySource } from '../../src/keys/keysInStore.js'
import { stoppedClock } from '../support/runs/clock.js'
import { ownEnds } from '../support/runs/ownEnds.js'
import { made, principalOf, sha256, tagOf } from '../support/stores/issuedKeys.js'
import { dyingAt, overEveryStore } from '../support/stores/stores.js'

describe('K-08 a request is one question', () => {
  const pepper = [randomBytes(32), randomBytes(32)]

  it.each<readonly [string, object]>([
    ['plain', {}],
    ['with peppers', { pepper }],
    ['with adopted keys of any form', { pepper, adopted: /./ }],
  ])('for a key that is good, unknown, replaced, expired or revoked: %s', async (_how, options) => {
    const clock = stoppedClock()
    const { keys, calls, given } = made({ touch: false, ...options })
    const issued = await Promise.all([1, 2, 3].map(() => keys.issue({ owner: 'anna' })))
    const [good, replaced, revoked] = issued as [IssuedKey, IssuedKey, IssuedKey]
    const expired = await keys.issue({ owner: 'anna', expiresAt: new Date(Date.now() + 1) })
    const unknown = await made().keys.issue({ owner: 'anna' })
    await keys.rotate(replaced.id, { overlap: 0 })
    await keys.revoke(revoked.id)
    clock.move(5)
    calls.length = 0
    const tags = []
    for (const { key } of [good, unknown, replaced, expired, revoked]) tags.push(await tagOf(keys, key))
    expect(tags).toEqual(['in', 'invalid', 'expired', 'expired', 'invalid'])
    expect(calls).toEqual(Array(5).fill('get'))
    const names = given
      .flat(3)
      .map(String)
      .filter((one) => one.includes('/'))
    const purposes = new Set(names.map((one) => one.split('/', 2).join('/')))
    expect(purposes).toEqual(new Set(['koa-with-auth/api-key', 'koa-with-auth/api-keys-of']))
  })

  it('a change is one question and one write of one key; a new key has its name in the set of its owner first', async () => {
    const { keys, calls, given } = made()
    const { id } = await keys.issue({ owner: 'anna' })
    expect(calls.splice(0)).toEqual(['add', 'insert'])
    // an upgrade that changes this name finds no key of before
    const name = createHash('sha256')
      .update(JSON.stringify(['acme', id]))
      .digest('base64url')
    expect(given[1]?.[0]).toBe(`koa-with-auth/api-key/${name}`)
    await keys.rotate(id, { overlap: 1000 })
    await keys.revoke(id)
    expect(calls.splice(0)).toEqual(['get', 'update', 'get', 'update'])
    expect(given.filter((args) => args.length === 4)).toHaveLength(2)
    expect(await keys.revoke(id)).toBe(true)
    expect(calls).toEqual(['get'])
  })

  it('an id that was given before is given to no other key, and shows no key of another owner', async () => {
    const store = memoryStore()
    let taken = 3
    const crowded: Store = {
      ...store,
      insert: (...args) => (taken-- > 0 ? Promise.resolve(false) : store.insert(...args)),
    }
    const { keys, given: annas } = made({ store: crowded })
    const { key, id } = await keys.issue({ owner: 'anna' })
    expect([await tagOf(keys, key), (await keys.list('anna')).map((one) => one.id)]).toEqual(['in', [id]])
    const { given, keys: others } = made({ store })
    await others.issue({ owner: 'bert' })
    const set = String(given[0]?.[0])
    for (const member of await store.members(set)) expect(member).toMatch(/^koa-with-auth\/api-key\//)
    // as if an id of anna's had been drawn again
    for (const member of await store.members(String(annas[0]?.[0]))) await store.add(set, member, Infinity)
    expect(await others.list('bert')).toHaveLength(1)
  })
})

describe('K-12 a prefix has keys of its own in a store', () => {
  it('no other prefix lists, rotates, revokes or accepts them', async () => {
    const store = memoryStore()
    const [live, test] = [made({ store, prefix: 'acme_live' }).keys, made({ store, prefix: 'acme_test' }).keys]
    const { key, id } = await live.issue({ owner: 'anna' })
    expect([await test.list('anna'), await test.revoke(id), await tagOf(test, key)]).toEqual([[], false, 'malformed'])
    await expect(test.rotate(id, { overlap: 0 })).rejects.toBeInstanceOf(NoLiveKey)
    expect([await tagOf(live, key), (await live.list('anna')).length]).toEqual(['in', 1])
  })
})

// What is read was written by somebody else, or by another version
describe('K-12 a text that is no record lets nobody in, and is an outage', () => {
  interface Kept {
    readonly secrets: ReadonlyArray<{ readonly digest: string }>
  }
  const fields: ReadonlyArray<object> = [
    ...[{ id: 1 }, { owner: undefined }, { name: null }, { prefix: 1 }, { last4: 4 }],
    ...[{ scopes: 'admin' }, { scopes: [1] }, { secrets: undefined }, { createdAt: '1' }],
    ...[{ expiresAt: '2030' }, { revokedAt: null }, { rotatedAt: '1' }, { lastUsedAt: true }],
  ]
  it.each<readonly [string, (record: Kept) => unknown]>([
    ['no JSON', () => undefined],
    ['null', () => null],
    ['an array', ({ secrets }) => secrets],
    ['secrets that are strings', (record) => ({ ...record, secrets: [record.secrets[0]?.digest] })],
    ['a second secret without a digest', ({ secrets, ...record }) => ({ ...record, secrets: [...secrets, {}] })],
    ['an end as text', (record) => ({ ...record, secrets: [{ ...record.secrets[0], until: '9e12' }] })],
    ['a prototype', (record) => JSON.parse(`{"__proto__":${JSON.stringify(record)}}`)],
    ...fields.map((wrong) => [`a record with ${JSON.stringify(wrong)}`, (record: Kept) => ({ ...record, ...wrong })] as const), // prettier-ignore
  ])('%s', async (_what, change) => {
    const store = memoryStore()
    const { keys, given } = made({ store, touch: false })
    const { key, id } = await keys.issue({ owner: 'anna' })
    const [name, text] = given[1] as [string, string]
    await store.update(name, JSON.stringify(change(JSON.parse(text) as Kept)) ?? 'rubbish', 60_000)
    const changes = [() => keys.list('anna'), () => keys.revoke(id), () => keys.rotate(id, { overlap: 0 })]
    for (const ask of [() => tagOf(keys, key), ...changes]) await expect(ask()).rejects.toBeInstanceOf(UnavailableError)
  })

  it('the record of another key is an outage for a change, and no key for a request', async () => {
    const kept = memoryStore()
    const { keys } = made({ store: kept })
    const [one, other] = [await keys.issue({ owner: 'anna' }), await keys.issue({ owner: 'bert' })]
    const { given, keys: noted } = made({ store: kept })
    for (const { key } of [one, other]) await tagOf(noted, key)
    const [first = '', second = ''] = given.filter(([names]) => Array.isArray(names)).map(([names]) => String(names))
    // a client whose connection is out of step
    const get: Store['get'] = (names) => kept.get(names.map((name) => (name === first ? second : first)))
    const { keys: crossed } = made({ store: { ...kept, get } })
    expect(await tagOf(crossed, one.key)).toBe('invalid')
    await expect(crossed.revoke(one.id)).rejects.toBeInstanceOf(UnavailableError)
    await expect(crossed.rotate(one.id, { overlap: 0 })).rejects.toBeInstanceOf(UnavailableError)
    expect([await tagOf(keys, one.key), await tagOf(keys, other.key)]).toEqual(['in', 'in'])
    // a change that would change nothing is no answer about the key that was meant
    await keys.revoke(other.id)
    await expect(crossed.revoke(one.id)).rejects.toBeInstanceOf(UnavailableError)
  })
})

interface World extends IssuedKey {
  readonly keys: ApiKeys<string>
  readonly owner: string
  readonly repeat: () => Promise<unknown>
}

overEveryStore((store, name) => {
  let runs = 0

  describe.each([
    ['before', false],
    ['after', true],
  ])('K-10 the database dies %s a write of', (_when, after) => {
    /** Makes a change over a store that dies at each of its writes in turn, and what is checked after each death. */
    const atEachWrite = async (
      change: (keys: ApiKeys<string>, id: string, owner: string) => Promise<unknown>,
      check: (world: World) => Promise<void>,
    ) => {
      let deaths = 0
      for (let write = 1; ; write++) {
        const { keys } = made({ store: store(), touch: false, adopted: /^old-/ })
        const owner = `${name} ${after} ${runs++}`
        const { key, id } = await keys.issue({ owner })
        const { store: dying, died } = dyingAt(store(), write, after)
        const { keys: interrupted } = made({ store: dying, touch: false, adopted: /^old-/ })
        const failure = await change(interrupted, id, owner).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (!died()) break
        deaths++
        expect(failure).toBeInstanceOf(UnavailableError)
        await check({ keys, key, id, owner, repeat: () => change(keys, id, owner) })
      }
      return deaths
    }

    it('issue: all that works is listed, and can be revoked', async () => {
      const deaths = await atEachWrite(
        (keys, _id, owner) => keys.issue({ owner }),
        async ({ keys, key, id, owner, repeat }) => {
          const listed = await keys.list(owner)
          expect(listed.map((one) => one.id)).toContain(id)
          expect(listed.length).toBeLessThanOrEqual(2)
          await repeat()
          expect(await keys.list(owner)).toHaveLength(listed.length + 1)
          for (const one of await keys.list(owner)) expect(await keys.revoke(one.id)).toBe(true)
          expect(await tagOf(keys, key)).toBe('invalid')
        },
      )
      expect(deaths).toBe(2)
    })

    it('adopt: the key works only if it is listed', async () => {
      let adopted = 0
      await atEachWrite(
        (keys, _id, owner) => keys.adopt(sha256(`old-${owner}`), { owner }),
        async ({ keys, owner }) => {
          const listed = (await keys.list(owner)).length
          expect(await tagOf(keys, `old-${owner}`)).toBe(listed === 2 ? 'in' : 'invalid')
          adopted++
        },
      )
      expect(adopted).toBe(2)
    })

    it('rotate: the key is as it was, or has a secret that nobody knows; a repetition gives one that works', async () => {
      const deaths = await atEachWrite(
        (keys, id) => keys.rotate(id, { overlap: 0 }),
        async ({ keys, key, id, owner }) => {
          expect(await tagOf(keys, key)).toBe(after ? 'expired' : 'in')
          const { key: next } = await keys.rotate(id, { overlap: 0 })
          expect([await tagOf(keys, key), await tagOf(keys, next)]).toEqual([after ? 'invalid' : 'expired', 'in'])
          expect(await keys.list(owner)).toHaveLength(1)
        },
      )
      expect(deaths).toBe(1)
    })

    it('revoke: the key is as it was, or revoked; a repetition revokes it', async () => {
      const deaths = await atEachWrite(
        (keys, id) => keys.revoke(id),
        async ({ keys, key, id }) => {
          expect(await tagOf(keys, key)).toBe(after ? 'invalid' : 'in')
          expect([await keys.revoke(id), await tagOf(keys, key)]).toEqual([true, 'invalid'])
        },
      )
      expect(deaths).toBe(1)
    })
  })
})

// A store shares no object with the application: changing an object changes no key, and no principal of another request.
describe('no object is shared', () => {
  it('scopes that were given to issue or adopt can change later: the key keeps its scopes', async () => {
    const { keys } = made({ adopted: /^old$/ })
    const given = ['read']
    const { key, id } = await keys.issue({ owner: 'anna', scopes: given })
    await keys.adopt(sha256('old'), { owner: 'anna', scopes: given })
    given.push('admin')
    const { key: second } = await keys.rotate(id, { overlap: 1000 })
    for (const one of [key, 'old', second]) expect((await principalOf(keys, one)).scopes).toEqual(['read'])
    for (const { scopes } of await keys.list('anna')) expect(scopes).toEqual(['read'])
  })

  it('scopes of a principal, of a list and of an event are frozen, and each has its own Dates; a text is parsed once', async () => {
    const { keys } = made({ touch: false })
    const events: ReadonlyArray<string>[] = []
    onTestFinished(on('api-key', (event) => 'scopes' in event && events.push(event.scopes)))
    const expiresAt = new Date(Date.now() + 3_600_000)
    const until = expiresAt.getTime()
    const { key, id } = await keys.issue({ owner: 'anna', scopes: ['read'], expiresAt })
    expiresAt.setTime(0)
    const parse = vi.spyOn(JSON, 'parse')
    onTestFinished(() => parse.mockRestore())
    const first = await principalOf(keys, key)
    first.expiresAt?.setTime(9e12)
    first.createdAt.setTime(0)
    Object.assign(first, { owner: 'root', name: 'root' })
    const second = await principalOf(keys, key)
    expect(second).toMatchObject({ owner: 'anna', name: '', scopes: ['read'], expiresAt: new Date(until) })
    expect(second.createdAt.getTime()).toBeGreaterThan(0)
    expect(parse).toHaveBeenCalledTimes(1)
    const [listed] = await keys.list('anna')
    listed?.expiresAt?.setTime(0)
    // what a handler without TypeScript could do
    for (const scopes of [first.scopes, listed?.scopes ?? [], events[0] ?? []])
      expect(() => Object.assign(scopes, { 0: 'admin' })).toThrow(TypeError)
    expect((await keys.list('anna'))[0]?.expiresAt).toEqual(new Date(until))
    await keys.revoke(id)
    expect(await tagOf(keys, key)).toBe('invalid')
  })

  it('a pepper and its array can be overwritten later: digests stay the same', async () => {
    const store = memoryStore()
    const [newest, oldest] = [new Uint8Array(randomBytes(32)), new Uint8Array(randomBytes(32))]
    const { key: first } = await made({ store, pepper: Uint8Array.from(oldest) }).keys.issue({ owner: 'anna' })
    const given = [newest, oldest]
    const { keys } = made({ store, pepper: given })
    const { key: second } = await keys.issue({ owner: 'anna' })
    for (const one of given) one.fill(0)
    given.length = 0
    expect([await tagOf(keys, first), await tagOf(keys, second)]).toEqual(['in', 'in'])
  })
})

// Keys at their limits of time, on every store: the exact millisecond, and a clock that is set back.
describe('limits of time', () => {
  const NOW = 1_800_000_000_000
  const HOUR = 3_600_000

  let runs = 0

  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: NOW }))
  afterEach(() => void vi.useRealTimers())

  overEveryStore((store, name) => {
    const own = () => {
      const { keys } = made({ store: store(), adopted: /^old-/ })
      return { keys, verdictOf: (key: string) => tagOf(keys, key), owner: `${name} ${runs++}` }
    }

    it('K-04 a key is over from the exact millisecond of its end, and cannot be rotated from then on', async () => {
      const { keys, verdictOf, owner } = own()
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
      const { keys, verdictOf, owner } = own()
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

    it('K-09 K-10 a secret that was replaced without an overlap, or revoked, stays over when the clock is set back', async () => {
      const { keys, verdictOf, owner } = own()
      const { key, id } = await keys.issue({ owner })
      const digest = sha256(`old-${owner}`)
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
      await keys.revoke(id)
      vi.setSystemTime(NOW - 2 * HOUR)
      expect(await verdictOf(next.key)).toBe('invalid')
      await expect(keys.rotate(id, { overlap: HOUR })).rejects.toThrow('revoked')
    })
  })
})

it.each<readonly [string, (keys: ApiKeys<string>, id: string) => Promise<unknown>]>([
  ['rotation without an overlap', (keys, id) => keys.rotate(id, { overlap: 0 })],
  ['revocation', (keys, id) => keys.revoke(id)],
])('a %s ends work that is still running, here and in other processes', async (_change, change) => {
  ownEnds()
  const publish = vi.fn((_message: string) => {})
  const { keys } = made({ signals: { publish, subscribe: () => {} } })
  const { key, id } = await keys.issue({ owner: 'anna' })
  const request = mockRequest({})
  const end = evidenceOf(await keys.authenticate(request, key)).accepted[0]!.endFor(request)!
  const cause = new Promise((resolve) => ends().open(end, { abort: (reason) => resolve(reason.cause) }))
  // it is looked up when it is opened
  await expect.poll(() => end.asking).toBe('no')
  await change(keys, id)
  expect(await cause).toBe('revoked')
  expect(publish).toHaveBeenCalledWith(expect.stringContaining(`"about":"${recordDigest('api-key', id)}"`))
})

it.each([
  [5000, undefined, 5000, 'expired'],
  [5000, 1500, 1500, 'revoked'],
  [1000, 1500, 1000, 'expired'],
  [undefined, 1500, 1500, 'revoked'],
  [undefined, undefined, Infinity, 'expired'],
])('a key that expires at %s, with a secret that ends at %s, ends at %s', (expiresAt, until, at, cause) => {
  // Safe: an end reads no more before it is asked
  const end = new KeySource({ record: { id: 'a', expiresAt }, until } as never, {} as never, {} as never).endFor()
  expect([end.at, end.cause]).toEqual([at, cause])
})
