/** For `npm run test:quick`: fewer cases for each property that does not set their number. */
import fc from 'fast-check'

fc.configureGlobal({ numRuns: 20 })
