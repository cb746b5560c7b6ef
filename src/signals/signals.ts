/**
 * Lets other processes know that a credential may have ended. A message is a hint: a process that gets it asks the store. So a message
 * that is forged, late or repeated ends nothing that is good, and a lost message delays an end until its own time.
 */
import { randomUUID } from 'node:crypto'
import { ends } from '../ends/ends.js'
import { jsonFields } from '../core/data.js'
import * as is from '../core/checks.js'
import { within } from '../stores/within.js'

/**
 * Brings messages from each process of a service to all of them, such as a channel of Redis (`redisSignals` of `koa-with-auth/stores`).
 * A message is a string of digests, words and times, without a secret. If one of the functions throws or rejects, `on('store-outage')`
 * reports it, and nothing else changes.
 */
export interface Signals {
  /** Sends a message to all processes. No request waits for it. */
  readonly publish: (message: string) => void | Promise<void>
  /**
   * Calls the listener with each message from now on. It is called when the application starts, and again with the same listener when
   * nothing was heard for a while, so it should connect anew.
   */
  readonly subscribe: (listener: (message: string) => void) => void | Promise<void>
}

export const signalsLike = is.withMethods(
  ['publish', 'subscribe'],
  'see Signals, or take redisSignals or postgresSignals of koa-with-auth/stores',
)

/** The message of `redisSignals` when others may have been missed. */
export const MISSED = JSON.stringify({ v: 1, about: 'all' })

const SIGNAL_TIMEOUT = 2000

const SUBSCRIBE_AFTER = 5000

// While something is open, each process says something that it must hear, in milliseconds: how often, and how soon, which is less
const BEAT = 10_000
const HEARD_WITHIN = 5000

const MAX_MESSAGE = 256

/** Lets the other processes know which credential may have ended, by a digest. Never throws, and nothing waits for it. */
export type Tell = (name: string) => void

// Two applications of a process may share their signals
const hubs = new WeakMap<Signals, Hub>()

/** Listens to the signals, and returns the function that reaches the others. */
export const connected = (signals: Signals | undefined): Tell => {
  if (signals === undefined) return () => {}
  const hub = hubs.get(signals) ?? new Hub(signals)
  hubs.set(signals, hub)
  return (name) => void hub.publish({ v: 1, about: name, at: Date.now() })
}

class Hub {
  readonly #signals: Signals
  readonly #publishing = within('signals', SIGNAL_TIMEOUT)
  // One outage, however often it is tried again
  readonly #subscribing = within('signals', SIGNAL_TIMEOUT)
  readonly #hearing = within('signals', HEARD_WITHIN)
  readonly #beat = randomUUID()
  readonly #listener = (message: string): void => this.#hear(message)
  #onBeat: (() => void) | undefined
  #isSubscribing = false
  // whether something was missed since everything was looked up
  #isDeaf = false

  constructor(signals: Signals) {
    this.#signals = signals
    this.#subscribe(() => {})
    setInterval(() => void this.#next(), BEAT).unref()
  }

  publish(message: object): Promise<boolean> {
    const text = JSON.stringify(message)
    return this.#publishing(async () => this.#signals.publish(text)).then(
      () => true,
      () => false,
    )
  }

  // One at a time, because each takes the connection of the subscription before
  #subscribe(onSuccess: () => void): void {
    if (this.#isSubscribing) return
    this.#isSubscribing = true
    const free = (next: () => void) => (): void => {
      this.#isSubscribing = false
      next()
    }
    // Messages until the next success are missed
    const again = () => this.#subscribe(() => ends().askAboutAll())
    this.#subscribing(async () => this.#signals.subscribe(this.#listener)).then(free(onSuccess), () =>
      setTimeout(free(again), SUBSCRIBE_AFTER).unref(),
    )
  }

  async #next(): Promise<void> {
    if (!ends().isWaiting) return
    const isHeard = new Promise<void>((resolve) => (this.#onBeat = resolve))
    // a hub that cannot be reached is an outage already
    if (await this.publish({ v: 1, beat: this.#beat })) {
      await this.#hearing(() => isHeard).then(
        () => this.#setDeaf(false),
        () => {
          this.#setDeaf(true)
          this.#subscribe(() => {})
        },
      )
    }
  }

  // messages before a change may have been missed
  #setDeaf(isDeaf: boolean): void {
    if (this.#isDeaf !== isDeaf) ends().askAboutAll()
    this.#isDeaf = isDeaf
  }

  #hear(message: unknown): void {
    const isShort = typeof message === 'string' && message.length <= MAX_MESSAGE
    const { about, beat } = (isShort ? jsonFields(message) : undefined) ?? {}
    if (beat === this.#beat) this.#onBeat?.()
    if (about === 'all') ends().askAboutAll()
    else if (typeof about === 'string') ends().askAbout(about)
  }
}
