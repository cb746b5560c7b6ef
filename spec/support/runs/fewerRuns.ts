/** For mutation testing, which runs every property for every mutant: fewer cases, always the same ones. */
import fc from 'fast-check'

fc.configureGlobal({ numRuns: 10, seed: 1 })
