import {
  apiKeyChanges,
  ceremonyEvents,
  decisions,
  introspectionOutages,
  passkeyEvents,
  providerAnswers,
  providerKeys,
  signedIn,
  signedOut,
  storeOutages,
  type ApiKeyEvent,
  type CeremonyEvent,
  type Decision,
  type EventChannel,
  type IntrospectionOutageEvent,
  type PasskeyEvent,
  type ProviderAnswerEvent,
  type ProviderKeysEvent,
  type SignedInEvent,
  type SignedOutEvent,
  type StoreOutageEvent,
} from '../core/events.js'
import { checkHook, declareFactory } from '../core/options.js'

/**
 * koa-with-auth/events publishes records on channels of `node:diagnostics_channel`: decisions, and changes of keys, sessions and
 * stores that affect them.
 *
 * Reading guide: this file is the API. `core/events.ts` has the records and the channels.
 * `koa/watching.ts` publishes decisions.
 */
export type { ApiKeyEvent } from '../core/events.js'
export type { CeremonyEvent } from '../core/events.js'
export type { Decision, DecisionBranch, Outcome } from '../core/events.js'
export type { IntrospectionOutageEvent } from '../core/events.js'
export type { PasskeyEvent } from '../core/events.js'
export type { ProviderAnswerEvent } from '../core/events.js'
export type { ProviderKeysEvent } from '../core/events.js'
export { endsSignIn } from '../core/events.js'
export type { SignedInEvent, SignedOutEvent, SignedOutReason, SignInDigests } from '../core/events.js'
export type { StoreContent, StoreOutageEvent } from '../core/events.js'

/**
 * Calls `listener` with each record of a channel. Returns a function that stops this. `name` is that of the caller, for
 * messages. A listener that fails does not change what it listens to.
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

/**
 * Calls `listener` with a record of each API key that was `issued`, `adopted`, `rotated` or `revoked`, after the store
 * has saved it. Returns a function that stops this. If the listener throws, there is a process warning, and no key
 * changes. The channel is `koa-with-auth:api-key`.
 *
 * @example
 * import { apiKeys, memoryKeyStore } from 'koa-with-auth/keys'
 * import { onApiKey } from 'koa-with-auth/events'
 *
 * const log: string[] = []
 * const end = onApiKey((record) => log.push(record.event))
 * const keys = apiKeys({ prefix: 'acme', store: memoryKeyStore() })
 * const { id } = await keys.issue({ owner: 'anna' })
 * await keys.revoke(id)
 * assert.deepStrictEqual(log, ['issued', 'revoked'])
 * end()
 */
export const onApiKey = (listener: (record: ApiKeyEvent) => void): (() => void) =>
  listening('onApiKey', apiKeyChanges, listener)

declareFactory('onApiKey', onApiKey)

/**
 * Calls `listener` with a record of each ceremony that was `begun`, `finished` or `refused`, by `begin`, `secondly` and
 * `finish`. Users and ceremonies are digests. Returns a function that stops this. If the listener throws, there is a
 * process warning, and no response changes. The channel is `koa-with-auth:ceremony`.
 *
 * @example
 * import { onCeremony } from 'koa-with-auth/events'
 *
 * const replays = new Map<string, number>()
 * const end = onCeremony((record) => {
 *   if (record.event === 'refused' && record.reason === 'spent') replays.set(record.kind, (replays.get(record.kind) ?? 0) + 1)
 * })
 * end()
 */
export const onCeremony = (listener: (record: CeremonyEvent) => void): (() => void) =>
  listening('onCeremony', ceremonyEvents, listener)

declareFactory('onCeremony', onCeremony)

/**
 * Calls `listener` with the record of each decision, when the response has ended: once for each request that a guard
 * decided about. Returns a function that stops this. If the listener throws, there is a process warning, and no
 * response changes. The channel is `koa-with-auth:decision`, which tools can subscribe to by its name alone.
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

/**
 * Calls `listener` once when an outage of introspection begins, and once when it is over, as requests to the server
 * show it. Returns a function that stops this. If the listener throws, there is a process warning, and no response
 * changes. The channel is `koa-with-auth:introspection-outage`.
 *
 * @example
 * import { onIntrospectionOutage } from 'koa-with-auth/events'
 *
 * const end = onIntrospectionOutage((record) => {
 *   if (record.event === 'begun') console.error(`${record.server} ${record.problem}: tokens are answered 503`)
 *   else console.error(`${record.server} was down for ${record.durationMs} ms`)
 * })
 * end()
 */
export const onIntrospectionOutage = (listener: (record: IntrospectionOutageEvent) => void): (() => void) =>
  listening('onIntrospectionOutage', introspectionOutages, listener)

declareFactory('onIntrospectionOutage', onIntrospectionOutage)

