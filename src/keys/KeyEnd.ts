/** The end of an API key, for what is still running: it expires, it is revoked, or a rotation ends its secret. */
import { keyDigest } from '../core/events.js'
import { End, type EndCause, type EndSource } from '../core/ends.js'
import type { FoundKey } from './KeyRecord.js'
import type { KeysInStore, Sought } from './keysInStore.js'

export class KeySource implements EndSource {
  readonly #found: FoundKey
  readonly #sought: Sought
  readonly #keys: KeysInStore

  constructor(found: FoundKey, sought: Sought, keys: KeysInStore) {
    this.#found = found
    this.#sought = sought
    this.#keys = keys
  }

  endFor(): End {
    return new KeyEnd(this.#found, this.#sought, this.#keys)
  }
}

class KeyEnd extends End {
  readonly #id: string
  readonly #sought: Sought
  readonly #keys: KeysInStore
  #isReplaced: boolean

  constructor(found: FoundKey, sought: Sought, keys: KeysInStore) {
    super(timeOf(found))
    this.#id = found.record.id
    this.#sought = sought
    this.#keys = keys
    this.#isReplaced = isReplaced(found)
  }

  override named(): string {
    return keyDigest(this.#id)
  }

  override get cause(): EndCause {
    return this.#isReplaced ? 'revoked' : 'expired'
  }

  override async ask(): Promise<EndCause | number> {
    const found = await this.#keys.find(this.#sought)
    if (found === undefined || found.record.revokedAt !== undefined) return 'revoked'
    this.#isReplaced = isReplaced(found)
    const at = timeOf(found)
    return at <= Date.now() ? this.cause : at
  }
}

const timeOf = ({ record, until }: FoundKey): number => Math.min(record.expiresAt ?? Infinity, until ?? Infinity)

const isReplaced = ({ record, until = Infinity }: FoundKey): boolean => until < (record.expiresAt ?? Infinity)
