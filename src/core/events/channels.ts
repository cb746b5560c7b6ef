/**
 * The channels of `node:diagnostics_channel` on which this package reports what happens, one type of record each. Without a
 * subscriber nothing is built.
 */
import { channel, type Channel } from 'node:diagnostics_channel'
import type { ApiKeyEvent } from './ApiKeyEvent.js'
import type { Decision } from './Decision.js'
import type { ProviderKeysEvent } from './ProviderKeysEvent.js'
import type { SignedInEvent, SignedOutEvent } from './SignInEvent.js'
import type { StoreOutageEvent } from './StoreOutageEvent.js'

/** A channel whose messages are all of one type. */
export interface EventChannel<R> extends Channel {
  publish(record: R): void
}

// Safe: only this package publishes on it, and only this type
const eventChannel = <R>(name: string): EventChannel<R> => channel(`koa-with-auth:${name}`)

/** Each decision, when the response has ended. */
export const decisions = eventChannel<Decision>('decision')

/** Each fetch of a provider's keys. */
export const providerKeys = eventChannel<ProviderKeysEvent>('provider-keys')

/** Each change of an API key. */
export const apiKeyChanges = eventChannel<ApiKeyEvent>('api-key')

/** Each sign-in by a session, when the request is over. */
export const signedIn = eventChannel<SignedInEvent>('signed-in')

/** Each end of a session, when the store has it. */
export const signedOut = eventChannel<SignedOutEvent>('signed-out')

/** Each outage of a store, when it begins and when it is over. */
export const storeOutages = eventChannel<StoreOutageEvent>('store-outage')

/** Publishes a frozen record. It is made only if there is a subscriber. */
export const report =
  <R extends object>(to: EventChannel<R>) =>
  (record: () => R): void => {
    if (to.hasSubscribers) to.publish(Object.freeze(record()))
  }
