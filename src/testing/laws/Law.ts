/** The laws of one thing: each as a test, or all together. */
import { inspect, isDeepStrictEqual } from 'node:util'
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
    refuse(what, violations)
  }
  return {
    tests: laws.map((law) => ({ name: law.name, check: () => check([law]) })),
    check: () => check(laws),
  }
}

/** Compares the result of a call with the expected one. */
type Expect = (done: string, actual: unknown, expected: unknown) => void

/** A law of a store: a trial of it. A violation is the first result that is not the expected one. */
export interface StoreLaw<S> {
  readonly name: string
  readonly fix: string
  readonly hold: (trial: { readonly store: S; readonly expect: Expect }) => Promise<void>
}

class Broken extends Error {}

const expect: Expect = (done, actual, expected) => {
  if (isDeepStrictEqual(actual, expected)) return
  throw new Broken(`${done}: ${inspect(actual, { depth: 5 })}\nit must be: ${inspect(expected, { depth: 5 })}`)
}

/** The laws of a store; `what` names it in messages. */
export const storeLaws = <S>(what: string, laws: ReadonlyArray<StoreLaw<S>>, store: S): Laws => {
  const broken = (error: unknown) => (error instanceof Broken ? error.message : `it throws: ${inspect(error)}`)
  return lawsOf(
    what,
    laws.map(({ name, fix, hold }) => ({
      name,
      find: () =>
        hold({ store, expect }).then(
          () => undefined,
          (error: unknown) => ({ counterexample: broken(error), fix }),
        ),
    })),
    store,
  )
}
