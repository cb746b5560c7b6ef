/**
 * koa-with-auth/redis: every store in Redis or Valkey, for several processes.
 *
 * Reading guide: each store is a file in its room. It needs one function that sends a command, so any client fits.
 */
export { redisKeyStore, type RedisKeyStoreOptions } from '../keys/redisKeyStore.js'
export { redisStore, type RedisStoreOptions } from '../sessions/redisStore.js'
export { redisPasskeyStore, type RedisPasskeyStoreOptions } from '../sign-in/passkeys/redisPasskeyStore.js'
export {
  redisSignals,
  type RedisPublisher,
  type RedisSignalsOptions,
  type RedisSubscriber,
} from '../stores/redisSignals.js'
