/** fast-check with many times the cases of each property, for `npm run test:laws`. A property that names its seed stays as it is. */
import { createRequire } from 'node:module'
import type * as FastCheck from 'fast-check'

// Safe: it is the package itself, which the name `fast-check` does not lead to in this run
const own = createRequire(import.meta.url)('fast-check') as typeof FastCheck
const times = Number(process.env['TIMES'] ?? 20)

type Parameters = Readonly<{ numRuns?: number; seed?: number; examples?: never }>

const many = (given: Parameters = {}): Parameters =>
  given.seed === undefined ? { ...given, numRuns: (given.numRuns ?? 100) * times } : given

export default {
  ...own,
  assert: (property: never, given?: Parameters) => own.assert(property, many(given)),
  check: (property: never, given?: Parameters) => own.check(property, many(given)),
}
