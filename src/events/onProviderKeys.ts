/**
 * Listens to fetches of providers' keys, of `koa-with-auth/jwt`. The channel is `koa-with-auth:provider-keys`.
 */
import { providerKeys } from '../core/events/channels.js'
import type { ProviderKeysEvent } from '../core/events/ProviderKeysEvent.js'
import { declareFactory } from '../core/hooks.js'
import { listening } from './listening.js'

/**
 * Calls `listener` with a record of each fetch of a provider's keys: `refreshed`, or `failed` with the problem. Returns
 * a function that stops this. If the listener throws, there is a process warning, and no response changes.
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
