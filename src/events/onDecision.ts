/**
 * Listens to decisions. The channel is `koa-with-auth:decision`, which tools can subscribe to by its name alone.
 */
import { decisions } from '../core/events/channels.js'
import type { Decision } from '../core/events/Decision.js'
import { checkHook, declareFactory } from '../core/misuse.js'

/**
 * Calls `listener` with the record of each decision, when its answer is settled: once for each request that a guard decided
 * about. Returns a function that ends it. What the listener throws becomes a process warning; no answer changes.
 *
 * @example
 * import { onDecision } from 'koa-with-auth/events'
 *
 * const refused: string[] = []
 * const end = onDecision(({ outcome, method, route, failure }) => {
 *   if (outcome !== 'accepted') refused.push(`${method} ${route}: ${failure ?? outcome}`)
 * })
 * end()
 */
export const onDecision = (listener: (decision: Decision) => void): (() => void) => {
  checkHook('onDecision(listener)', listener, 1)
  const warn = (error: unknown): void => {
    const what = error instanceof Error ? (error.stack ?? error.message) : 'no Error'
    process.emitWarning(`a listener of onDecision threw: ${what}`, 'DecisionListenerWarning')
  }
  const listen = (record: unknown): void => {
    try {
      // Safe: only decisions are published on this channel. A listener may be async
      const answer: unknown = listener(record as Decision)
      if (answer instanceof Promise) answer.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
  decisions.subscribe(listen)
  return () => void decisions.unsubscribe(listen)
}

declareFactory('onDecision', onDecision)
