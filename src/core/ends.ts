/**
 * The end of a credential, for what is still running: `AuthEndedError`, and the ends that a process waits for.
 *
 * A decision notes what let a request in (`Attempt.accepted`). Nothing is made of it until somebody asks (`koa/authSignal.ts`). Then an `End`
 * waits here, by time and under a name. One timer serves all ends. It fires each second at the latest, so a clock that jumps is
 * noticed, and an end that is further away than a timer can count.
 */
import type { Request } from './Request.js'
import type { ErrorCode } from './data.js'

/** Why a credential has ended. */
export type EndCause = 'expired' | 'signed out' | 'revoked' | 'idle'

/**
 * The `reason` of the signal that `authSignal` returns, when the credential of a request has ended. Its `cause` is `expired`,
 * `signed out`, `revoked` or `idle`.
 */
export class AuthEndedError extends Error {
  override readonly name = 'AuthEndedError'
  readonly code = 'ERR_AUTH_ENDED' satisfies ErrorCode
  override readonly cause: EndCause
  constructor(cause: EndCause) {
    super(`the credential of the request has ended: ${cause}`)
    this.cause = cause
  }
}

/** @internal What let a request in, and can end. */
export interface EndSource {
  /** Its end, for one signal; `undefined` if it has none. */
  readonly endFor: (request: Request) => End | undefined
  /** What it says about who acts for its subject (RFC 8693 §4.1). */
  readonly act?: unknown
}

interface Both {
  readonly both: readonly [Accepted, Accepted]
}

/** @internal What let a request in, in order. */
export type Accepted = EndSource | Both

/** @internal What let in so far, and one more. One alone is kept as it is, so that most decisions make nothing. */
export const withAccepted = (before: Accepted | undefined, one: Accepted): Accepted =>
  before === undefined ? one : { both: [before, one] }

/** @internal All that let a request in. */
export const sourcesIn = (accepted: Accepted | undefined): ReadonlyArray<EndSource> =>
  accepted === undefined ? [] : 'both' in accepted ? accepted.both.flatMap(sourcesIn) : [accepted]

/** @internal When a principal expires, in milliseconds since 1970; `undefined` if it does not say so. */
const expiryOf = (principal: unknown): number | undefined => {
  if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return undefined
  const { expiresAt } = principal
  const at = expiresAt instanceof Date ? expiresAt.getTime() : expiresAt
  return typeof at === 'number' && !Number.isNaN(at) ? at : undefined
}

/** @internal The end of a principal that says when it expires. */
export class PrincipalSource implements EndSource {
  readonly #principal: unknown
  constructor(principal: unknown) {
    this.#principal = principal
  }
  endFor(): End | undefined {
    const at = expiryOf(this.#principal)
    return at === undefined ? undefined : new End(at)
  }
}

/** @internal What is ended: an AbortController, or the like. */
export interface Ending {
  abort(reason: AuthEndedError): void
}

// What an end is doing, see `Ends`
const RESTING = 0
const ASKING = 1
const ASKING_AGAIN = 2
const TRYING_AGAIN = 3

/** @internal One end of one credential, for one signal. It is small: a process can have a hundred thousand of them. */
export class End {
  /** When it comes, in milliseconds since 1970; `Infinity`: not by itself. */
  at: number
  target: Ending | undefined
  // places in the lists of `Ends`
  index = -1
  next: End | undefined
  previous: End | undefined
  state = RESTING

  constructor(at: number) {
    this.at = at
  }

  /** Under which name it can come before its time: a digest, see `core/events.ts`. It is made when it is needed, and not kept. */
  named(): string | undefined {
    return undefined
  }

  /** Why it comes at its time. */
  get cause(): EndCause {
    return 'expired'
  }

  /** Why it has come already, as far as this process knows. */
  get before(): EndCause | undefined {
    return undefined
  }

