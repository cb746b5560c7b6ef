/**
 * Listens to outages of stores: of API keys, and of sessions. The channel is `koa-with-auth:store-outage`.
 */
import { storeOutages } from '../core/events/channels.js'
import type { StoreOutageEvent } from '../core/events/StoreOutageEvent.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` once when an outage of a store begins, and once when it is over, as requests to the store show it.
 * Returns a function that stops this. If the listener throws, there is a process warning, and no response changes.
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
