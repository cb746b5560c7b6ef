/** The laws of a subject: each as a test, or all together. */
import { throwViolations, type Violation } from '../LawViolations.js'

/** A law as a test: its title, and a check that rejects with the counterexample and the fix. */
export interface LawTest {
  readonly name: string
  readonly check: () => Promise<void>
}

/** The laws of a subject. */
export interface Laws {
  /** A test of each law, for a test runner. */
  readonly tests: ReadonlyArray<LawTest>
  /** Checks all of them. Rejects with `LawViolations`, which lists all that do not hold. */
  readonly check: () => Promise<void>
}

type Breach = Omit<Violation, 'law'> | undefined

/** A law. `find` looks for a violation, and tries the simplest cases first. */
export interface Law<S> {
  readonly name: string
  readonly find: (subject: S) => Breach | Promise<Breach>
}

/** `what` names the subject in messages. The laws are checked one after another. */
export const lawsOf = <S>(what: string, laws: ReadonlyArray<Law<S>>, subject: S): Laws => {
  const check = async (chosen: ReadonlyArray<Law<S>>): Promise<void> => {
    const violations: Violation[] = []
    for (const { name, find } of chosen) {
      const breach = await find(subject)
      if (breach !== undefined) violations.push({ law: name, ...breach })
    }
    throwViolations(what, violations)
  }
  return {
    tests: laws.map((law) => ({ name: law.name, check: () => check([law]) })),
    check: () => check(laws),
  }
}
