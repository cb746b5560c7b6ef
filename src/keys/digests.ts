/**
 * What a store is given for a key: its SHA-256, or with a pepper the HMAC of that. A key has 190 random bits, so a slow hash
 * would cost time and protect nothing.
 */
import { createHmac, hash, type KeyObject } from 'node:crypto'

/** The digests of one application. */
export interface Digests {
  /** What a key is kept under. */
  readonly of: (key: string) => string
  /** What it may have been kept under: one for each pepper. */
  readonly all: (key: string) => ReadonlyArray<string>
  /** What a key is kept under of which only the SHA-256 is known, in hex. */
  readonly adopted: (sha256: string) => string
}

/** @see Digests */
export const digestsWith = (peppers: ReadonlyArray<KeyObject>): Digests => {
  const [newest] = peppers
  const seasoned = (sha256: string, pepper: KeyObject): string =>
    createHmac('sha256', pepper).update(sha256, 'hex').digest('hex')
  const kept = (sha256: string): string => (newest === undefined ? sha256 : seasoned(sha256, newest))
  return {
    of: (key) => kept(hash('sha256', key)),
    all: (key) => {
      const sha256 = hash('sha256', key)
      return newest === undefined ? [sha256] : peppers.map((pepper) => seasoned(sha256, pepper))
    },
    adopted: (sha256) => kept(sha256.toLowerCase()),
  }
}
