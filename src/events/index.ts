/**
 * koa-with-auth/events: what was decided, as records on a channel of `node:diagnostics_channel`.
 *
 * Reading guide: `onDecision.ts` is what users call; `core/events/Decision.ts` the record; `koa/watching.ts` who tells it.
 */
export { onDecision } from './onDecision.js'
export type { Decision, DecisionBranch, Outcome } from '../core/events/Decision.js'
