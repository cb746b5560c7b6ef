/**
 * `apiKeys` issues and verifies API keys. A key is shown once, when it is issued. Only a digest is kept, so somebody who reads the
 * database cannot use a key. `authenticate` is the hook of any kind that reads one value.
 *
 * | sent                                                       | failure       |
 * |------------------------------------------------------------|---------------|
 * | another form, another prefix, a wrong checksum: no look-up | `malformed`   |
 * | an unknown digest, or a revoked key                        | `invalid`     |
 * | an expired key, or a secret after its overlap              | `expired`     |
 * | anything while the store fails or is silent                | `unavailable` |
 *
 * It counts no guesses: `throttled` of `koa-with-auth` does.
 */
import { randomUUID } from 'node:crypto'
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import type { Evaluation } from '../core/Evaluation.js'
import { expired, invalid, malformed, type AuthError } from '../core/AuthError.js'
import type { ApiKeyEvent } from '../core/events/ApiKeyEvent.js'
import { apiKeyChanges, report } from '../core/events/channels.js'
import { declareFactory } from '../core/hooks.js'
import { within } from '../stores/within.js'
import { apiKeyOf, type ApiKey } from './ApiKey.js'
import { digestsWith } from './digests.js'
import { checkAdopted, checkIssued, checkOverlap, ownerIn, ownerText, type AdoptedKey, type NewKey } from './checks.js'
import { keyForm } from './keyForm.js'
import { isKeyRecord, type FoundKey, type KeyRecord } from './KeyStore.js'
import { decided, type ApiKeysOptions } from './options.js'
import { touching } from './touching.js'

/** A new key. `key` is returned this once, and stored nowhere. */
export interface IssuedKey {
  readonly key: string
  readonly id: string
}

/** The key cannot get a new secret: the id is unknown, or the key is revoked or expired. */
export class NoLiveKey extends Error {
  override readonly name = 'NoLiveKey'
}

/** The API keys of an application. In an outage, methods that ask the store reject with an `UnavailableError`, a 503. */
export interface ApiKeys<O> {
  /** Makes a key. Rejects with a TypeError for a value that cannot be kept, such as an `expiresAt` in the past. */
  readonly issue: (key: NewKey<O>) => Promise<IssuedKey>
  /**
   * Gives a key a new secret. The record stays. Older secrets work for another `overlap` milliseconds; with 0 they stop
   * immediately. Rejects with `NoLiveKey` if there is no such key.
   */
  readonly rotate: (id: string, options: { readonly overlap: number }) => Promise<IssuedKey>
  /**
   * Revokes a key with all its secrets, for ever. It stays in the list. Resolves to `true` if none of its secrets works any more,
   * and to `false` if there is no such key. Rejects if the store does not know, such as a Redis that has lost a part of the key.
   */
  readonly revoke: (id: string) => Promise<boolean>
  /** Resolves to the keys of an owner, including revoked and expired ones, the oldest first. */
  readonly list: (owner: O) => Promise<ReadonlyArray<ApiKey<O>>>
  /**
   * Adds a key of which only the SHA-256 is known, in hex. Rejects with an Error if it exists already. Adopt a key only
   * once: the store forgets a replaced secret after some time, and if it is adopted again, it works again.
   */
  readonly adopt: (digest: string, key: AdoptedKey<O>) => Promise<{ readonly id: string }>
  /** The hook: who a key belongs to. */
  readonly authenticate: (request: Request, key: string) => Evaluation<ApiKey<O>>
  /** A regular expression that finds keys in a string, for secret scanners. It does not verify the checksum. */
  readonly pattern: RegExp
}

const MAX_LENGTH = 8192

const isThere = (): Error => new Error('apiKeys: a key with this digest exists already')

const made = (event: 'issued' | 'adopted', { id, owner, scopes, expiresAt }: KeyRecord): ApiKeyEvent => ({
  event,
  id,
  owner,
  scopes,
  ...(expiresAt !== undefined && { expiresAt }),
})

