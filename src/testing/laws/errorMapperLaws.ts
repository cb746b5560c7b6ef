/**
 * The laws of an error mapper. Check your own with them: it answers every failure, answers 401 where it must, and
 * reveals nothing that was sent.
 */
import fc from 'fast-check'
import type { ErrorMapper } from '../../core/ErrorMapper.js'
import { checkHook } from '../../core/hooks.js'
import { checkOptions, maybe, positive, unchecked } from '../../core/options.js'
import type { LawTest } from './authenticatorLaws.js'
import { refuse, type Violation } from '../LawViolations.js'
import { secrets } from './credentials.js'
import { failures } from './failures.js'
import { answerOf, laws, type Answered, type Case, type MapperLaw } from './mapping.js'
import { mockRequest } from '../request/mockRequest.js'
import { printed, withBearer, withCookie, withHeader, withQuery, mergeRequests } from '../request/RequestSpec.js'
import { inWords, shown } from './Verdict.js'

/** How the laws are checked. */
export interface MapperOptions {
  /** How many failures each law is checked with. Default 200. */
  readonly runs?: number | undefined
  /** The seed of the random failures. Default 1. */
  readonly seed?: number | undefined
}

const cases: fc.Arbitrary<Case> = secrets().chain((secret) =>
  failures(fc.constant(`no user has ${secret}`)).map((error) => ({
    error,
    secret,
    spec: mergeRequests(
      withQuery('key', secret),
      withBearer(secret),
      withCookie('key', secret),
      withHeader('X-API-Key', secret),
    ),
  })),
)

// Called once, because every law looks at the same responses
const answersOf = (mapper: ErrorMapper, { runs = 200, seed = 1 }: MapperOptions): ReadonlyArray<Answered> =>
  fc.sample(cases, { numRuns: runs, seed }).map((one) => {
    const request = mockRequest(one.spec)
    return { ...one, request, answer: answerOf(mapper, one.error, request) }
  })

const find = (
  { name, judge }: MapperLaw,
  mapper: ErrorMapper,
  answers: ReadonlyArray<Answered>,
): Violation | undefined => {
  for (const answered of answers) {
    const { error, spec, answer } = answered
    const fix = judge(answered, mapper)
    if (fix === undefined) continue
    const failure = inWords({ _tag: 'Failed', error })
    return { law: name, counterexample: `${failure} at ${printed(spec)}\nbecame ${shown(answer)}`, fix }
  }
  return undefined
}

const checkArguments = (place: string, mapper: unknown, options: MapperOptions): void => {
  checkHook(`${place}(mapper)`, mapper, 2)
  checkOptions(`${place}(mapper, options)`, options, { runs: maybe(positive), seed: unchecked })
}

/**
 * Returns the laws of an error mapper. Each has a name and a check, so you can make a test of it. Throws a TypeError if the
 * argument is not a mapper.
 *
 * @example
 * import { defaultErrorMapper } from 'koa-with-auth'
 * import { lawsOfErrorMapper } from 'koa-with-auth/testing/laws'
 *
 * for (const { check } of lawsOfErrorMapper(defaultErrorMapper)) await check()
 */
export const lawsOfErrorMapper = (mapper: ErrorMapper, options: MapperOptions = {}): ReadonlyArray<LawTest> => {
  checkArguments('lawsOfErrorMapper', mapper, options)
  let known: ReadonlyArray<Answered> | undefined
  const answers = () => (known ??= answersOf(mapper, options))
  return laws.map((law) => ({
    name: law.name,
    check: () => rejecting(() => refuse('an error mapper', [find(law, mapper, answers()) ?? []].flat())),
  }))
}

/**
 * Checks every law of an error mapper. Rejects with `LawViolations`, which lists all that do not hold, and with a
 * TypeError for anything but a mapper.
 *
 * @example
 * import { perFailure } from 'koa-with-auth'
 * import { checkErrorMapper } from 'koa-with-auth/testing/laws'
 *
 * await checkErrorMapper(perFailure({ expired: () => ({ status: 401, body: { detail: 'Sign in again' } }) }))
 */
export const checkErrorMapper = (mapper: ErrorMapper, options: MapperOptions = {}): Promise<void> =>
  rejecting(() => {
    checkArguments('checkErrorMapper', mapper, options)
    const answers = answersOf(mapper, options)
    refuse(
      'an error mapper',
      laws.flatMap((law) => find(law, mapper, answers) ?? []),
    )
  })

// Turns an exception into a promise that rejects
const rejecting = (check: () => void): Promise<void> => Promise.resolve().then(check)
