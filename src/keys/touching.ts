/**
 * When the last use of a key is written: at most once in an interval, and never so that a request waits for it.
 */

// A process that sees more keys than these within an interval may write one twice
const REMEMBERED = 10_000

/** Notes a use at a time; `lastUsedAt` is what the store knew when the key was found. */
export type Touch = (id: string, at: number, lastUsedAt: number | undefined) => void

/** Writes by `write`, whose failure is passed over: the next interval tries again. */
export const touching = (interval: number | false, write: (id: string, at: number) => Promise<void>): Touch => {
  if (interval === false) return () => {}
  // requests at the same time all found the same record
  const written = new Map<string, number>()
  return (id, at, lastUsedAt = -Infinity) => {
    if (at - Math.max(lastUsedAt, written.get(id) ?? -Infinity) < interval) return
    // to the end of the order, so that the oldest is forgotten first
    written.delete(id)
    written.set(id, at)
    const [oldest] = written.keys()
    if (written.size > REMEMBERED && oldest !== undefined) written.delete(oldest)
    write(id, at).catch(() => {})
  }
}
