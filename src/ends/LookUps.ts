/**
 * The look-ups of credentials that may have ended, of which a store must not get too many: a few at a time, and while the store fails,
 * one after growing pauses. And much work in several turns of the event loop.
 */
import type { End, EndCause } from '../core/ends.js'

const PARALLEL = 16

// How many are asked in one turn of the event loop, if the store answers without waiting
const PER_TURN = 200

// The pauses between two questions while the store fails, in milliseconds
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 30_000

// How many in one turn at most, and for how long, in milliseconds
const MOST_PER_TURN = 1000
const LONGEST_TURN = 5

const doNothing = (): void => {}

/** Calls a function for each that `next` finds: now, and if they are many, in later turns of the event loop, with requests in between. */
export const inTurns = <A>(next: () => A | undefined, f: (one: A) => void, done = doNothing): void => {
  const until = performance.now() + LONGEST_TURN
  for (let at = 1; at <= MOST_PER_TURN; at++) {
    const one = next()
    if (one === undefined) return done()
    f(one)
    if (at % 16 === 0 && performance.now() > until) break
  }
  setImmediate(inTurns<A>, next, f, done)
}

/** Takes the result of a look-up: why it has ended, or when it ends; `undefined` if it could not be looked up at its own time. */
type OnAnswer = (end: End, found: EndCause | number | undefined) => void

// An array with a beginning that moves. A Set would be slow: those that were deleted stay in it for long
class EndQueue {
  readonly #asking: End['asking']
  #ends: End[] = []
  #first = 0
  #count = 0

  constructor(asking: End['asking']) {
    this.#asking = asking
  }

  push(end: End): void {
    end.asking = this.#asking
    this.#ends.push(end)
    this.#count++
    // those that were removed may be the most
    if (this.#ends.length > 2 * this.#count + PER_TURN) this.#compact()
  }

  shift(): End | undefined {
    while (this.#first < this.#ends.length) {
      const end = this.#ends[this.#first++]
      if (end?.asking !== this.#asking) continue
      this.remove(end)
      return end
    }
    this.#compact()
    return undefined
  }

  remove(end: End): void {
    end.asking = 'no'
    this.#count--
  }

  #compact(): void {
    this.#ends = this.#ends.slice(this.#first).filter(({ asking }) => asking === this.#asking)
    this.#first = 0
  }
}

export class LookUps {
  readonly #answered: OnAnswer
  /** Those that a message, a loss of messages or their beginning is a reason to look up. */
  readonly #hinted = new EndQueue('hinted')
  /** Those whose own time has come. */
  readonly #due = new EndQueue('due')
  #running = 0
  #turn = 0
  // 0: the store answers
  #pause = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(answered: OnAnswer) {
    this.#answered = answered
  }

  /** Looks it up soon. `isHint`: not at its own time. */
  add(end: End, isHint: boolean): void {
    if (end.asking === 'now' || end.asking === 'again') {
      // a look-up that is under way may have read the state before the change
      end.asking = 'again'
      return
    }
    if (end.asking === 'due' || (isHint && end.asking === 'hinted')) return
    this.remove(end)
    if (isHint) this.#hinted.push(end)
    else this.#due.push(end)
    this.#next()
  }

  remove(end: End): void {
    if (end.asking === 'hinted') this.#hinted.remove(end)
    else if (end.asking === 'due') this.#due.remove(end)
  }

  #next(): void {
    while (this.#turn < PER_TURN && this.#running < (this.#pause === 0 ? PARALLEL : 1)) {
      // at its own time, an end does not wait until the store is asked again
      const due = this.#due.shift()
      const end = due ?? (this.#pause === 0 ? this.#hinted.shift() : undefined)
      if (end === undefined) return
      this.#start(end, due === undefined)
    }
  }

  #start(end: End, isHint: boolean): void {
    if (this.#turn++ === 0) {
      setImmediate(() => {
        this.#turn = 0
        this.#next()
      })
    }
    end.asking = 'now'
    this.#running++
    void this.#ask(end, isHint)
  }

  async #ask(end: End, isHint: boolean): Promise<void> {
    const found = await end.ask?.(isHint).catch(() => undefined)
    this.#running--
    const isAgain = end.asking === 'again'
    end.asking = 'no'
    if (found === undefined) this.#failed(end, isHint)
    else {
      this.#answers()
      if (end.target !== undefined) this.#answered(end, found)
      if (isAgain && end.target !== undefined) this.add(end, true)
    }
    this.#next()
  }

  #failed(end: End, isHint: boolean): void {
    if (end.target !== undefined) {
      // a message is no proof. But at its own time, an end that cannot be looked up has come
      if (isHint) this.#hinted.push(end)
      else this.#answered(end, undefined)
    }
    if (this.#pause > 0 && this.#running === 0) this.#giveUp()
    // those that were asked together failed together
    if (this.#timer !== undefined) return
    this.#pause = Math.min(LONGEST_PAUSE, this.#pause === 0 ? FIRST_PAUSE : 2 * this.#pause)
    this.#timer = setTimeout(() => this.#probe(), this.#pause).unref()
  }

  // a second question was not answered either, so all those whose time has come have ended
  #giveUp(): void {
    const next = () => this.#due.shift()
    inTurns(next, (end) => {
      if (end.target !== undefined) this.#answered(end, undefined)
    })
  }

  #probe(): void {
    this.#timer = undefined
    const end = this.#hinted.shift()
    if (end === undefined) this.#answers()
    else this.#start(end, true)
  }

  #answers(): void {
    this.#pause = 0
    clearTimeout(this.#timer)
    this.#timer = undefined
  }
}
