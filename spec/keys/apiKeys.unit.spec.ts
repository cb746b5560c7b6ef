/**
 * What `apiKeys` promises without a database: its options, the form of a key, what reaches the store, and the last use.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { either as E } from 'fp-ts'
import * as t from 'io-ts'
import { UnavailableError } from 'koa-with-auth'
import { on } from 'koa-with-auth/events'
import { apiKeys, NoLiveKey, type ApiKeys, type ApiKeysOptions } from 'koa-with-auth/keys'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { made, principalOf, sha256, tagOf } from '../support/stores/issuedKeys.js'

const request = mockRequest({})
const issued = async (more?: Partial<ApiKeysOptions<string>>) => {
  const site = made(more)
  return { ...site, ...(await site.keys.issue({ owner: 'anna' })) }
}
afterEach(() => void vi.useRealTimers())

describe('an option that cannot work is a TypeError that names it', () => {
  const store = memoryStore()
  const { members: _, ...five } = store
  it.each<readonly [option: string, given: object]>([
    ['options', null as never],
    ['options', []],
    ['prefixx', { prefixx: 'acme' }],
    ...[undefined, '', 'a', 'Acme', 'acme-live', 'acme_', '_acme', 'a__b', '1acme', 'ü', 'a'.repeat(33), 5].map(
      (prefix) => ['prefix', { prefix }] as const,
    ),
    ...[undefined, null, {}, memoryStore, five].map((one) => ['store', { store: one }] as const),
    ...['owner', {}, (u: unknown) => u].map((owner) => ['owner', { owner }] as const),
    ...['secret', [], new Uint8Array(31), [new Uint8Array(32), new Uint8Array(0)], [5]].map(
      (pepper) => ['pepper', { pepper }] as const,
    ),
    ...['form', /x/g, /x/y].map((adopted) => ['adopted', { adopted }] as const),
    ...[0, -1, Number.NaN, '60', true, null, 2 ** 31].map((touch) => ['touch', { touch }] as const),
    ...[0, Number.POSITIVE_INFINITY, null, '2'].map((timeout) => ['timeout', { timeout }] as const),
  ])('%s: %o', (option, given) => {
    const options = given === null || Array.isArray(given) ? given : { prefix: 'acme', store, ...given }
    expect(() => apiKeys(options as never)).toThrow(TypeError)
    expect(() => apiKeys(options as never)).toThrow(new RegExp(`apiKeys.*${option}`))
  })

  it.each(['ab', 'acme', 'acme_live', 'a1_b2_c3', 'a'.repeat(32)])('the prefix %s works', async (prefix) => {
    const { keys, key } = await issued({ prefix })
    expect(key.startsWith(`${prefix}_`)).toBe(true)
    expect(await tagOf(keys, key)).toBe('in')
  })
})

it.each([undefined, null, 1, {}, ['id']])('the id %j is a TypeError, and the store is not asked', async (id) => {
  const { keys, calls } = made()
  await expect(keys.revoke(id as never)).rejects.toThrow(TypeError)
  await expect(keys.rotate(id as never, { overlap: 0 })).rejects.toThrow(TypeError)
  expect(calls).toEqual([])
})

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

describe('the form of a key', () => {
  it('K-01 is the prefix, the id, 22 random characters, and 6 characters of the CRC32 of all of them', async () => {
    const { keys } = made()
    for (let at = 0; at < 50; at++) {
      const { key, id } = await keys.issue({ owner: 'anna' })
      expect(key).toMatch(/^acme_[0-9A-Za-z]{38}$/)
      expect(key.slice(5, 15)).toBe(id)
      const number = [...key.slice(-6)].reduce((sum, digit) => sum * 62 + alphabet.indexOf(digit), 0)
      expect(number).toBe(crc32(key.slice(0, -6)))
    }
  })

  it('has equally probable characters, and no key occurs twice', async () => {
    const { keys } = made()
    const counts = new Map<string, number>()
    const seen = new Set<string>()
    for (let at = 0; at < 2000; at++) {
      const { key } = await keys.issue({ owner: 'anna' })
      seen.add(key)
      for (const one of key.slice(5, 37)) counts.set(one, (counts.get(one) ?? 0) + 1)
    }
    expect(seen.size).toBe(2000)
    expect(counts.size).toBe(62)
    // 64,000 characters: 1032 of each are expected, with a standard deviation of 32
    for (const count of counts.values()) expect(Math.abs(count - 64_000 / 62)).toBeLessThan(6 * 32)
  })

  it('K-01 is found by the pattern within a string, and nothing else is', async () => {
    const { keys, key } = await issued({ prefix: 'acme' })
    for (const text of [key, `"${key}"`, `KEY=${key}\n`, `x ${key} y`]) expect(keys.pattern.exec(text)?.[0]).toBe(key)
    for (const text of [`x${key}`, `${key}x`, key.slice(0, -1), key.replace('acme', 'acme_live'), key.toUpperCase()]) {
      expect(keys.pattern.test(text)).toBe(false)
    }
    expect(keys.pattern.flags).toBe('')
  })
})

describe('K-03 a string that cannot be a key is malformed, and the store is not asked', () => {
  const { keys, calls } = made()
  const withChecksum = (text: string): string => {
    const digits = Array.from({ length: 6 }, (_, at) => Math.floor(crc32(text) / 62 ** (5 - at)) % 62)
    return text + digits.map((digit) => alphabet.charAt(digit)).join('')
  }
  it.each([
    ['empty', ''],
    ['another prefix', `acmf_${'a'.repeat(38)}`],
    ['another environment', `acme_live_${'a'.repeat(38)}`],
    ['a wrong checksum', `acme_${'a'.repeat(38)}`],
    ['other characters, with the right checksum', withChecksum(`acme_${'a'.repeat(31)}-`)],
    ['characters of no alphabet, with the right checksum', withChecksum(`acme_${'a'.repeat(31)}\u0161`)],
    ['a key that is too short', 'acme_'],
    ['10 MB with the prefix', `acme_${'a'.repeat(10_000_000)}`],
    ['an object', {} as never],
    ['nothing', undefined as never],
  ])('%s', async (_description, key) => {
    calls.length = 0
    expect(await tagOf(keys, key)).toBe('malformed')
    expect(calls).toEqual([])
  })

  it('a key with one character more or less, at either end', async () => {
    const { key } = await keys.issue({ owner: 'anna' })
    calls.length = 0
    for (const wrong of [`${key}0`, `0${key}`, key.slice(1), key.slice(0, -1), `${key} `, ` ${key}`, `${key}\0`]) {
      expect(await tagOf(keys, wrong)).toBe('malformed')
    }
    expect(calls).toEqual([])
  })

  it('any string, except one in 2^32', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
        expect(await tagOf(keys, text)).toBe('malformed')
      }),
    )
    expect(calls).toEqual([])
  })

  it('K-04 a key with a valid checksum that was never issued is invalid, after one look-up', async () => {
    const { key } = await made().keys.issue({ owner: 'anna' })
    expect(await tagOf(keys, key)).toBe('invalid')
    expect(calls).toEqual(['get'])
  })
})

describe('the principal of a key', () => {
  it('K-07 is the record without the digest, with Dates', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
    const { keys } = made()
    const expiresAt = new Date(1_800_000_100_000)
    const { key, id } = await keys.issue({ owner: 'anna', name: 'ci', scopes: ['read', 'write'], expiresAt })
    const createdAt = new Date(1_800_000_000_000)
    const said = { id, owner: 'anna', name: 'ci', scopes: ['read', 'write'], prefix: 'acme', last4: key.slice(-4) }
    expect(await principalOf(keys, key)).toEqual({ ...said, createdAt, expiresAt })
    vi.setSystemTime(expiresAt)
    expect(await tagOf(keys, key)).toBe('expired')
  })

  it('of a replaced secret ends with the secret, so it is not remembered for longer', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1000 })
    const { keys } = made()
    const events: unknown[] = []
    onTestFinished(on('api-key', (event) => events.push(event)))
    const { key, id } = await keys.issue({ owner: 'anna', expiresAt: new Date(5000) })
    const { key: second } = await keys.rotate(id, { overlap: 499.5 })
    const [rotatedAt, last4] = [new Date(1000), second.slice(-4)]
    expect(await principalOf(keys, key)).toMatchObject({ rotatedAt, expiresAt: new Date(1500) })
    expect(await principalOf(keys, second)).toMatchObject({ rotatedAt, last4, expiresAt: new Date(5000) })
    await keys.revoke(id)
    expect(events.filter((one) => (one as { event: string }).event !== 'used')).toMatchObject([
      { event: 'issued', id, owner: 'anna', scopes: [], expiresAt: 5000 },
      { event: 'rotated', id, overlapMs: 500 },
      { event: 'revoked', id },
    ])
  })

  it('K-07 has the owner that the codec decodes; an owner that the codec refuses is an error without its value', async () => {
    interface Account {
      readonly number: number
    }
    const account = new t.Type<Account, string, unknown>(
      'Account',
      (u): u is Account => typeof u === 'object' && u !== null && 'number' in u && typeof u.number === 'number',
      (u, c) => (typeof u === 'string' && /^\d+$/.test(u) ? t.success({ number: Number(u) }) : t.failure(u, c)),
      ({ number }) => String(number),
    )
    const store = memoryStore()
    const keys = apiKeys({ prefix: 'acme', store, owner: account })
    const { key } = await keys.issue({ owner: { number: 7 } })
    const result = await keys.authenticate(request, key)
    expect(E.isRight(result) && result.right.owner).toEqual({ number: 7 })
    expect((await keys.list({ number: 7 })).map(({ owner }) => owner.number)).toEqual([7])
    await expect(keys.issue({ owner: 'anna' as never })).rejects.toThrow('keys.issue({ owner })')
    const other = await made({ store }).keys.issue({ owner: 'top-secret-owner' })
    const error: unknown = await Promise.resolve(keys.authenticate(request, other.key)).catch((e: unknown) => e)
    expect(error).toBeInstanceOf(TypeError)
    expect(String(error)).not.toContain('top-secret-owner')
  })
})

describe('a value that cannot be stored is refused, and nothing is written', () => {
  it.each<readonly [names: RegExp, given: object]>([
    [/keys\.issue/, null as never],
    [/keys\.issue: no option "scope"/, { owner: 'anna', scope: [] }],
    ...[undefined, '', 5, 'a\0b', '\ud800', null].map((owner) => [/keys\.issue\({ owner }\)/, { owner }] as const),
    ...[5, 'a\0b', '\udfff', null].map((name) => [/keys\.issue\({ name }\)/, { owner: 'anna', name }] as const),
    ...['read', [''], ['a b'], ['a"b'], ['a\\b'], [5], ['é'], {}].map(
      (scopes) => [/keys\.issue\({ scopes }\)/, { owner: 'anna', scopes }] as const,
    ),
    ...[5, '2030-01-01', new Date('x'), new Date(0), new Date()].map(
      (expiresAt) => [/keys\.issue\({ expiresAt }\)/, { owner: 'anna', expiresAt }] as const,
    ),
  ])('issue with %s %o', async (names, given) => {
    const { keys, calls } = made()
    await expect(keys.issue(given as never)).rejects.toMatchObject({
      name: 'TypeError',
      message: expect.stringMatching(names) as unknown,
    })
    expect(calls).toEqual([])
  })

  const overlaps = [-1, '5', Number.NaN, 400 * 86_400_000 + 1].map((overlap) => ({ overlap }))
  it.each([undefined, null, {}, { overlap: 1, x: 1 }, ...overlaps])('rotate with %o', async (options) => {
    const { keys: others } = made()
    const { id } = await others.issue({ owner: 'anna' })
    expect((await others.rotate(id, { overlap: 400 * 86_400_000 })).id).toBe(id)
    const { keys, calls } = made()
    await expect(keys.rotate('id', options as never)).rejects.toThrow(TypeError)
    expect(calls).toEqual([])
  })

  it.each(['\0', 'a\0b', '', 5])('list of %j', async (owner) => {
    const { keys, calls } = made()
    await expect(keys.list(owner as never)).rejects.toThrow(/keys\.list\(owner\)/)
    expect(calls).toEqual([])
  })

  it('rotating a key that is not live throws NoLiveKey', async () => {
    const { keys } = made()
    await expect(keys.rotate('none', { overlap: 0 })).rejects.toThrow(NoLiveKey)
  })
})

describe('adopt', () => {
  const old = 'legacy-0123456789abcdef'
  it('K-11 accepts keys of another form by their SHA-256, if the form is an option', async () => {
    const store = memoryStore()
    const { keys, calls } = made({ store, adopted: /^legacy-[0-9a-f]{16}$/ })
    const createdAt = new Date(5)
    const { id } = await keys.adopt(sha256(old).toUpperCase(), { owner: 'anna', name: 'old', createdAt, last4: 'cdef' })
    const said = { id, owner: 'anna', name: 'old', scopes: [], createdAt, last4: 'cdef' }
    expect(await principalOf(keys, old)).toEqual(said)
    calls.length = 0
    expect(await tagOf(keys, 'legacy-x')).toBe('malformed')
    expect(await tagOf(made({ store }).keys, old)).toBe('malformed')
    expect(calls).toEqual([])
    // The next secret has the form of this package
    const { key } = await keys.rotate(id, { overlap: 0 })
    expect(key).toMatch(/^acme_/)
    expect(await tagOf(keys, old)).toBe('expired')
  })

  it('matches the form against 8192 characters, and against no more', async () => {
    const { keys, calls } = made({ adopted: /^a+$/ })
    for (const length of [8193, 10_000_000]) expect(await tagOf(keys, 'a'.repeat(length))).toBe('malformed')
    expect(calls).toEqual([])
    expect(await tagOf(keys, 'a'.repeat(8192))).toBe('invalid')
  })

  it('K-11 throws an Error for a digest that exists, and a TypeError for a value that is not a digest', async () => {
    const { keys } = made()
    await keys.adopt(sha256(old), { owner: 'anna' })
    await expect(keys.adopt(sha256(old), { owner: 'sam' })).rejects.toThrow(/a key with this digest exists already/)
    for (const digest of [
      '',
      'abc',
      old,
      sha256(old).slice(1),
      `0${sha256(old)}`,
      `${sha256(old)}\n`,
      Buffer.alloc(32) as never,
    ]) {
      await expect(keys.adopt(digest, { owner: 'anna' })).rejects.toThrow(/digest must be the SHA-256/)
    }
    for (const more of [{ last4: '12345' }, { last4: 5 }, { createdAt: 5 }, { createdAt: new Date('x') }, { id: '' }]) {
      await expect(keys.adopt(sha256('x'), { owner: 'anna', ...more } as never)).rejects.toThrow(TypeError)
    }
  })
})

describe('pepper', () => {
  const [first, second] = [new Uint8Array(randomBytes(32)), new Uint8Array(randomBytes(64))]
  it('K-02 is needed to find keys; a newer one is put first, and an older one can be removed later', async () => {
    const store = memoryStore()
    const before = made({ store, pepper: first })
    const { key } = await before.keys.issue({ owner: 'anna' })
    const during = made({ store, pepper: [second, first] })
    expect(await tagOf(during.keys, key)).toBe('in')
    expect(during.calls.filter((name) => name === 'get')).toEqual(['get'])
    const { key: newer } = await during.keys.issue({ owner: 'anna' })
    const after = made({ store, pepper: [second] })
    expect(await tagOf(after.keys, newer)).toBe('in')
    expect(await tagOf(after.keys, key)).toBe('invalid')
    expect(await tagOf(made({ store }).keys, newer)).toBe('invalid')
  })

  it('K-11 an adopted key that exists under an older pepper cannot be adopted again, because a second key would outlive its revocation', async () => {
    const store = memoryStore()
    const old = 'legacy-0123456789abcdef'
    const adopted = /^legacy-/
    const { id } = await made({ store, adopted, pepper: first }).keys.adopt(sha256(old), { owner: 'anna' })
    const { keys, calls } = made({ store, adopted, pepper: [second, first] })
    await expect(keys.adopt(sha256(old), { owner: 'anna' })).rejects.toThrow(/a key with this digest exists already/)
    expect(calls).toEqual(['get'])
    await keys.revoke(id)
    expect(await tagOf(keys, old)).toBe('invalid')
    expect(await keys.list('anna')).toHaveLength(1)
    // Another key is adopted, under the newest pepper
    await keys.adopt(sha256('legacy-1'), { owner: 'anna' })
    expect(await tagOf(made({ store, adopted, pepper: second }).keys, 'legacy-1')).toBe('in')
  })

  it('K-02 what is stored is neither the SHA-256 nor the pepper, for adopted keys, too', async () => {
    const store = memoryStore()
    const { keys, given } = made({ store, pepper: first, adopted: /^old$/ })
    const plain = made({ store })
    const stored = (all: typeof given) => all.flatMap(([, text]) => /"digest":"(\w+)"/.exec(String(text))?.[1] ?? [])
    const { key } = await keys.issue({ owner: 'anna' })
    await keys.adopt(sha256('old'), { owner: 'anna' })
    // An upgrade must not change the digest, or no key would be valid after it
    const seasoned = (text: string) => createHmac('sha256', first).update(sha256(text), 'hex').digest('hex')
    expect(stored(given)).toEqual([seasoned(key), seasoned('old')])
    const { key: another } = await plain.keys.issue({ owner: 'anna' })
    expect(stored(plain.given)).toEqual([sha256(another)])
    expect(await tagOf(keys, 'old')).toBe('in')
  })
})

describe('touch', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve))

  it('K-06 writes the last use at most once in the interval, whatever the number of requests', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_000_000 })
    const { keys, calls, key } = await issued()
    await Promise.all(Array.from({ length: 50 }, async () => keys.authenticate(request, key)))
    for (let at = 0; at < 50; at++) await keys.authenticate(request, key)
    await settled()
    expect(calls.filter((name) => name === 'update')).toHaveLength(1)
    vi.setSystemTime(1_059_999)
    await keys.authenticate(request, key)
    expect(calls.filter((name) => name === 'update')).toHaveLength(1)
    vi.setSystemTime(1_060_000)
    await keys.authenticate(request, key)
    await settled()
    expect(calls.filter((name) => name === 'update')).toHaveLength(2)
    expect((await keys.list('anna'))[0]?.lastUsedAt).toEqual(new Date(1_060_000))
  })

  it('reads the last use that another process wrote', async () => {
    const store = memoryStore()
    const [one, two] = [made({ store }), made({ store })]
    const { key } = await one.keys.issue({ owner: 'anna' })
    await one.keys.authenticate(request, key)
    await settled()
    await two.keys.authenticate(request, key)
    await settled()
    expect([...one.calls, ...two.calls].filter((name) => name === 'update')).toHaveLength(1)
  })

  it('K-06 is never awaited, and its failure changes no response', async () => {
    const store = memoryStore()
    let touched = 0
    let release = (): void => {}
    const touching = (update: () => Promise<boolean>): Store => ({ ...store, update: () => (touched++, update()) })
    const hanging = touching(() => new Promise((resolve) => (release = () => resolve(true))))
    const failing = touching(() => Promise.reject(new Error('SQLITE_BUSY')))
    const throwing = touching(() => {
      throw new Error('closed')
    })
    for (const bad of [hanging, failing, throwing]) {
      // This never ends: a request that waited for it would get no response
      const { keys, key } = await issued({ store: bad, timeout: 600_000 })
      expect(await tagOf(keys, key)).toBe('in')
    }
    release()
    expect(touched).toBe(3)
    const { keys, key } = await issued({ store: hanging, timeout: 20 })
    expect(await tagOf(keys, key)).toBe('in')
    // The timeout of the store rejects, and the rejection is caught
    await new Promise((resolve) => setTimeout(resolve, 40))
    expect(touched).toBe(4)
  })

  it.each<[string, ApiKeysOptions<string>['touch'], (keys: ApiKeys<string>, id: string) => unknown]>([
    ['a key that was revoked', 1, (keys, id) => keys.revoke(id)],
    ['a key that was replaced', 1, (keys, id) => keys.rotate(id, { overlap: 0 })],
    ['any key with false', false, () => {}],
  ])('writes nothing for %s', async (_what, touch, change) => {
    const { keys, calls, key, id } = await issued({ touch })
    await change(keys, id)
    calls.length = 0
    await keys.authenticate(request, key)
    await settled()
    expect(calls).not.toContain('update')
  })
})

it('list returns the oldest key first, revoked keys included', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 1000 })
  const { keys } = made()
  const ids: string[] = []
  for (const name of ['a', 'b', 'c']) {
    ids.push((await keys.issue({ owner: 'anna', name })).id)
    vi.setSystemTime(Date.now() + 1000)
  }
  await keys.adopt(sha256('old'), { owner: 'anna', name: 'older', createdAt: new Date(1) })
  await keys.revoke(ids[1] ?? '')
  const listed = await keys.list('anna')
  expect(listed.map(({ name, revokedAt }) => [name, revokedAt?.getTime()])).toEqual([
    ['older', undefined],
    ['a', undefined],
    ['b', 4000],
    ['c', undefined],
  ])
})

it('a store in memory decides in the tick in which it is asked', async () => {
  const { keys, key, id } = await issued()
  const verdicts = [keys.authenticate(request, key), keys.authenticate(request, `${key}x`)]
  await keys.revoke(id)
  verdicts.push(keys.authenticate(request, key))
  expect(verdicts.map((one) => one instanceof Promise)).toEqual([false, false, false])
})

it('a store that is silent for two seconds is an outage', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { keys, key } = await issued({ store: { ...memoryStore(), get: () => new Promise(() => {}) } })
  const settled = vi.fn()
  void Promise.resolve(keys.authenticate(request, key)).catch(settled)
  await vi.advanceTimersByTimeAsync(1999)
  expect(settled).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  expect(settled).toHaveBeenCalledWith(expect.any(UnavailableError))
})
