/**
 * koa-with-auth/events publishes records on channels of `node:diagnostics_channel`: decisions, and changes of keys, sessions and
 * stores that affect them.
 *
 * Reading guide: `onDecision.ts` and its siblings are the API. `core/events` has the records and the channels.
 * `koa/watching.ts` publishes decisions.
 */
export { onApiKey } from './onApiKey.js'
export { onDecision } from './onDecision.js'
export { onProviderKeys } from './onProviderKeys.js'
export { onSignedIn } from './onSignedIn.js'
export { onSignedOut } from './onSignedOut.js'
export { onStoreOutage } from './onStoreOutage.js'
export type { ApiKeyEvent } from '../core/events/ApiKeyEvent.js'
export type { Decision, DecisionBranch, Outcome } from '../core/events/Decision.js'
export type { ProviderKeysEvent } from '../core/events/ProviderKeysEvent.js'
export { endsSignIn } from '../core/events/SignInEvent.js'
export type { SignedInEvent, SignedOutEvent, SignedOutReason, SignInDigests } from '../core/events/SignInEvent.js'
export type { StoreContent, StoreOutageEvent } from '../core/events/StoreOutageEvent.js'
