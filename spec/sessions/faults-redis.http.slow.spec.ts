/** Faults of Redis under sessions, with the official client, as the docstring of `redisStore` recommends it. */
import { describeRedisFaults } from '../support/sites/sessionSiteRedis.js'

describeRedisFaults('redis')