  /** Looks the credential up: when it ends now, or why it has ended. Rejects in an outage. `isHint`: not at its time. */
  ask?(isHint: boolean): Promise<EndCause | number>
}

/** @internal An end that keeps its name, and how to find out whether it has come already. */
export class NamedEnd extends End {
  readonly #name: string
  readonly #isRevoked: (() => boolean) | undefined
  constructor(at: number, name: string, isRevoked?: () => boolean) {
    super(at)
    this.#name = name
    this.#isRevoked = isRevoked
  }
  override get before(): EndCause | undefined {
    return this.#isRevoked?.() === true ? 'revoked' : undefined
  }
  override named(): string {
    return this.#name
  }
}

/** The longest time between two looks at the clocks, in milliseconds. */
const TICK = 1000

/** How far the two clocks may drift apart before later ends are counted apart, in milliseconds. */
const DRIFT = 50

/** How many credentials are looked up at the same time, when something was missed. */
const PARALLEL = 16

/** Ends that were noted while the two clocks were as far apart: a heap, the earliest first. */
class Heap {
  readonly offset: number
  readonly #ends: End[] = []

  constructor(offset: number) {
    this.offset = offset
  }

  /** How late it is for these ends. The later of the two clocks counts: the system's can be set back, the other can stop. */
  get now(): number {
    return Math.max(Date.now(), performance.now() + this.offset)
  }

  get first(): End | undefined {
    return this.#ends[0]
  }

  push(end: End): void {
    this.#rise(end, this.#ends.length)
  }

  /** Whether it was here. */
  remove(end: End): boolean {
    const { index } = end
    if (this.#ends[index] !== end) return false
    end.index = -1
    const last = this.#ends.pop()
    if (last !== undefined && last !== end) {
      this.#sink(last, index)
      this.#rise(last, last.index)
    }
    return true
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
      if (parent === undefined || parent.at <= end.at) break
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
      const isRight = other !== undefined && other.at < one.at
      const child = isRight ? other : one
      if (child.at >= end.at) break
      this.#put(child, index)
      index = isRight ? left + 1 : left
    }
    this.#put(end, index)
  }
}

// A small integer takes no memory in a Map, and a string would be kept for each user. Names that share a place are compared
const hashOf = (name: string): number => {
  let place = 0
  for (let at = 0; at < name.length; at++) place = (Math.imul(place, 31) + name.charCodeAt(at)) | 0
  return place
}

class Ends {
  // By the place of their name, the first one of each list
  readonly #named = new Map<number, End>()
  #heaps: Heap[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #firesAt = Infinity
  #sweep: Promise<void> | undefined
  #isMissing = false

  /** Waits for an end, and looks now whether it has come already. */
  open(end: End, target: Ending): void {
    end.target = target
    const { before } = end
    if (before !== undefined) return this.#abort(end, before)
    const name = end.named()
    if (name !== undefined) {
      const place = hashOf(name)
      const next = this.#named.get(place)
      end.next = next
      if (next !== undefined) next.previous = end
      this.#named.set(place, end)
    }
    this.#moved(end, end.at)
    if (end.ask !== undefined && end.target !== undefined) void this.#ask(end, true)
  }

  close(end: End): void {
    if (end.target === undefined) return
    end.target = undefined
    this.#unscheduled(end)
    const { next, previous } = end
    const name = previous === undefined ? end.named() : undefined
    const place = name === undefined ? undefined : hashOf(name)
    if (next !== undefined) next.previous = previous
    if (previous !== undefined) previous.next = next
    else if (place !== undefined && next !== undefined) this.#named.set(place, next)
    else if (place !== undefined && this.#named.get(place) === end) this.#named.delete(place)
    end.next = end.previous = undefined
  }

  of(name: string): ReadonlyArray<End> {
    return this.#at(hashOf(name)).filter((end) => end.named() === name)
  }

  #at(place: number): ReadonlyArray<End> {
    const found: End[] = []
    for (let end = this.#named.get(place); end !== undefined; end = end.next) found.push(end)
    return found
  }

  /** Those of a name end now, if `causeFor` says why. */
  end(name: string, causeFor: (end: End) => EndCause | undefined): void {
    for (const one of this.of(name)) {
      const cause = causeFor(one)
      if (cause !== undefined) this.#abort(one, cause)
    }
  }

  /** Those of a name are looked up, because somebody says that something has changed. */
  askAbout(name: string): void {
    for (const end of this.of(name)) void this.#ask(end, true)
  }

  /** All are looked up, a few at a time, because messages may have been missed. */
  askAboutAll(): void {
    this.#isMissing = true
    this.#sweep ??= this.#sweepAll().finally(() => {
      this.#sweep = undefined
    })
  }

