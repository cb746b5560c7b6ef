/**
 * Whether a store is in an outage, as its answers say: one record when an outage begins, and one when it is over.
 *
 * Questions overlap. What was asked before the last change proves nothing about the time after it, so it changes nothing.
 */
import { report, storeOutages } from '../core/events/channels.js'
import type { StoreContent } from '../core/events/StoreOutageEvent.js'

/** What became of one question to a store. */
export interface Asked {
  readonly answered: () => void
  readonly failed: (reason: 'failed' | 'silent') => void
}

/** Watches the outages of one store. Call what it returns for each question. */
export const outagesOf = (store: StoreContent): (() => Asked) => {
  let asked = 0
  let atChange = 0
  let begunAt: number | undefined
  return () => {
    // 0 once it failed: an answer that comes too late is none
    let number = ++asked
    return {
      answered: () => {
        if (begunAt === undefined || number <= atChange) return
        const durationMs = performance.now() - begunAt
        begunAt = undefined
        atChange = asked
        report(storeOutages)(() => ({ event: 'over', store, durationMs }))
      },
      failed: (reason) => {
        const isOld = number <= atChange
        number = 0
        if (begunAt !== undefined || isOld) return
        begunAt = performance.now()
        atChange = asked
        report(storeOutages)(() => ({ event: 'begun', store, reason }))
      },
    }
  }
}
