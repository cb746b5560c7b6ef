/**
 * Keeps results about tokens for a while, by the SHA-256 of the token, so that no token is kept.
 *
 * It keeps only what passed, and drops the oldest first. Its reader checks whether an entry is still valid.
 */
import { hash } from 'node:crypto'
import { ageOf, type Moment } from '../core/age.js'

/** A cache of values. */
export interface TokenCache<V> {
  /** The value, unless it is too old. */
  readonly get: (key: string) => V | undefined
  /** Keeps a value that is as old as `since`, until `expiresAt` at most (milliseconds since 1970). */
  readonly set: (key: string, value: V, expiresAt: number, since: Moment) => void
  /** Drops the values for which a condition is true. */
  readonly drop: (when: (value: V) => boolean) => void
}

/** The key of a token. */
export const keyOf = (token: string): string => hash('sha256', token, 'base64')

interface Entry<V> {
  readonly value: V
  readonly since: Moment
  readonly expiresAt: number
}

/** Makes a cache of `size` values, each for `maxAge`. */
export const tokenCache = <V>({ size, maxAge }: { readonly size: number; readonly maxAge: number }): TokenCache<V> => {
  const entries = new Map<string, Entry<V>>()
  return {
    get: (key) => {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (ageOf(entry.since) < maxAge && Date.now() < entry.expiresAt) return entry.value
      entries.delete(key)
      return undefined
    },
    set: (key, value, expiresAt, since) => {
      // a value that is set again becomes the youngest
      entries.delete(key)
      const oldest = entries.size >= size ? entries.keys().next() : undefined
      if (oldest?.done === false) entries.delete(oldest.value)
      entries.set(key, { value, since, expiresAt })
    },
    drop: (when) => {
      for (const [key, { value }] of entries) if (when(value)) entries.delete(key)
    },
  }
}
