/**
 * Writes the last use of a key at most once in an interval. No request waits for it.
 */

// A process that sees more keys than these in an interval may write a use twice
const REMEMBERED = 10_000

/** Notes a use at a time. `lastUsedAt` is what the store returned with the key. */
export type Touch = (id: string, at: number, lastUsedAt: number | undefined) => void

/** Calls `write`, and ignores its failure: the next interval tries again. */
export const touching = (interval: number | false, write: (id: string, at: number) => Promise<void>): Touch => {
  if (interval === false) return () => {}
  // needed because requests at the same time all find the same record
  const written = new Map<string, number>()
  return (id, at, lastUsedAt = -Infinity) => {
    if (at - Math.max(lastUsedAt, written.get(id) ?? -Infinity) < interval) return
    // moves it to the end, so that the oldest is forgotten first
    written.delete(id)
    written.set(id, at)
    const [oldest] = written.keys()
    if (written.size > REMEMBERED && oldest !== undefined) written.delete(oldest)
    write(id, at).catch(() => {})
  }
}
