/**
 * What a check found: every broken law with a counterexample and the fix, in one Error.
 *
 * An Error and nothing else, so that every test runner shows it: vitest, jest, mocha, node:test.
 */

/** One law that does not hold. */
export interface Breach {
  /** Which law, in words. */
  readonly law: string
  /** What was sent, and what came of it. Credentials of the test stand in it. */
  readonly counterexample: string
  /** What to do. */
  readonly fix: string
}

const indented = (text: string): string => text.replaceAll('\n', '\n     ')

const told = ({ law, counterexample, fix }: Breach, at: number): string =>
  `${at + 1}. ${law}\n   counterexample:\n     ${indented(counterexample)}\n   fix: ${fix}`

/**
 * Thrown by the checks of this kit; `breaches` is what its message tells, as data.
 *
 * @example
 * import { httpBearer } from 'koa-with-auth'
 * import { BrokenLaws, checkAuthenticator } from 'koa-with-auth/testing'
 *
 * const prefix = httpBearer({ authenticate: (_request, token) => 'supersecret'.startsWith(token) && { user: 'anna' } })
 * const error: unknown = await checkAuthenticator(prefix, { valid: ['supersecret'] }).catch((broken) => broken)
 *
 * assert(error instanceof BrokenLaws)
 * assert.match(error.message, /refuses .* credentials/)
 */
export class BrokenLaws extends Error {
  override readonly name = 'BrokenLaws'
  readonly breaches: ReadonlyArray<Breach>

  constructor(subject: string, breaches: ReadonlyArray<Breach>) {
    super(
      [
        `${subject}: ${breaches.length === 1 ? 'a law does' : `${breaches.length} laws do`} not hold`,
        ...breaches.map(told),
      ].join('\n\n'),
    )
    this.breaches = breaches
  }
}

/** Throws what was found, if anything was. */
export const refuse = (subject: string, breaches: ReadonlyArray<Breach>): void => {
  if (breaches.length > 0) throw new BrokenLaws(subject, breaches)
}
