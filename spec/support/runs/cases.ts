/**
 * Which cases laws try. A run says something about a change if the same cases are tried before and after it, so `npm test` and
 * continuous integration begin each law with this seed. `npm run test:laws` draws new cases, and many times as many.
 */
import fc from 'fast-check'
import { hasDrawnCases, hasFewCases } from './samples.js'

const SEED = 20_261_128

if (!hasDrawnCases) fc.configureGlobal(hasFewCases ? { seed: SEED, numRuns: 20 } : { seed: SEED })
