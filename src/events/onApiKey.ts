/**
 * Listens to changes of API keys, of `koa-with-auth/keys`. The channel is `koa-with-auth:api-key`.
 */
import type { ApiKeyEvent } from '../core/events/ApiKeyEvent.js'
import { apiKeyChanges } from '../core/events/channels.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` with a record of each API key that was `issued`, `adopted`, `rotated` or `revoked`, after the store
 * has saved it. Returns a function that stops this. If the listener throws, there is a process warning, and no key
 * changes.
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
