/** Adds a time limit to the questions of a store. A failure is an outage, and so is silence. */
import { isThenable, UnavailableError } from '../core/Result.js'
import { errorInWords, unlessThrown } from '../core/data.js'
import { report, type StoreContent } from '../core/events.js'
import { watchOutages, type Outages } from '../core/memory.js'
import { failureWord } from './failures.js'

/** The store failed, or did not answer in time. */
export class StoreUnavailable extends UnavailableError {
  override readonly name = 'StoreUnavailable'
}

const storeNames: Readonly<Record<StoreContent, string>> = {
  'api-keys': 'the store of API keys',
  'one-time-ids': 'the store of one-time ids',
  passkeys: 'the store of passkeys',
  sessions: 'the session store',
  signals: 'the channel of signals',
}

/** Asks a store. Rejects with `StoreUnavailable` if it fails, or after `timeout` milliseconds. */
interface Timed {
  <A>(ask: () => Promise<A>): Promise<A>
  /** The same for a query with an argument. A value that the store returns without a promise stays a value. */
  <A, B>(ask: (about: B) => A | Promise<A>, about: B): A | Promise<A>
}

// In milliseconds
const WARN_EVERY = 60_000

type Problem = { readonly reason: 'failed'; readonly cause: string } | { readonly reason: 'silent' }

interface AskedStore extends Outages<Problem> {
  readonly store: StoreContent
  readonly timeout: number
  readonly warned: Set<string>
  warnedAt: number
}

export const within = (store: StoreContent, timeout: number): Timed => {
  const outages = watchOutages<Problem>(
    (begun) => report('store-outage')(() => ({ event: 'begun', store, ...begun })),
    (durationMs) => report('store-outage')(() => ({ event: 'over', store, durationMs })),
  )
  const self: AskedStore = { ...outages, store, timeout, warned: new Set(), warnedAt: -Infinity }
  // Safe: a question about nothing has a promise, and so has its outage
  return ((ask: (about: unknown) => unknown, about?: unknown) => askAbout(self, ask, about)) as Timed
}

const askAbout = <A, B>(self: AskedStore, ask: (about: B) => A | Promise<A>, about: B): A | Promise<A> => {
  const question = self.ask()
  try {
    const answer = ask(about)
    if (isThenable(answer)) return withinTimeout(self, question, answer)
    if (answer instanceof Error) return failQuestion(self, question, answer)
    self.answered(question)
    return answer
  } catch (error) {
    // a store may throw instead of rejecting
    return failQuestion(self, question, error)
  }
}

const failQuestion = (self: AskedStore, question: number, error: unknown): Promise<never> => {
  const cause = failureWord(error)
  self.failed(question, { reason: 'failed', cause })
  const words = errorInWords(error)
  warnOfStore(self, cause, `failed: ${words.includes(cause) || cause === 'Error' ? words : `${cause}, ${words}`}`)
  return Promise.reject(new StoreUnavailable(`${storeNames[self.store]} failed`, { cause: error }))
}

// Some clients resolve to an Error instead of rejecting. A proxy may throw where it is asked for its prototype, which no answer does
const isFailure = (answer: unknown): boolean => unlessThrown(() => answer instanceof Error) ?? true

// Once for each cause: the channel of outages has all of them, without words of a client library
const warnOfStore = (self: AskedStore, cause: string, problem: string): void => {
  if (self.warned.has(cause) || performance.now() - self.warnedAt < WARN_EVERY) return
  self.warned.add(cause)
  self.warnedAt = performance.now()
  const consequence =
    self.store === 'signals'
      ? 'Other processes notice an end when the credential is used again or expires'
      : 'Requests that need it are answered with 503'
  process.emitWarning(`${storeNames[self.store]} ${problem}. ${consequence}`, 'StoreWarning')
}

const withinTimeout = <A>(self: AskedStore, question: number, answer: PromiseLike<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    let isOver = false
    const giveUp = (): void => {
      if (isOver) return
      isOver = true
      self.failed(question, { reason: 'silent' })
      const problem = `did not answer within ${self.timeout} ms`
      warnOfStore(self, 'silent', problem)
      reject(new StoreUnavailable(`${storeNames[self.store]} ${problem}`))
    }
    // One more turn of the event loop: if this process was busy, the answer is there, but was not read yet
    const timer = setTimeout(() => setImmediate(giveUp), self.timeout)
    // Node keeps the list of a timer that holds no process, so that the next timer need not make it again
    const stop = (): void => clearTimeout(timer.unref())
    const fail = (cause: unknown): void => {
      if (isOver) return
      isOver = true
      stop()
      resolve(failQuestion(self, question, cause))
    }
    Promise.resolve(answer).then((answered) => {
      // an answer that comes too late is ignored
      if (isOver) return
      if (isFailure(answered)) return fail(answered)
      isOver = true
      stop()
      self.answered(question)
      resolve(answered)
    }, fail)
  })
