/** Adds a time limit to the questions of a store. A failure is an outage, and so is silence. */
import { isThenable, UnavailableError } from '../core/Result.js'
import { errorInWords } from '../core/data.js'
import { report, watchOutages, type Outages, type StoreContent } from '../core/events.js'

/** Watches the outages of one store. It publishes one record when an outage begins, and one when it has ended. */
const outagesOf = (store: StoreContent): Outages<'failed' | 'silent'> =>
  watchOutages(
    (reason) => report('store-outage')(() => ({ event: 'begun', store, reason })),
    (durationMs) => report('store-outage')(() => ({ event: 'over', store, durationMs })),
  )

/** The store failed, or did not answer in time. */
export class StoreUnavailable extends UnavailableError {
  override readonly name = 'StoreUnavailable'
}

const names: Readonly<Record<StoreContent, string>> = {
  'api-keys': 'the store of API keys',
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

export const within = (store: StoreContent, timeout: number): Timed => {
  const what = names[store]
  const outages = outagesOf(store)
  let isReported = false
  // Once: the channel of outages has all of them, without words of a client library
  const warn = (problem: string): void => {
    if (isReported) return
    isReported = true
    process.emitWarning(`${what} ${problem}. ${consequenceOf(store)}`, 'StoreWarning')
  }
  const failed = (question: number, cause: unknown): Promise<never> => {
    outages.failed(question, 'failed')
    warn(`failed: ${errorInWords(cause)}`)
    return Promise.reject(new StoreUnavailable(`${what} failed`, { cause }))
  }
  const later = <A>(question: number, answer: PromiseLike<A>): Promise<A> =>
    new Promise((resolve, reject) => {
      let isOver = false
      const giveUp = (): void => {
        if (isOver) return
        isOver = true
        outages.failed(question, 'silent')
        const problem = `did not answer within ${timeout} ms`
        warn(problem)
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
