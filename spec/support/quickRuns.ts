/** For `npm run test:quick`: fewer cases of each property that does not name their number. */
import fc from 'fast-check'

fc.configureGlobal({ numRuns: 20 })