  async #sweepAll(): Promise<void> {
    while (this.#isMissing) {
      this.#isMissing = false
      const places = this.#named.keys()
      const work = async (): Promise<void> => {
        for (const place of places) for (const end of this.#at(place)) await this.#ask(end, true)
      }
      await Promise.all(Array.from({ length: PARALLEL }, work))
    }
  }

  #abort(end: End, cause: EndCause): void {
    const { target } = end
    this.close(end)
    target?.abort(new AuthEndedError(cause))
  }

  async #ask(end: End, isHint: boolean): Promise<void> {
    if (end.ask === undefined || end.target === undefined) return
    if (end.state === ASKING || end.state === ASKING_AGAIN) {
      // what is under way may have been read before the change
      end.state = ASKING_AGAIN
      return
    }
    end.state = ASKING
    const found = await end.ask(isHint).catch(() => undefined)
    // Safe: what came meanwhile changes it
    const isAskedAgain = end.state === ASKING_AGAIN
    end.state = RESTING
    // Safe: it may have been closed meanwhile
    if ((end.target as Ending | undefined) === undefined) return
    if (typeof found === 'string') return this.#abort(end, found)
    if (found === undefined) {
      // a message is no proof. But at its own time, an end that cannot be looked up has come
      if (!isHint) return this.#abort(end, end.cause)
      end.state = TRYING_AGAIN
      return this.#moved(end, Math.min(end.at, Date.now() + TICK))
    }
    this.#moved(end, found)
    if (isAskedAgain) await this.#ask(end, true)
  }

  #moved(end: End, at: number): void {
    this.#unscheduled(end)
    end.at = at
    if (at <= Date.now() && end.state === RESTING) return this.#due(end)
    if (at === Infinity) return
    this.#heapNow().push(end)
    this.#schedule()
  }

  #unscheduled(end: End): void {
    if (end.index >= 0) this.#heaps.some((heap) => heap.remove(end))
  }

  #heapNow(): Heap {
    const offset = Date.now() - performance.now()
    const last = this.#heaps.at(-1)
    if (last !== undefined && Math.abs(last.offset - offset) < DRIFT) return last
    const heap = new Heap(offset)
    this.#heaps.push(heap)
    return heap
  }

  #due(end: End): void {
    const isHint = end.state === TRYING_AGAIN
    if (isHint) end.state = RESTING
    if (end.ask === undefined) this.#abort(end, end.cause)
    else void this.#ask(end, isHint)
  }

  #schedule(): void {
    const rests = this.#heaps.map(({ first, now }) => (first === undefined ? TICK : first.at - now))
    const rest = Math.max(1, Math.ceil(Math.min(TICK, ...rests)))
    const now = performance.now()
    // one that is overdue may be lost: a test replaced the timers
    if (this.#timer !== undefined && now <= this.#firesAt && now + rest >= this.#firesAt) return
    clearTimeout(this.#timer)
    this.#firesAt = now + rest
    this.#timer = setTimeout(() => this.#wake(), rest).unref()
  }

  #wake(): void {
    this.#timer = undefined
    for (const heap of this.#heaps) {
      for (let { first } = heap; first !== undefined && first.at <= heap.now; { first } = heap) {
        heap.remove(first)
        this.#due(first)
      }
    }
    this.#heaps = this.#heaps.filter(({ first }) => first !== undefined)
    if (this.#heaps.length > 0) this.#schedule()
  }
}

const endsMark = Symbol.for('koa-with-auth/ends')
// Safe: nothing else is kept under this symbol
const everywhere = globalThis as { [endsMark]?: Ends }

/** @internal The ends of this process, whichever copy of the package notes them. */
export const ends = (): Ends => (everywhere[endsMark] ??= new Ends())
