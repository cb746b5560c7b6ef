/** Sessions in Redis by the official client, set up as the docstring of `redisStore` recommends. */
import { describeRedisFaults } from '../support/sessionSiteRedis.js'

describeRedisFaults('redis')
