/**
 * Checks a router against a policy file for `seal`. The file lists what may be open, and how the rest is guarded.
 *
 * A router knows less than its application: it does not know settings above it, and routers before it. So for these,
 * the file may be weaker than the router, but not stricter. Lines of other routers in the file are ignored.
 */
import * as E from 'fp-ts/lib/Either.js'
import { readFileSync } from 'node:fs'
import type { Audit } from './Audit.js'
import { differencesOf, type Difference } from './differences.js'
import { linesOf, type PolicyLine } from './PolicyLine.js'
import { readPolicy } from './policyFile.js'

/** Returns the differences of a router from a policy file, as findings. Throws an Error for a file that cannot be read. */
export const policyFindings = (place: string, file: string | URL, audit: Audit): ReadonlyArray<string> =>
  differencesOf(linesIn(place, file), linesOf(audit))
    .filter(({ is }) => is !== undefined)
    .filter((difference) => !isOfTheApplication(difference))
    .map(({ text }) => `${text} (${String(file)})`)

const linesIn = (place: string, file: string | URL): ReadonlyArray<PolicyLine> => {
  const bytes = E.tryCatch(
    () => readFileSync(file),
    (error) => (error instanceof Error ? error.message : String(error)),
  )
  const read = E.isLeft(bytes) ? bytes : readPolicy(bytes.right)
  if (E.isLeft(read)) {
    throw new Error(`${place}: ${String(file)}: ${read.left}; write it with koa-with-auth audit --write`)
  }
  return read.right
}

const isOfTheApplication = ({ direction, was, is }: Difference): boolean =>
  direction === 'closed' && was?.who === is?.who && was?.by === is?.by && was?.docs === is?.docs
