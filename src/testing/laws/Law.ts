/** The laws of one thing: each as a test, or all together. */
import { refuse, type Violation } from '../LawViolations.js'

/** A law as a test: its title, and a check that rejects with the counterexample and the fix. */
export interface LawTest {
  readonly name: string
  readonly check: () => Promise<void>
}

/** The laws of one thing. */
export interface Laws {
  /** A test of each law, for a test runner. */
  readonly tests: ReadonlyArray<LawTest>
  /** Checks all of them. Rejects with `LawViolations`, which lists all that do not hold. */
  readonly check: () => Promise<void>
}

/** A law. `find` looks for a violation, and tries the simplest cases first. */
export interface Law {
  readonly name: string
  readonly find: () => Promise<Violation | undefined>
}

/** `subject` names it in messages. The laws are checked one after another. */
export const lawsOf = (subject: string, laws: ReadonlyArray<Law>): Laws => {
  const check = async (chosen: ReadonlyArray<Law>): Promise<void> => {
    const violations = []
    for (const { find } of chosen) violations.push((await find()) ?? [])
    refuse(subject, violations.flat())
  }
  return {
    tests: laws.map((law) => ({ name: law.name, check: () => check([law]) })),
    check: () => check(laws),
  }
}
