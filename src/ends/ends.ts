/**
 * The ends that this process waits for. One timer serves all of them. It fires at least once per second, so clock
 * jumps and ends beyond the longest delay of a timer are handled.
 */
import { AuthEndedError, type End, type EndCause, type Ending } from '../core/ends.js'
import { inTurns, LookUps } from './LookUps.js'

// How far the system's clock may run ahead before all deadlines are compared with it again, in milliseconds
const DRIFT = 50

const offsetNow = (): number => Date.now() - performance.now()

/**
 * The times at which ends come, the earliest first: a heap by the clock that is never set. Both clocks count, and the later time decides: the
 * system's can be set back, and the other clock can stop while the machine sleeps.
 */
class Deadlines {
  #ends: End[] = []
  /** By which the times were computed last. */
  #offset = offsetNow()
  /** The lowest time since. */
  #lowest = this.#offset

  get isEmpty(): boolean {
    return this.#ends.length === 0
  }

  /** How long the first end is away, in milliseconds. */
  get rest(): number {
    const [first] = this.#ends
    return first === undefined ? Infinity : first.due - performance.now()
  }

  pop(): End | undefined {
    const [first] = this.#ends
    if (first === undefined || (first.due > performance.now() && first.at > Date.now())) return undefined
    this.remove(first)
    return first
  }

  push(end: End): void {
    // nothing compares the clocks while no end waits
    this.compare()
    end.latest = end.at - offsetNow()
    end.due = end.latest
    this.#rise(end, this.#ends.length)
  }

  remove(end: End): void {
    const { index } = end
    if (index < 0) return
    end.index = -1
    const last = this.#ends.pop()
    if (last === undefined || last === end) return
    this.#sink(last, index)
    this.#rise(last, last.index)
  }

  /** Notices that the system's clock was set, or that the machine has slept. */
  compare(): void {
    const offset = offsetNow()
    this.#lowest = Math.min(this.#lowest, offset)
    if (offset - this.#lowest <= DRIFT && this.#offset - offset <= DRIFT) return
    this.#offset = this.#lowest = offset
    // a clock that is right again gives back the time that it had taken away
    for (const end of this.#ends) end.due = Math.min(end.latest, end.at - offset)
    for (let index = (this.#ends.length >> 1) - 1; index >= 0; index--) {
      const end = this.#ends[index]
      if (end !== undefined) this.#sink(end, index)
    }
  }

  #put(end: End, index: number): void {
    this.#ends[index] = end
    end.index = index
  }

  #rise(end: End, from: number): void {
    let index = from
    while (index > 0) {
      const above = (index - 1) >> 1
      const parent = this.#ends[above]
      if (parent === undefined || parent.due <= end.due) break
      this.#put(parent, index)
      index = above
    }
    this.#put(end, index)
  }

  #sink(end: End, from: number): void {
    let index = from
    for (;;) {
      const left = 2 * index + 1
      const [one, other] = [this.#ends[left], this.#ends[left + 1]]
      if (one === undefined) break
      const isRight = other !== undefined && other.due < one.due
      const child = isRight ? other : one
      if (child.due >= end.due) break
      this.#put(child, index)
      index = isRight ? left + 1 : left
    }
    this.#put(end, index)
  }
}

/** The longest time between two looks at the clocks, in milliseconds. */
const TICK = 1000

class Ends {
  readonly #named = new Map<string, NonNullable<End['list']>>()
  readonly #unnamed: NonNullable<End['list']> = { name: '', first: undefined }
  #over: EndCause | undefined
  readonly #deadlines = new Deadlines()
  // A class of ends asks one store
  readonly #lookUps = new Map<unknown, LookUps>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #firesAt = Infinity

  /** Whether ends wait under names, of which other processes may say something. */
  get isWaiting(): boolean {
    return this.#named.size > 0
  }

  open(end: End, target: Ending): void {
    end.target = target
    const before = this.#over ?? end.before
    if (before !== undefined) return this.#abort(end, before)
    const name = end.named()
    this.#enlist(end, name === undefined ? this.#unnamed : this.#listOf(name))
    this.#moved(end, end.at)
    this.#ask(end, true)
  }

  #listOf(name: string): NonNullable<End['list']> {
    const before = this.#named.get(name)
    if (before !== undefined) return before
    const made = { name, first: undefined }
    this.#named.set(name, made)
    return made
  }

