/** koa-with-auth/redis: every store in Redis or Valkey, for several processes. */
export { redisKeyStore, type RedisKeyStoreOptions } from '../keys/redisKeyStore.js'
export { redisStore, type RedisStoreOptions } from '../sessions/redisStore.js'
export { redisPasskeyStore, type RedisPasskeyStoreOptions } from '../sign-in/passkeys/redisPasskeyStore.js'
export {
  redisSignals,
  type RedisPublisher,
  type RedisSignalsOptions,
  type RedisSubscriber,
} from '../stores/redisSignals.js'
