/** Adds a time limit to the questions of a store. A failure is an outage, and so is silence. */
import { isThenable, UnavailableError } from '../core/Result.js'
import { errorInWords } from '../core/data.js'
import { report, type StoreContent } from '../core/events.js'
import { watchOutages, type Outages } from '../core/memory.js'
import { causeOf } from './failures.js'

/** Watches the outages of one store. It publishes one record when an outage begins, and one when it has ended. */
const outagesOf = (
  store: StoreContent,
): Outages<{ readonly reason: 'failed'; readonly cause: string } | { readonly reason: 'silent' }> =>
  watchOutages(
    (begun) => report('store-outage')(() => ({ event: 'begun', store, ...begun })),
    (durationMs) => report('store-outage')(() => ({ event: 'over', store, durationMs })),
  )

/** The store failed, or did not answer in time. */
export class StoreUnavailable extends UnavailableError {
  override readonly name = 'StoreUnavailable'
}

const names: Readonly<Record<StoreContent, string>> = {
  'api-keys': 'the store of API keys',
  'one-time-ids': 'the store of one-time ids',
  passkeys: 'the store of passkeys',
  sessions: 'the session store',
  signals: 'the channel of signals',
}

const consequenceOf = (store: StoreContent): string =>
  store === 'signals'
    ? 'Other processes notice an end when the credential is used again or its time is over'
    : 'Requests that need it are answered with 503'

/** Asks a store. Rejects with `StoreUnavailable` if it fails, or after `timeout` milliseconds. */
interface Timed {
  <A>(ask: () => Promise<A>): Promise<A>
  /** The same for a question about something. What the store returns without a promise is returned without one. */
  readonly about: <A, B>(ask: (about: B) => A | Promise<A>, about: B) => A | Promise<A>
}

// In milliseconds
const WARN_EVERY = 60_000

export const within = (store: StoreContent, timeout: number): Timed => {
  const what = names[store]
  const outages = outagesOf(store)
  const warned = new Set<string>()
  let warnedAt = -Infinity
  // Once for each cause: the channel of outages has all of them, without words of a client library
  const warn = (cause: string, problem: string): void => {
    if (warned.has(cause) || performance.now() - warnedAt < WARN_EVERY) return
    warned.add(cause)
    warnedAt = performance.now()
    process.emitWarning(`${what} ${problem}. ${consequenceOf(store)}`, 'StoreWarning')
  }
  const failed = (question: number, error: unknown): Promise<never> => {
    const cause = causeOf(error)
    outages.failed(question, { reason: 'failed', cause })
    const words = errorInWords(error)
    warn(cause, `failed: ${words.includes(cause) || cause === 'Error' ? words : `${cause}, ${words}`}`)
    return Promise.reject(new StoreUnavailable(`${what} failed`, { cause: error }))
  }
  const later = <A>(question: number, answer: PromiseLike<A>): Promise<A> =>
    new Promise((resolve, reject) => {
      let isOver = false
      const giveUp = (): void => {
        if (isOver) return
        isOver = true
        outages.failed(question, { reason: 'silent' })
        const problem = `did not answer within ${timeout} ms`
        warn('silent', problem)
        reject(new StoreUnavailable(`${what} ${problem}`))
      }
      // One more turn of the event loop: if this process was busy, the answer is there, but was not read yet
      const timer = setTimeout(() => setImmediate(giveUp), timeout)
      // Node keeps the list of a timer that holds no process, so that the next one need not make it again
      const stop = (): void => clearTimeout(timer.unref())
      const fail = (cause: unknown): void => {
        if (isOver) return
        isOver = true
        stop()
        resolve(failed(question, cause))
      }
      Promise.resolve(answer).then((answered) => {
        // an answer that comes too late is ignored
        if (isOver) return
        // some clients resolve to an Error instead of rejecting
        if (answered instanceof Error) return fail(answered)
        isOver = true
        stop()
        outages.answered(question)
        resolve(answered)
      }, fail)
    })
  const about: Timed['about'] = (ask, one) => {
    const question = outages.ask()
    try {
      const answer = ask(one)
      if (isThenable(answer)) return later(question, answer)
      if (answer instanceof Error) return failed(question, answer)
      outages.answered(question)
      return answer
    } catch (error) {
      // a store may throw instead of rejecting
      return failed(question, error)
    }
  }
  const timed = <A>(ask: () => Promise<A>): Promise<A> => Promise.resolve(about(ask, undefined))
  return Object.assign(timed, { about })
}
