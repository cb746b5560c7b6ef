/**
 * koa-with-auth/events publishes records on channels of `node:diagnostics_channel`: decisions, and changes of keys, sessions and
 * stores that affect them.
 */
import { channels, type Events } from '../core/events.js'
import { checkHook, declareFactory } from '../core/options.js'

export { endsSession } from '../core/events.js'
export type {
  ApiKeyEvent,
  CeremonyEvent,
  Decision,
  DecisionBranch,
  Events,
  GuessLimitEvent,
  IntrospectionOutageEvent,
  Outcome,
  PasskeyEvent,
  PasswordCheckEvent,
  ProviderAnswerEvent,
  ProviderKeysEvent,
  SignedInEvent,
  SignedOutEvent,
  SignedOutReason,
  SessionDigest,
  StoreContent,
  StoreOutageEvent,
  UpstreamEvent,
} from '../core/events.js'

/**
 * Calls `listener` with each record of a channel. Returns a function that stops this. If the listener throws or rejects, there is a
 * process warning, and nothing changes that it listens to. Throws a TypeError for a channel that does not exist, and for a
 * listener that is no function.
 *
 * @example
 * import { apiKeys } from 'koa-with-auth/keys'
 * import { memoryStore } from 'koa-with-auth/stores'
 * import { on } from 'koa-with-auth/events'
 *
 * const log: string[] = []
 * const end = on('api-key', (record) => log.push(record.event))
 * const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
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
