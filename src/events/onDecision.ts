/**
 * Listens to decisions. The channel is `koa-with-auth:decision`, which tools can subscribe to by its name alone.
 */
import { decisions } from '../core/events/channels.js'
import type { Decision } from '../core/events/Decision.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` with the record of each decision, when the response has ended: once for each request that a guard
 * decided about. Returns a function that stops this. If the listener throws, there is a process warning, and no
 * response changes.
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
export const onDecision = (listener: (decision: Decision) => void): (() => void) =>
  listening('onDecision', decisions, listener)

declareFactory('onDecision', onDecision)
