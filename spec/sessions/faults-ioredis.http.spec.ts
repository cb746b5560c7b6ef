/** Sessions in Redis by ioredis, set up as the docstring of `redisStore` recommends. */
import { describeRedisFaults } from '../support/sessionSiteRedis.js'

describeRedisFaults('ioredis')