/**
 * Calls `listener` with a record of each passkey that was `registered`, and of each answer whose signature was right
 * and whose counter did not grow (`copied`). Returns a function that stops this. If the listener throws, there is a
 * process warning, and nothing else changes. The channel is `koa-with-auth:passkey`.
 *
 * @example
 * import { onPasskey } from 'koa-with-auth/events'
 *
 * const suspicious: string[] = []
 * const end = onPasskey((record) => {
 *   if (record.event === 'copied') suspicious.push(record.id)
 * })
 * end()
 */
export const onPasskey = (listener: (record: PasskeyEvent) => void): (() => void) =>
  listening('onPasskey', passkeyEvents, listener)

declareFactory('onPasskey', onPasskey)

/**
 * Calls `listener` with a record of each answer of a provider that was refused: what was wrong, in words of this
 * package. Returns a function that stops this. If the listener throws, there is a process warning, and no response
 * changes. The channel is `koa-with-auth:provider-answer`.
 *
 * @example
 * import { onProviderAnswer } from 'koa-with-auth/events'
 *
 * const alarms: string[] = []
 * const end = onProviderAnswer(({ issuer, problem }) => {
 *   if (problem.startsWith('clock')) alarms.push(`the clock here and that of ${issuer} differ`)
 * })
 * end()
 */
export const onProviderAnswer = (listener: (record: ProviderAnswerEvent) => void): (() => void) =>
  listening('onProviderAnswer', providerAnswers, listener)

declareFactory('onProviderAnswer', onProviderAnswer)

/**
 * Calls `listener` with a record of each fetch of a provider's keys: `refreshed`, or `failed` with the problem. Returns
 * a function that stops this. If the listener throws, there is a process warning, and no response changes. The channel
 * is `koa-with-auth:provider-keys`.
 *
 * @example
 * import { onProviderKeys } from 'koa-with-auth/events'
 *
 * const alarms: string[] = []
 * const end = onProviderKeys((record) => {
 *   if (record.event === 'failed' && record.servesForMs < 600_000) alarms.push(`${record.issuer} ${record.problem}`)
 * })
 * end()
 */
export const onProviderKeys = (listener: (record: ProviderKeysEvent) => void): (() => void) =>
  listening('onProviderKeys', providerKeys, listener)

declareFactory('onProviderKeys', onProviderKeys)

/**
 * Calls `listener` with the record of each sign-in by `logIn`, when the request is over and the store has saved it.
 * Returns a function that stops this. If the listener throws, there is a process warning, and no response changes. The
 * channel is `koa-with-auth:signed-in`.
 *
 * @example
 * import { onSignedIn } from 'koa-with-auth/events'
 *
 * const end = onSignedIn(({ application, user }) => console.log(`${application}: user ${user} signed in`))
 * end()
 */
export const onSignedIn = (listener: (record: SignedInEvent) => void): (() => void) =>
  listening('onSignedIn', signedIn, listener)

declareFactory('onSignedIn', onSignedIn)

/**
 * Calls `listener` with a record when a session has ended and the store knows it: by `logOut`, by `logOutEverywhere`,
 * by a new sign-in, or by expiry, when a request shows it. Returns a function that stops listening. If the listener
 * throws, there is a process warning, and no answer changes. `endsSignIn` compares a record with the sign-in of a
 * socket or a stream. The channel is `koa-with-auth:signed-out`.
 *
 * A record is published only in the process that ended the session. If there are several processes, send it to the others as JSON.
 *
 * @example
 * import { onSignedOut } from 'koa-with-auth/events'
 *
 * const end = onSignedOut(({ application, user, reason }) => console.log(`${application}: user ${user} is signed out, ${reason}`))
 * end()
 */
export const onSignedOut = (listener: (record: SignedOutEvent) => void): (() => void) =>
  listening('onSignedOut', signedOut, listener)

declareFactory('onSignedOut', onSignedOut)

/**
 * Calls `listener` once when an outage of a store begins, and once when it is over, as requests to the store show it.
 * Returns a function that stops this. If the listener throws, there is a process warning, and no response changes. The
 * channel is `koa-with-auth:store-outage`.
 *
 * @example
 * import { onStoreOutage } from 'koa-with-auth/events'
 *
 * const end = onStoreOutage((record) => {
 *   if (record.event === 'begun') console.error(`the store of ${record.store} is down: ${record.reason}`)
 *   else console.error(`the store of ${record.store} was down for ${record.durationMs} ms`)
 * })
 * end()
 */
export const onStoreOutage = (listener: (record: StoreOutageEvent) => void): (() => void) =>
  listening('onStoreOutage', storeOutages, listener)

declareFactory('onStoreOutage', onStoreOutage)
