/**
 * Listens to one channel. A listener that fails does not change what it listens to.
 */
import type { EventChannel } from '../core/events/channels.js'
import { checkHook } from '../core/hooks.js'

/**
 * Calls `listener` with each record of a channel. Returns a function that stops this. `name` is that of the caller, for
 * messages.
 */
export const listening = <R>(name: string, to: EventChannel<R>, listener: (record: R) => void): (() => void) => {
  checkHook(`${name}(listener)`, listener, 1)
  const warn = (error: unknown): void => {
    const what = error instanceof Error ? (error.stack ?? error.message) : 'no Error'
    process.emitWarning(`a listener of ${name} threw: ${what}`, 'EventListenerWarning')
  }
  const listen = (record: unknown): void => {
    try {
      // Safe: only records of its type are published on a channel. A listener may be async
      const answer: unknown = listener(record as R)
      if (answer instanceof Promise) answer.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
  to.subscribe(listen)
  return () => void to.unsubscribe(listen)
}
