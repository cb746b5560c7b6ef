/**
 * Lets other processes know that a credential may have ended. A message is a hint: who gets it asks the store. So a message that is forged,
 * late or repeated ends nothing that is good, and one that is lost delays an end until its own time.
 */
import { ends } from '../ends/ends.js'
import * as is from '../core/checks.js'
import { within } from './within.js'

/**
 * Brings messages from each process of a service to all of them, such as a channel of Redis (`redisSignals` of `koa-with-auth/stores`).
 * A message is a string of digests, words and times, without a secret. If one of the functions throws or rejects, `on('store-outage')`
 * reports it, and nothing else changes.
 */
export interface Signals {
  /** Sends a message to all processes. No request waits for it. */
  readonly publish: (message: string) => void | Promise<void>
  /** Calls the listener with each message from now on. It is called once, when the application starts. */
  readonly subscribe: (listener: (message: string) => void) => void | Promise<void>
}

export const signalsLike = is.withMethods(
  ['publish', 'subscribe'],
  'see Signals, or take redisSignals or postgresSignals of koa-with-auth/stores',
)

/** What `redisSignals` says when messages may have been missed. */
export const MISSED = JSON.stringify({ v: 1, about: 'all' })

const TIMEOUT = 2000

const AGAIN = 5000

/** Lets the other processes know what may have ended, by a digest. Never throws, and nothing waits for it. */
export type Tell = (name: string) => void

// Two applications of a process may share their signals
const heard = new WeakSet<Signals>()

/** Listens to the signals, and returns what reaches the others. */
export const connected = (signals: Signals | undefined): Tell => {
  if (signals === undefined) return () => {}
  const publishing = within('signals', TIMEOUT)
  // One outage, however often it is tried again
  const subscribing = within('signals', TIMEOUT)
  const subscribe = (onSuccess: () => void): void => {
    // What is said until the next success is missed
    const again = () => subscribe(() => ends().askAboutAll())
    subscribing(async () => signals.subscribe(hear)).then(onSuccess, () => setTimeout(again, AGAIN).unref())
  }
  if (!heard.has(signals)) subscribe(() => {})
  heard.add(signals)
  return (name) => {
    const message = JSON.stringify({ v: 1, about: name, at: Date.now() })
    publishing(async () => signals.publish(message)).catch(() => {})
  }
}

const hear = (message: unknown): void => {
  const about = aboutOf(message)
  if (about === 'all') ends().askAboutAll()
  else if (about !== undefined) ends().askAbout(about)
}

const LONGEST = 256

const aboutOf = (message: unknown): string | undefined => {
  if (typeof message !== 'string' || message.length > LONGEST) return undefined
  try {
    const read: unknown = JSON.parse(message)
    if (typeof read !== 'object' || read === null || !Object.hasOwn(read, 'about')) return undefined
    const about: unknown = Reflect.get(read, 'about')
    return typeof about === 'string' ? about : undefined
  } catch {
    return undefined
  }
}
