/** API keys in this process, for development and tests. They are lost when it ends, and no other process knows them. */
import { declareFactory } from '../core/options.js'
import { frozenScopes, type FoundKey, type KeyRecord, type KeyStore, type Rotation } from './KeyStore.js'

interface Kept {
  record: KeyRecord
  readonly digests: Set<string>
}

// `find` returns the stored record itself, so it must not be changed
const frozen = (record: KeyRecord): KeyRecord => Object.freeze({ ...record, scopes: frozenScopes(record.scopes) })

/**
 * A store that keeps API keys in memory.
 *
 * @example
 * import { apiKeys, memoryKeyStore } from 'koa-with-auth/keys'
 *
 * const keys = apiKeys({ prefix: 'acme', store: memoryKeyStore() })
 */
export const memoryKeyStore = (): KeyStore => {
  const records = new Map<string, Kept>()
  const digests = new Map<string, { readonly kept: Kept; readonly until?: number }>()
  const owners = new Map<string, Kept[]>()
  const replace = (kept: Kept, { digest, at, until }: Rotation): void => {
    for (const old of kept.digests) {
      const own = digests.get(old)?.until ?? Infinity
      if (own <= at) {
        digests.delete(old)
        kept.digests.delete(old)
      } else digests.set(old, { kept, until: Math.min(own, until) })
    }
    kept.digests.add(digest)
    digests.set(digest, { kept })
  }
  const insert = (digest: string, record: KeyRecord): boolean => {
    if (digests.has(digest) || records.has(record.id)) return false
    const kept: Kept = { record: frozen(record), digests: new Set([digest]) }
    records.set(record.id, kept)
    digests.set(digest, { kept })
    const others = owners.get(record.owner)
    if (others === undefined) owners.set(record.owner, [kept])
    else others.push(kept)
    return true
  }
  const find = (sought: ReadonlyArray<string>): FoundKey | undefined => {
    for (const one of sought) {
      const found = digests.get(one)
      if (found === undefined) continue
      const { record } = found.kept
      return found.until === undefined ? { record } : { record, until: found.until }
    }
    return undefined
  }
  const rotate = (id: string, rotation: Rotation): boolean => {
    const kept = records.get(id)
    if (kept === undefined || digests.has(rotation.digest)) return false
    const { revokedAt, expiresAt = Infinity } = kept.record
    if (revokedAt !== undefined || expiresAt <= rotation.at) return false
    replace(kept, rotation)
    const { prefix, last4, at } = rotation
    kept.record = frozen({ ...kept.record, prefix, last4, rotatedAt: at })
    return true
  }
  const revoke = (id: string, at: number): boolean => {
    const kept = records.get(id)
    if (kept !== undefined) kept.record = frozen({ revokedAt: at, ...kept.record })
    return kept !== undefined
  }
  const touch = (id: string, at: number): void => {
    const kept = records.get(id)
    if (kept === undefined || (kept.record.lastUsedAt ?? -Infinity) >= at) return
    kept.record = frozen({ ...kept.record, lastUsedAt: at })
  }
  return {
    insert: (digest, record) => Promise.resolve(insert(digest, record)),
    find,
    list: (owner) => Promise.resolve((owners.get(owner) ?? []).map(({ record }) => record)),
    rotate: (id, rotation) => Promise.resolve(rotate(id, rotation)),
    revoke: (id, at) => Promise.resolve(revoke(id, at)),
    touch: (id, at) => Promise.resolve(touch(id, at)),
  }
}

declareFactory('memoryKeyStore', memoryKeyStore)
