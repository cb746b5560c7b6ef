/**
 * koa-with-auth/events publishes records on channels of `node:diagnostics_channel`: decisions, and changes of keys, sessions and
 * stores that affect them.
 */
import * as records from '../core/events.js'
import { checkHook, declareFactory } from '../core/options.js'

export { endsSignIn } from '../core/events.js'
export type {
  ApiKeyEvent,
  CeremonyEvent,
  Decision,
  DecisionBranch,
  IntrospectionOutageEvent,
  Outcome,
  PasskeyEvent,
  ProviderAnswerEvent,
  ProviderKeysEvent,
  SignedInEvent,
  SignedOutEvent,
  SignedOutReason,
  SignInDigests,
  StoreContent,
  StoreOutageEvent,
} from '../core/events.js'

/** The record of each channel. The channel of `node:diagnostics_channel` has `koa-with-auth:` before its name. */
export interface Events {
  /** A decision about a request, when the response has ended: once for each request that a guard decided about. */
  readonly decision: records.Decision
  /** A sign-in by `logIn`, when the request is over and the store has saved it. */
  readonly 'signed-in': records.SignedInEvent
  /**
   * The end of a session that the store knows: by `logOut`, by `logOutEverywhere`, by a new sign-in, or by expiry, when a request
   * shows it. `endsSignIn` compares it with the sign-in of a socket or a stream. It is published only in the process that ended
   * the session. If there are several processes, send it to the others as JSON.
   */
  readonly 'signed-out': records.SignedOutEvent
  /** A ceremony that was begun, finished or refused, by `begin`, `secondly` and `finish`. Users and ceremonies are digests. */
  readonly ceremony: records.CeremonyEvent
  /** An API key that was `issued`, `adopted`, `rotated` or `revoked`, after the store has saved it. */
  readonly 'api-key': records.ApiKeyEvent
  /** A passkey that was `registered`, or an answer whose signature was right and whose counter did not grow (`copied`). */
  readonly passkey: records.PasskeyEvent
  /** A fetch of a provider's keys: `refreshed`, or `failed` with the problem. */
  readonly 'provider-keys': records.ProviderKeysEvent
  /** An answer of a provider that was refused: what was wrong, in words of this package. */
  readonly 'provider-answer': records.ProviderAnswerEvent
  /** An outage of introspection that begins, or that is over, as requests to the server show it. */
  readonly 'introspection-outage': records.IntrospectionOutageEvent
  /** An outage of a store that begins, or that is over, as requests to the store show it. */
  readonly 'store-outage': records.StoreOutageEvent
}

const channels: { readonly [C in keyof Events]: records.EventChannel<Events[C]> } = {
  decision: records.decisions,
  'signed-in': records.signedIn,
  'signed-out': records.signedOut,
  ceremony: records.ceremonyEvents,
  'api-key': records.apiKeyChanges,
  passkey: records.passkeyEvents,
  'provider-keys': records.providerKeys,
  'provider-answer': records.providerAnswers,
  'introspection-outage': records.introspectionOutages,
  'store-outage': records.storeOutages,
}

/**
 * Calls `listener` with each record of a channel. Returns a function that stops this. If the listener throws or rejects, there is a
 * process warning, and nothing changes that it listens to. Throws a TypeError for a channel that does not exist, and for a
 * listener that is no function.
 *
 * @example
 * import { apiKeys, memoryKeyStore } from 'koa-with-auth/keys'
 * import { on } from 'koa-with-auth/events'
 *
 * const log: string[] = []
 * const end = on('api-key', (record) => log.push(record.event))
 * const keys = apiKeys({ prefix: 'acme', store: memoryKeyStore() })
 * const { id } = await keys.issue({ owner: 'anna' })
 * await keys.revoke(id)
 * assert.deepStrictEqual(log, ['issued', 'revoked'])
 * end()
 */
export const on = <C extends keyof Events>(channel: C, listener: (record: Events[C]) => void): (() => void) => {
  if (!Object.hasOwn(channels, channel)) {
    const names = Object.keys(channels).join(', ')
    throw new TypeError(`on(channel, listener): there is no channel ${String(channel)}; the channels are ${names}`)
  }
  const to = channels[channel]
  checkHook(`on('${channel}', listener)`, listener, 1)
  const warn = (error: unknown): void => {
    const what = error instanceof Error ? (error.stack ?? error.message) : 'no Error'
    process.emitWarning(`a listener of on('${channel}') threw: ${what}`, 'EventListenerWarning')
  }
  const listen = (record: unknown): void => {
    try {
      // Safe: only records of its type are published on a channel. A listener may be async
      const answer: unknown = listener(record as Events[C])
      if (answer instanceof Promise) answer.catch(warn)
    } catch (error) {
      warn(error)
    }
  }
  to.subscribe(listen)
  return () => void to.unsubscribe(listen)
}

declareFactory('on', on)
