/** The end of an API key, for what is still running: it expires, it is revoked, or a rotation ends its secret. */
import { keyDigest } from '../core/events.js'
import { End, type EndCause, type EndSource } from '../core/ends.js'
import type { FoundKey } from './KeyStore.js'

/** Finds the record that has one of these digests. */
export type FindKey = (digests: ReadonlyArray<string>) => Promise<FoundKey | undefined> | FoundKey | undefined

export class KeySource implements EndSource {
  readonly #found: FoundKey
  readonly #digests: ReadonlyArray<string>
  readonly #find: FindKey

  constructor(found: FoundKey, digests: ReadonlyArray<string>, find: FindKey) {
    this.#found = found
    this.#digests = digests
    this.#find = find
  }

  endFor(): End {
    return new KeyEnd(this.#found, this.#digests, this.#find)
  }
}

class KeyEnd extends End {
  readonly #id: string
  readonly #digests: ReadonlyArray<string>
  readonly #find: FindKey
  #isReplaced: boolean

  constructor(found: FoundKey, digests: ReadonlyArray<string>, find: FindKey) {
    super(timeOf(found))
    this.#id = found.record.id
    this.#digests = digests
    this.#find = find
    this.#isReplaced = isReplaced(found)
  }

  override named(): string {
    return keyDigest(this.#id)
  }

  override get cause(): EndCause {
    return this.#isReplaced ? 'revoked' : 'expired'
  }

  override async ask(): Promise<EndCause | number> {
    const found = await this.#find(this.#digests)
    if (found === undefined || found.record.revokedAt !== undefined) return 'revoked'
    this.#isReplaced = isReplaced(found)
    const at = timeOf(found)
    return at <= Date.now() ? this.cause : at
  }
}

const timeOf = ({ record, until }: FoundKey): number => Math.min(record.expiresAt ?? Infinity, until ?? Infinity)

const isReplaced = ({ record, until = Infinity }: FoundKey): boolean => until < (record.expiresAt ?? Infinity)
