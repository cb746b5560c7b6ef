/** Faults of Redis under sessions, with ioredis, as the docstring of `redisStore` recommends it. */
import { describeRedisFaults } from '../support/sessionSiteRedis.js'

describeRedisFaults('ioredis')
