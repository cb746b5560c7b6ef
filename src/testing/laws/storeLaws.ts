/**
 * Laws of stores: a law is a trial of one store, and a violation is the first result that is not the expected one.
 */
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Violation } from '../LawViolations.js'
import { lawsOf, type Laws } from './Law.js'

export interface Trial<S> {
  readonly store: S
  /** Compares the result of a call with the expected one. */
  readonly expect: (done: string, actual: unknown, expected: unknown) => void
}

export interface StoreLaw<S> {
  readonly name: string
  readonly fix: string
  readonly hold: (trial: Trial<S>) => Promise<void>
}

class Broken extends Error {}

const violationOf = async <S>({ name, fix, hold }: StoreLaw<S>, store: S): Promise<Violation | undefined> => {
  const expect: Trial<S>['expect'] = (done, actual, expected) => {
    if (isDeepStrictEqual(actual, expected)) return
    throw new Broken(`${done}: ${inspect(actual, { depth: 5 })}\nit must be: ${inspect(expected, { depth: 5 })}`)
  }
  try {
    await hold({ store, expect })
    return undefined
  } catch (error) {
    const counterexample = error instanceof Broken ? error.message : `it throws: ${inspect(error)}`
    return { law: name, counterexample, fix }
  }
}

/** The laws of a store; `what` names it in messages. */
export const storeLaws = <S>(what: string, laws: ReadonlyArray<StoreLaw<S>>, store: S): Laws =>
  lawsOf(
    what,
    laws.map((law) => ({ name: law.name, find: () => violationOf(law, store) })),
  )
