/**
 * Judges the response to a request without a valid credential. It must be a refusal of this operation, with a
 * challenge, and no handler must have run.
 */
import { challengesOf } from '../../core/Description.js'
import type { Attack } from '../attacks/Attack.js'
import type { Violation } from '../LawViolations.js'
import { leaked } from '../attacks/leaked.js'
import { isOpen, type Tested } from './operations.js'
import { valuesOf, type Answer } from './serve.js'
import { printed, type RequestSpec } from '../request/RequestSpec.js'
import type { Trace } from './tripwires.js'

/** A request, and its result. */
export interface Asked {
  readonly spec: RequestSpec
  readonly answer: Answer | Error
  readonly trace: Trace
  /** What the application's `error` event reported. */
  readonly error: unknown
}

/** What is expected of the result. */
export interface Expectation {
  readonly tested: Tested
  readonly attack: Attack
  readonly statuses: ReadonlyArray<number> | undefined
  /** Returns whether the rest of the request is let in alone; `false` if there is no rest. */
  readonly isLawful: false | (() => Promise<boolean>)
}

const violationOf = ({ tested, attack }: Expectation, { spec, answer, error }: Asked) => {
  const answered = answer instanceof Error ? `no answer: ${answer.message}` : `answered ${answer.status}`
  const thrown = error instanceof Error ? `\n${error.name}: ${error.message}` : ''
  return (law: string, fix: string): Violation => ({
    law: `${tested.name}: ${law}`,
    counterexample: `${attack.what}: ${printed(spec)}\n${answered}${thrown}`,
    fix,
  })
}

/** Judges an operation that anyone may call: it must be reached, and refuse no one. */
export const judgePublic = (asked: Asked, expected: Expectation): Violation | undefined => {
  const { answer, trace } = asked
  const violation = violationOf(expected, asked)
  if (trace.ran?.by === expected.tested) return undefined
  const first = trace.reached[0]
  if (first !== undefined && first !== expected.tested) return undefined
  if (!(answer instanceof Error) && (answer.status === 401 || answer.status === 403)) {
    return violation(
      'it is public, but refused',
      'a guard or middleware in front of it refuses; it should let everybody pass',
    )
  }
  return unreached(violation)
}

const unreached = (violation: ReturnType<typeof violationOf>): Violation =>
  violation(
    'no request reached it',
    'is this the router that is mounted in the application? Name a path that leads to it in { params } or { paths }, and its host in { fields }',
  )

/** Judges a guarded operation: it must refuse callers who are not authenticated. */
export const judge = async (asked: Asked, expected: Expectation): Promise<Violation | undefined> => {
  const { answer, trace } = asked
  const { tested, attack } = expected
  const violation = violationOf(expected, asked)
  const { ran } = trace
  if (ran !== undefined && ran.by !== tested) {
    return violation(
      `${ran.by.name} answers instead`,
      `register ${tested.name} before ${ran.by.name}, or guard that one; middleware that only calls next() belongs in router.use`,
    )
  }
  if (ran !== undefined) {
    if (isOpen(tested) && ran.auth === undefined) return undefined
    if (expected.isLawful !== false && (await expected.isLawful())) return undefined
    return violation(
      'a handler ran without authentication',
      'check the authenticator alone: checkAuthenticator(a, { valid })',
    )
  }
  if (answer instanceof Error)
    return violation('it gave no answer', 'the authenticator must settle within its time limit')
  const secret = leaked(JSON.stringify(answer.lines) + answer.body, attack.secrets)
  if (secret !== undefined) return violation('a credential that was sent is in the answer', 'answer constant strings')
  return judgeRefusal(answer, asked, expected, violation)
}

const MALFORMED = [400, 403, 431]

const judgeRefusal = (
  answer: Answer,
  { trace }: Asked,
  { tested, attack, statuses = [401] }: Expectation,
  violation: ReturnType<typeof violationOf>,
): Violation | undefined => {
  const { status } = answer
  const isBare = attack.what === 'no credential'
  if (trace.reached.length === 0 && (status === 404 || status === 405)) return unreached(violation)
  if (!statuses.includes(status) && (isBare || !MALFORMED.includes(status))) {
    return status >= 500
      ? violation(
          'an error instead of a refusal',
          'return false or a Left for what is missing, strange or wrong; throw nothing',
        )
      : violation(
          `it answers ${status} instead of ${statuses.join(' or ')}`,
          'let the error mapper answer 401, or name the other statuses of a refusal in { statuses }',
        )
  }
  if (status !== 401) return undefined
  const challenges = valuesOf(answer, 'WWW-Authenticate').map((line) => line.toLowerCase())
  // another guarded operation may come first, and offer its own challenge
  const asked = trace.reached.at(-1) ?? tested
  // a group offers only the challenges of members that have not passed
  const missing =
    asked.description === undefined || !isBare ? [] : challengesOf(asked.description).map(({ scheme }) => scheme)
  const unnamed = missing.filter((scheme) => !challenges.some((line) => names(line, scheme.toLowerCase())))
  return challenges.length > 0 && unnamed.length === 0
    ? undefined
    : violation(
        `a 401 without ${unnamed.length === 0 ? 'a challenge' : `the challenge ${unnamed.join(', ')}`}`,
        'leave WWW-Authenticate to the library: remove it from the error mapper and from middleware above',
      )
}

// Several challenges may be in one line (RFC 9110 §11.6.1)
const names = (line: string, scheme: string): boolean =>
  line.split(/, */).some((part) => part === scheme || part.startsWith(`${scheme} `))
