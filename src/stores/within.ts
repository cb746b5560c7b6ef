/**
 * Adds a time limit to the questions of a store. A failure is an outage, and so is silence.
 */
import { UnavailableError } from '../core/Result.js'
import { report, storeOutages, type StoreContent } from '../core/events.js'

/*
 * Finds outages of a store from its answers. It publishes one record when an outage begins, and one when it has ended.
 *
 * Questions overlap. A question that was asked before the last change proves nothing about the time after it, so its
 * answer changes nothing.
 */

/**
 * The questions to one store, and the result of each. A question that failed must not be reported as answered later.
 */
interface Outages {
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

/** The store failed, or did not answer in time. */
export class StoreUnavailable extends UnavailableError {
  override readonly name = 'StoreUnavailable'
}

const names: Readonly<Record<StoreContent, string>> = {
  'api-keys': 'the store of API keys',
  passkeys: 'the store of passkeys',
  sessions: 'the session store',
}

/** Asks a store. Rejects with `StoreUnavailable` if it fails, or after `timeout` milliseconds. */
export const within = (store: StoreContent, timeout: number): (<A>(ask: () => Promise<A>) => Promise<A>) => {
  const what = names[store]
  const outages = outagesOf(store)
  return (ask) =>
    new Promise((resolve, reject) => {
      const question = outages.asked()
      let isSilent = false
      const timer = setTimeout(() => {
        isSilent = true
        outages.failed(question, 'silent')
        reject(new StoreUnavailable(`${what} did not answer within ${timeout} ms`))
      }, timeout)
      const fail = (cause: unknown): void => {
        if (isSilent) return
        clearTimeout(timer)
        outages.failed(question, 'failed')
        reject(new StoreUnavailable(`${what} failed`, { cause }))
      }
      try {
        Promise.resolve(ask()).then((answer) => {
          // an answer that comes too late is ignored
          if (isSilent) return
          // some clients resolve to an Error instead of rejecting
          if (answer instanceof Error) return fail(answer)
          clearTimeout(timer)
          outages.answered(question)
          resolve(answer)
        }, fail)
      } catch (error) {
        // a store may throw instead of rejecting
        fail(error)
      }
    })
}
