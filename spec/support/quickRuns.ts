/** For `npm run test:quick`: fewer cases of each property that does not say how many it needs. */
import fc from 'fast-check'

fc.configureGlobal({ numRuns: 20 })
