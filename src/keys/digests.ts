/**
 * What a store is given for a key: its SHA-256, or with a pepper the HMAC of that. A key has 190 random bits, so a slow hash
 * would cost time and protect nothing.
 */
import { createHash, createHmac } from 'node:crypto'

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
export const digestsWith = (peppers: ReadonlyArray<Uint8Array>): Digests => {
  const [newest] = peppers
  const seasoned = (sha256: Buffer, pepper: Uint8Array): string =>
    createHmac('sha256', pepper).update(sha256).digest('hex')
  const kept = (sha256: Buffer): string => (newest === undefined ? sha256.toString('hex') : seasoned(sha256, newest))
  const hashed = (key: string): Buffer => createHash('sha256').update(key).digest()
  return {
    of: (key) => kept(hashed(key)),
    all: (key) => {
      const sha256 = hashed(key)
      return peppers.length === 0 ? [sha256.toString('hex')] : peppers.map((pepper) => seasoned(sha256, pepper))
    },
    adopted: (sha256) => kept(Buffer.from(sha256, 'hex')),
  }
}