  #enlist(end: End, list: NonNullable<End['list']>): void {
    if (list.first !== undefined) list.first.previous = end
    end.list = list
    end.next = list.first
    list.first = end
  }

  close(end: End): void {
    if (end.target === undefined) return
    end.target = undefined
    this.#deadlines.remove(end)
    if (end.asking !== 'no') this.#lookUpsOf(end).remove(end)
    const { list, next, previous } = end
    if (list === undefined) return
    if (next !== undefined) next.previous = previous
    if (previous !== undefined) previous.next = next
    else list.first = next
    if (list.first === undefined && list !== this.#unnamed) this.#named.delete(list.name)
    end.list = end.next = end.previous = undefined
  }

  of(name: string): ReadonlyArray<End> {
    return endsIn(this.#named.get(name))
  }

  /** All end now, and those that begin later end then. */
  endAll(cause: EndCause): void {
    this.#over = cause
    const all = [this.#unnamed, ...this.#named.values()].flatMap(endsIn)
    inTurns(eachOf(all), (end) => this.#abort(end, cause))
  }

  /** Those of a name end now, if `causeFor` says why. */
  end(name: string, causeFor: (end: End) => EndCause | undefined): void {
    inTurns(eachOf(this.of(name)), (end) => {
      const cause = end.target === undefined ? undefined : causeFor(end)
      if (cause !== undefined) this.#abort(end, cause)
    })
  }

  /** Those of a name are looked up, because a message says that they have changed. */
  askAbout(name: string): void {
    inTurns(eachOf(this.of(name)), (end) => this.#ask(end, true))
  }

  /** All are looked up, because messages may have been missed. */
  askAboutAll(): void {
    // a Map can change while it is read
    const names = this.#named.keys()
    inTurns(
      () => names.next().value,
      (name) => this.askAbout(name),
    )
  }

  #abort(end: End, cause: EndCause): void {
    const { target } = end
    this.close(end)
    target?.abort(new AuthEndedError(cause))
  }

  #ask(end: End, isHint: boolean): void {
    if (end.ask !== undefined && end.target !== undefined) this.#lookUpsOf(end).add(end, isHint)
  }

  #lookUpsOf(end: End): LookUps {
    const before = this.#lookUps.get(end.constructor)
    if (before !== undefined) return before
    const made = new LookUps((one, found = one.cause) => {
      if (typeof found === 'string') this.#abort(one, found)
      else this.#moved(one, found)
    })
    this.#lookUps.set(end.constructor, made)
    return made
  }

  #moved(end: End, at: number): void {
    this.#deadlines.remove(end)
    end.at = at
    if (at <= Date.now()) return this.#due(end)
    if (at === Infinity) return
    this.#deadlines.push(end)
    this.#schedule()
  }

  #due(end: End): void {
    if (end.ask === undefined) this.#abort(end, end.cause)
    else this.#ask(end, false)
  }

  #schedule(): void {
    const rest = Math.max(1, Math.ceil(Math.min(TICK, this.#deadlines.rest)))
    const now = performance.now()
    // an overdue timer may be lost: a test replaced the timers
    if (this.#timer !== undefined && now <= this.#firesAt && now + rest >= this.#firesAt) return
    clearTimeout(this.#timer)
    this.#firesAt = now + rest
    this.#timer = setTimeout(() => this.#wake(), rest).unref()
  }

  #wake(): void {
    this.#timer = undefined
    this.#deadlines.compare()
    inTurns(
      () => this.#deadlines.pop(),
      (end) => this.#due(end),
      () => {
        if (!this.#deadlines.isEmpty) this.#schedule()
      },
    )
  }
}

const endsIn = (list: End['list']): ReadonlyArray<End> => {
  const found: End[] = []
  for (let end = list?.first; end !== undefined; end = end.next) found.push(end)
  return found
}

const eachOf = <A>(all: ReadonlyArray<A>): (() => A | undefined) => {
  let at = 0
  return () => all[at++]
}

const endsMark = Symbol.for('koa-with-auth/ends')
// Safe: nothing else is kept under this symbol
const globalWithEnds = globalThis as { [endsMark]?: Ends }

/** The ends of this process, whichever copy of the package notes them. */
export const ends = (): Ends => (globalWithEnds[endsMark] ??= new Ends())
