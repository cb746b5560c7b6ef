/** Faults of Redis under sessions, with ioredis, as the docstring of `redisStore` recommends it. */
import { describeRedisFaults } from '../support/sites/sessionSiteRedis.js'

describeRedisFaults('ioredis')