/**
 * API keys with a prefix, in a store. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { apiKeyHeader } from 'koa-with-auth'
 * import { apiKeys, memoryKeyStore } from 'koa-with-auth/keys'
 *
 * const keys = apiKeys({ prefix: 'acme', store: memoryKeyStore() })
 * const { key, id } = await keys.issue({ owner: 'anna', name: 'ci', scopes: ['read'] }) // the only time it is seen
 * assert.match(key, keys.pattern)
 *
 * // its principal is an ApiKey: { id, owner: 'anna', name: 'ci', scopes: ['read'], ... }
 * const machine = apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate })
 *
 * const { key: second } = await keys.rotate(id, { overlap: 86_400_000 }) // both are good for a day
 * await keys.revoke(id) // none is
 * assert.deepStrictEqual((await keys.list('anna')).map(({ name }) => name), ['ci'])
 */
export const apiKeys = <O = string>(options: ApiKeysOptions<O>): ApiKeys<O> => {
  const { prefix, store, owner: codec, peppers, adopted, touch: interval, timeout } = decided(options)
  const form = keyForm(prefix)
  const digests = digestsWith(peppers)
  const timed = within('api-keys', timeout)
  const touch = touching(interval, (id, at) => timed(() => store.touch(id, at)))

  // Safe: `options.owner` decodes to it; by default it is a string
  const seen = (record: KeyRecord, until?: number): ApiKey<O> => apiKeyOf(record, ownerIn(codec, record) as O, until)
  const verdict = (found: FoundKey | undefined): E.Either<AuthError, ApiKey<O>> => {
    if (found === undefined) return E.left(invalid)
    const { record, until } = found
    if (!isKeyRecord(record)) throw new TypeError('apiKeys({ store }): find must resolve to a KeyRecord')
    if (record.revokedAt !== undefined) return E.left(invalid)
    const now = Date.now()
    if (Math.min(record.expiresAt ?? Infinity, until ?? Infinity) <= now) return E.left(expired)
    const key = seen(record, until)
    touch(record.id, now, record.lastUsedAt)
    return E.right(key)
  }
  const insert = async (digest: string, record: KeyRecord): Promise<void> => {
    if (!(await timed(() => store.insert(digest, record)))) throw isThere()
  }
  const reachesStore = (key: string): boolean =>
    form.isKey(key) || (adopted !== undefined && key.length <= MAX_LENGTH && adopted.test(key))

  return {
    issue: async (given) => {
      const record = { ...checkIssued(codec, given), id: randomUUID(), createdAt: Date.now() }
      const key = form.make()
      await insert(digests.of(key), { ...record, prefix, last4: key.slice(-4) })
      report(apiKeyChanges)(() => made('issued', record))
      return { key, id: record.id }
    },
    rotate: async (id, rotation) => {
      const overlap = checkOverlap(rotation)
      const key = form.make()
      const at = Date.now()
      // for no overlap it is 1, because the time now may be in the future of another clock, or of this one if it is set
      // back
      const until = overlap === 0 ? 1 : at + overlap
      const change = { digest: digests.of(key), prefix, last4: key.slice(-4), at, until }
      if (!(await timed(() => store.rotate(id, change)))) {
        throw new NoLiveKey('keys.rotate(id): there is no such key, or it is revoked or expired; issue another')
      }
      report(apiKeyChanges)(() => ({ event: 'rotated', id, overlapMs: overlap }))
      return { key, id }
    },
    revoke: async (id) => {
      const isRevoked = await timed(() => store.revoke(id, Date.now()))
      if (isRevoked) report(apiKeyChanges)(() => ({ event: 'revoked', id }))
      return isRevoked
    },
    list: async (owner) => {
      const text = ownerText('keys.list(owner)', codec, owner)
      const records = await timed(() => store.list(text))
      return records.toSorted((a, b) => a.createdAt - b.createdAt).map((record) => seen(record))
    },
    adopt: async (digest, given) => {
      const record = { createdAt: Date.now(), ...checkAdopted(codec, digest, given), id: randomUUID() }
      const [newest, ...older] = digests.adopted(digest)
      if (older.length > 0 && (await timed(() => store.find(older))) !== undefined) throw isThere()
      await insert(newest, record)
      report(apiKeyChanges)(() => made('adopted', record))
      return { id: record.id }
    },
    authenticate: (_request, key) => {
      if (typeof key !== 'string' || !reachesStore(key)) return E.left(malformed)
      return timed(() => store.find(digests.all(key))).then(verdict)
    },
    pattern: form.pattern,
  }
}

declareFactory('apiKeys', apiKeys)
