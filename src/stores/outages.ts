/**
 * Finds outages of a store from its answers. It publishes one record when an outage begins, and one when it has ended.
 *
 * Questions overlap. A question that was asked before the last change proves nothing about the time after it, so its
 * answer changes nothing.
 */
import { report, storeOutages } from '../core/events/channels.js'
import type { StoreContent } from '../core/events/StoreOutageEvent.js'

/**
 * The questions to one store, and the result of each. A question that failed must not be reported as answered later.
 */
export interface Outages {
  /** Counts a question; returns its number. */
  readonly asked: () => number
  readonly answered: (question: number) => void
  readonly failed: (question: number, reason: 'failed' | 'silent') => void
}

/** Watches the outages of one store. */
export const outagesOf = (store: StoreContent): Outages => {
  let asked = 0
  let atChange = 0
  let begunAt: number | undefined
  return {
    asked: () => ++asked,
    answered: (question) => {
      if (begunAt === undefined || question <= atChange) return
      const durationMs = performance.now() - begunAt
      begunAt = undefined
      atChange = asked
      report(storeOutages)(() => ({ event: 'over', store, durationMs }))
    },
    failed: (question, reason) => {
      if (begunAt !== undefined || question <= atChange) return
      begunAt = performance.now()
      atChange = asked
      report(storeOutages)(() => ({ event: 'begun', store, reason }))
    },
  }
}
