/** The result of a failed check: every broken law with a counterexample and the fix, in one Error, which every test runner shows. */
import { isInstance, type ErrorCode } from '../core/data.js'

/** One law that does not hold. */
export interface Violation {
  /** The law, in words. */
  readonly law: string
  /** The request and the result. It contains credentials of the test. */
  readonly counterexample: string
  /** The fix. */
  readonly fix: string
}

const violationText = ({ law, counterexample, fix }: Violation, at: number): string =>
  `${at + 1}. ${law}\n   counterexample:\n     ${counterexample.replaceAll('\n', '\n     ')}\n   fix: ${fix}`

/**
 * The error of this kit's checks. `violations` has the content of its message as data.
 *
 * @example
 * import { httpBearer } from 'koa-with-auth'
 * import { LawViolations } from 'koa-with-auth/testing'
 * import { laws } from 'koa-with-auth/testing/laws'
 *
 * const prefix = httpBearer({ authenticate: (_request, token) => 'supersecret'.startsWith(token) && { user: 'anna' } })
 * const error: unknown = await laws.authenticator(prefix, { valid: ['supersecret'] }).check().catch((broken) => broken)
 *
 * assert(error instanceof LawViolations)
 * assert.match(error.message, /refuses .* credentials/)
 */
export class LawViolations extends Error {
  override readonly name = 'LawViolations'
  readonly code = 'ERR_LAW_VIOLATIONS' satisfies ErrorCode
  readonly violations: ReadonlyArray<Violation>

  /** @internal Also an error of another copy of this package, such as that of `require` beside that of `import`. */
  static override [Symbol.hasInstance](u: unknown): boolean {
    return isInstance(this, LawViolations, u, 'ERR_LAW_VIOLATIONS')
  }

  constructor(subject: string, violations: ReadonlyArray<Violation>) {
    super(
      [
        `${subject}: ${violations.length === 1 ? 'a law does' : `${violations.length} laws do`} not hold`,
        ...violations.map(violationText),
      ].join('\n\n'),
    )
    this.violations = violations
  }
}

export const throwViolations = (subject: string, violations: ReadonlyArray<Violation>): void => {
  if (violations.length > 0) throw new LawViolations(subject, violations)
}
