/** koa-with-auth/redis: every store in Redis or Valkey, for several processes. */
export { redisKeyStore } from '../keys/redisKeyStore.js'
export { redisPasskeyStore } from '../sign-in/passkeys/redisPasskeyStore.js'
export type { RedisScriptOptions } from '../stores/redis.js'
export {
  redisSignals,
  type RedisPublisher,
  type RedisSignalsOptions,
  type RedisSubscriber,
} from '../stores/redisSignals.js'
