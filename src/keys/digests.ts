/**
 * The digest that a store gets for a key: its SHA-256, or with a pepper the HMAC of that. A key has 190 random bits, so
 * a slow hash would cost time and protect nothing.
 */
import { createHmac, hash, type KeyObject } from 'node:crypto'

/** The digests of one application. */
export interface Digests {
  /** The digest that a new key is stored under. */
  readonly of: (key: string) => string
  /** The digests that a key may be stored under: one for each pepper. */
  readonly all: (key: string) => ReadonlyArray<string>
  /**
   * The same for a key of which only the SHA-256 is known, in hex: the digest to store it under, then the older ones.
   */
  readonly adopted: (sha256: string) => readonly [string, ...string[]]
}

/** @see Digests */
export const digestsWith = (peppers: ReadonlyArray<KeyObject>): Digests => {
  const [newest, ...older] = peppers
  const seasoned = (sha256: string, pepper: KeyObject): string =>
    createHmac('sha256', pepper).update(sha256, 'hex').digest('hex')
  const all = (sha256: string): readonly [string, ...string[]] =>
    newest === undefined ? [sha256] : [seasoned(sha256, newest), ...older.map((pepper) => seasoned(sha256, pepper))]
  return {
    of: (key) => all(hash('sha256', key))[0],
    all: (key) => all(hash('sha256', key)),
    adopted: (sha256) => all(sha256.toLowerCase()),
  }
}
