/**
 * The laws of an authenticator. Check your own with them: each law in a separate test, or all together.
 *
 * It is called with requests without a socket, as a guard would call it. A hook that asks a store asks it many times.
 * Only what can be seen from outside is checked, not whether secrets are compared in constant time.
 *
 * | law            | a violation is, for example                                                |
 * |----------------|-------------------------------------------------------------------------|
 * | total          | a hook that throws at a missing header, a promise that never settles     |
 * | fails closed   | an absent key that equals an unset one                                   |
 * | refuses others | `'supersecret'.startsWith(token)`, `==`, the first of two credentials    |
 * | lets in        | a principal that is `''`, or holds a promise                             |
 * | deterministic  | a counter, a regular expression with the flag `g`                        |
 * | leaks nothing  | `throw new Error(token)`                                                 |
 * | description    | a scheme that names another header than `extract` reads                  |
 * | challenges     | a scheme that no 401 offers                                              |
 * | other sites    | a cookie that is said not to be ambient                                  |
 */
import type { AuthenticatorLike } from '../../core/Authenticator.js'
import { checkMember } from '../../core/members.js'
import { refuse } from '../LawViolations.js'
import { subjectOf, type LawOptions } from './Subject.js'
import { describedTruly, offersChallenges, refusesOtherSites } from './description.js'
import { deterministic, failsClosed, letsIn, refusesOthers, secrecy, total, type Law } from './verdicts.js'

/** A law as a test: its title, and a check that rejects with the counterexample and the fix. */
export interface LawTest {
  readonly name: string
  readonly check: () => Promise<void>
}

const laws: ReadonlyArray<Law> = [
  letsIn,
  total,
  failsClosed,
  refusesOthers,
  deterministic,
  secrecy,
  describedTruly,
  offersChallenges,
  refusesOtherSites,
]

/**
 * Returns the laws of an authenticator, or of any function of the request. Each has a name and a check, so you can make a test of
 * it. Throws a TypeError for options that cannot work.
 *
 * @example
 * import test from 'node:test' // or vitest, jest, mocha
 * import { constantTimeEqual, httpBearer } from 'koa-with-auth'
 * import { lawsOf } from 'koa-with-auth/testing/laws'
 *
 * const bearer = httpBearer({
 *   authenticate: (_request, token) => constantTimeEqual(token, 'supersecret') && { user: 'anna' },
 * })
 *
 * const titles = lawsOf(bearer, { valid: ['supersecret'] }).map(({ name }) => name)
 * const suite = () => {
 *   for (const { name, check } of lawsOf(bearer, { valid: ['supersecret'] })) test(name, check)
 * }
 */
export const lawsOf = (authenticator: AuthenticatorLike, options: LawOptions): ReadonlyArray<LawTest> => {
  checkMember('lawsOf(a, ...)', authenticator)
  const subject = subjectOf('lawsOf(a, options)', authenticator, options)
  return laws.map((law) => ({
    name: law.name,
    check: async () => {
      const violation = await law.find(subject)
      refuse('an authenticator', violation === undefined ? [] : [violation])
    },
  }))
}

/**
 * Checks every law of an authenticator. Rejects with `LawViolations`, which lists all that do not hold, and with a
 * TypeError for options that cannot work.
 *
 * @example
 * import { apiKeyHeader, constantTimeEqual } from 'koa-with-auth'
 * import { checkAuthenticator } from 'koa-with-auth/testing/laws'
 * import { withHeader } from 'koa-with-auth/testing'
 *
 * const key = apiKeyHeader({
 *   paramName: 'X-API-Key',
 *   authenticate: (_request, key) => constantTimeEqual(key, 'k1') && { client: 'Acme' },
 * })
 *
 * await checkAuthenticator(key, { valid: [withHeader('X-API-Key', 'k1')] })
 */
export const checkAuthenticator = async (authenticator: AuthenticatorLike, options: LawOptions): Promise<void> => {
  checkMember('checkAuthenticator(a, ...)', authenticator)
  const subject = subjectOf('checkAuthenticator(a, options)', authenticator, options)
  const violations = []
  for (const { find } of laws) violations.push((await find(subject)) ?? [])
  refuse('an authenticator', violations.flat())
}
