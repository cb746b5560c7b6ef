/**
 * What was found out about tokens, kept for a while by the SHA-256 of the token, so that no token is kept.
 *
 * It holds what passed and nothing else, and forgets the oldest first. What an entry is still worth is its reader's business.
 */
import { hash } from 'node:crypto'

/** Kept values. */
export interface TokenCache<V> {
  /** What was kept, if it is neither too old nor from a future that a clock set back has made. */
  readonly get: (key: string, now: number) => V | undefined
  /** Keeps a value until a time, at most; all in milliseconds. */
  readonly set: (key: string, value: V, until: number, now: number) => void
  /** Drops what a condition is true of. */
  readonly drop: (when: (value: V) => boolean) => void
}

/** By what a token is kept. */
export const keyOf = (token: string): string => hash('sha256', token, 'base64')

interface Entry<V> {
  readonly value: V
  readonly since: number
  readonly until: number
}

/** A cache of so many values, each for so long. */
export const tokenCache = <V>({ size, maxAge }: { readonly size: number; readonly maxAge: number }): TokenCache<V> => {
  const entries = new Map<string, Entry<V>>()
  return {
    get: (key, now) => {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      if (now >= entry.since && now < entry.until) return entry.value
      entries.delete(key)
      return undefined
    },
    set: (key, value, until, now) => {
      // what is renewed becomes the youngest
      entries.delete(key)
      const oldest = entries.size >= size ? entries.keys().next() : undefined
      if (oldest?.done === false) entries.delete(oldest.value)
      entries.set(key, { value, since: now, until: Math.min(until, now + maxAge) })
    },
    drop: (when) => {
      for (const [key, { value }] of entries) if (when(value)) entries.delete(key)
    },
  }
}
