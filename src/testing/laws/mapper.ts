/** The laws of an error mapper: it answers every failure, answers 401 where it must, and reveals nothing that was sent. */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { inspect, isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import type { Request } from 'koa'
import type { AuthError } from '../../core/AuthError.js'
import type { ErrorMapper } from '../../core/Settings.js'
import * as is from '../../core/checks.js'
import { unlessThrown } from '../../core/data.js'
import { checkHook, checkOptions } from '../../core/options.js'
import { leaked } from '../attacks.js'
import { mergeRequests, mockRequest, printed, withBearer, withCookie, withHeader, withQuery } from '../requests.js'
import { verdictInWords, unauthorized, valueInWords } from './Subject.js'
import { lawsOf, type Law, type Laws } from './Law.js'
import { randomFailures, secretTexts } from './random.js'

type MappedFailure = ReturnType<typeof answersOf>[number]

interface Mapped {
  readonly mapper: ErrorMapper
  readonly answers: () => ReadonlyArray<MappedFailure>
}

const mapperLaw = (
  name: string,
  judge: (answered: MappedFailure, mapper: ErrorMapper) => string | undefined,
): Law<Mapped> => ({
  name,
  find: ({ mapper, answers }) => {
    for (const answered of answers()) {
      const { error, spec, answer } = answered
      const fix = judge(answered, mapper)
      if (fix === undefined) continue
      const failure = verdictInWords({ _tag: 'Failed', error })
      return { counterexample: `${failure} at ${printed(spec)}\nbecame ${valueInWords(answer)}`, fix }
    }
    return undefined
  },
})

const hasProperties = (u: unknown): u is Readonly<Record<string, unknown>> => typeof u === 'object' && u !== null

const mappedStatus = (answer: unknown): unknown => (hasProperties(answer) ? answer['status'] : undefined)

const isStatus = (u: unknown): u is number => Number.isInteger(u) && Number(u) >= 400 && Number(u) <= 599

const answersAll = mapperLaw(
  'is total: every failure becomes a response with a status from 400 to 599',
  ({ answer }) => {
    if (answer instanceof Promise) return 'a mapper is sync: return a response, not a promise of one'
    if (hasProperties(answer) && 'threw' in answer) return 'throw nothing; end with defaultErrorMapper(error, request)'
    return isStatus(mappedStatus(answer))
      ? undefined
      : 'return { status, headers?, body? } with a status from 400 to 599'
  },
)

const isWanted = (tag: AuthError['_tag'], status: number): boolean => {
  if (unauthorized.includes(tag)) return status === 401
  if (tag === 'throttled') return status === 429
  return tag === 'unavailable' || tag === 'raised' ? status >= 500 : status < 500 && status !== 401
}

const rightStatus = mapperLaw('answers 401 to failures of authentication, and to no others', ({ answer, error }) => {
  const status = mappedStatus(answer)
  return !isStatus(status) || isWanted(error._tag, status)
    ? undefined
    : `absent, malformed, invalid and expired are 401; forged, insufficient and notFound another 4xx (403, 404); throttled is 429; unavailable and raised a 5xx; ${error._tag} is not ${status}`
})

const sendable = mapperLaw(
  'returns a response that can be sent: a body that is text, bytes or JSON, headers that HTTP allows',
  ({ answer }) => {
    if (!hasProperties(answer)) return undefined
    const { body, headers } = answer
    try {
      if (hasProperties(body) && !Buffer.isBuffer(body) && typeof JSON.stringify(body) !== 'string')
        throw new TypeError()
      for (const [name, value] of Object.entries(hasProperties(headers) ? headers : {})) {
        validateHeaderName(name)
        for (const one of Array.isArray(value) ? value : [value]) validateHeaderValue(name, one)
      }
    } catch {
      return 'leave out values that JSON cannot write (cycles, bigints, functions), and line breaks and other control characters in headers'
    }
    return ['string', 'undefined', 'object'].includes(typeof body)
      ? undefined
      : 'a body is a string, bytes or an object'
  },
)

const discreet = mapperLaw(
  'leaks nothing: no credential that was sent, and no message of an exception, is in a response',
  ({ answer, secret }) =>
    leaked(inspect(answer, { depth: null, maxStringLength: null }), [secret]) === undefined &&
    leaked(unlessThrown(() => JSON.stringify(answer)) ?? '', [secret]) === undefined
      ? undefined
      : 'return constant strings: URLs, fields and messages of exceptions can hold credentials',
)

const pure = mapperLaw(
  'is pure: the same failure gets the same response, and nothing is written',
  ({ answer, error, request, spec }, mapper) => {
    const { response } = request.ctx
    if (response.status !== 404 || response.res.getHeaderNames().length > 0) {
      return 'write nothing to ctx; the guard writes the returned response'
    }
    return isDeepStrictEqual(answer, answerOf(mapper, error, mockRequest(spec)))
      ? undefined
      : 'return the same response for the same failure: no clock, no counter, no random number'
  },
)

const answerOf = (mapper: ErrorMapper, error: AuthError, request: Request): unknown => {
  try {
    return mapper(error, request)
  } catch (threw) {
    return { threw }
  }
}

/** How the laws are checked. */
export interface MapperOptions {
  /** How many failures each law is checked with. Default 200. */
  readonly runs?: number | undefined
}

const cases = secretTexts().chain((secret) =>
  randomFailures(fc.constant(`no user has ${secret}`)).map((error) => ({
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
const answersOf = (mapper: ErrorMapper, { runs = 200 }: MapperOptions) =>
  fc.sample(cases, { numRuns: runs, seed: 1 }).map((one) => {
    const request = mockRequest(one.spec)
    return { ...one, request, answer: answerOf(mapper, one.error, request) }
  })

export const errorMapperLaws = (mapper: ErrorMapper, options: MapperOptions = {}): Laws => {
  checkHook('laws.errorMapper(mapper)', mapper, 2)
  checkOptions('laws.errorMapper(mapper, options)', options, { runs: is.maybe(is.positive) })
  let cached: ReadonlyArray<MappedFailure> | undefined
  const mapperLaws = [answersAll, rightStatus, sendable, discreet, pure]
  return lawsOf('an error mapper', mapperLaws, { mapper, answers: () => (cached ??= answersOf(mapper, options)) })
}
