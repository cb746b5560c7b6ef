/**
 * The laws of an error mapper. `errorMapperLaws.ts` checks them.
 */
import { validateHeaderName, validateHeaderValue } from 'node:http'
import { inspect, isDeepStrictEqual } from 'node:util'
import type { Request } from 'koa'
import type { AuthError } from '../../core/AuthError.js'
import type { ErrorMapper } from '../../core/ErrorMapper.js'
import { leaked } from '../attacks/leaked.js'
import { mockRequest } from '../request/mockRequest.js'
import type { RequestSpec } from '../request/RequestSpec.js'

/** A failure, its request, and the secret in both. */
export interface Case {
  readonly error: AuthError
  readonly spec: RequestSpec
  readonly secret: string
}

/** A case, and the mapper's response. */
export interface Answered extends Case {
  readonly answer: unknown
  readonly request: Request
}

/** A law. `judge` returns the fix if it does not hold. */
export interface MapperLaw {
  readonly name: string
  readonly judge: (answered: Answered, mapper: ErrorMapper) => string | undefined
}

// -------------------------------------------------------------------------------------
// laws
// -------------------------------------------------------------------------------------

const isRecord = (u: unknown): u is Readonly<Record<string, unknown>> => typeof u === 'object' && u !== null

const statusOf = (answer: unknown): unknown => (isRecord(answer) ? answer['status'] : undefined)

const isStatus = (u: unknown): u is number => Number.isInteger(u) && Number(u) >= 400 && Number(u) <= 599

const answersAll: MapperLaw = {
  name: 'is total: every failure becomes a response with a status from 400 to 599',
  judge: ({ answer }) => {
    if (answer instanceof Promise) return 'a mapper is sync: return a response, not a promise of one'
    if (isRecord(answer) && 'threw' in answer) return 'throw nothing; end with defaultErrorMapper(error, request)'
    return isStatus(statusOf(answer)) ? undefined : 'return { status, headers?, body? } with a status from 400 to 599'
  },
}

const wanted = (tag: AuthError['_tag'], status: number): boolean => {
  switch (tag) {
    case 'absent':
    case 'malformed':
    case 'invalid':
    case 'expired':
      return status === 401
    case 'forged':
    case 'insufficient':
      return status < 500 && status !== 401
    case 'throttled':
      return status === 429
    case 'unavailable':
      return status >= 500
    case 'raised':
      return status >= 500
  }
}

const rightStatus: MapperLaw = {
  name: 'says 401 to what is not authenticated, and to nothing else',
  judge: ({ answer, error }) => {
    const status = statusOf(answer)
    return !isStatus(status) || wanted(error._tag, status)
      ? undefined
      : `absent, malformed, invalid and expired are 401; forged and insufficient another 4xx (403); throttled is 429; unavailable and raised a 5xx; ${error._tag} is not ${status}`
  },
}

const sendable: MapperLaw = {
  name: 'answers what can be sent: a body that is text, bytes or JSON, headers that HTTP allows',
  judge: ({ answer }) => {
    if (!isRecord(answer)) return undefined
    const { body, headers } = answer
    try {
      if (isRecord(body) && !Buffer.isBuffer(body) && typeof JSON.stringify(body) !== 'string') throw new TypeError()
      for (const [name, value] of Object.entries(isRecord(headers) ? headers : {})) {
        validateHeaderName(name)
        for (const one of Array.isArray(value) ? value : [value]) validateHeaderValue(name, one)
      }
    } catch {
      return 'leave out what JSON cannot write (cycles, bigints, functions), and line breaks and other control characters in headers'
    }
    return ['string', 'undefined', 'object'].includes(typeof body)
      ? undefined
      : 'a body is a string, bytes or an object'
  },
}

const discreet: MapperLaw = {
  name: 'leaks nothing: no credential that was sent, and no message of an exception, is in a response',
  judge: ({ answer, secret }) =>
    leaked(inspect(answer, { depth: null, maxStringLength: null }) + text(answer), [secret]) === undefined
      ? undefined
      : 'return constant strings: URLs, fields and messages of exceptions can hold credentials',
}

const text = (answer: unknown): string => {
  try {
    return JSON.stringify(answer) ?? ''
  } catch {
    return ''
  }
}

const pure: MapperLaw = {
  name: 'is pure: the same failure gets the same response, and nothing is written',
  judge: ({ answer, error, request, spec }, mapper) => {
    const { response } = request.ctx
    if (response.status !== 404 || response.res.getHeaderNames().length > 0) {
      return 'write nothing to ctx; what the mapper returns is written'
    }
    return isDeepStrictEqual(answer, answerOf(mapper, error, mockRequest(spec)))
      ? undefined
      : 'return the same response for the same failure: no clock, no counter, no random number'
  },
}

/** All laws. */
export const laws: ReadonlyArray<MapperLaw> = [answersAll, rightStatus, sendable, discreet, pure]

/** What a mapper returns, or throws. */
export const answerOf = (mapper: ErrorMapper, error: AuthError, request: Request): unknown => {
  try {
    return mapper(error, request)
  } catch (threw) {
    return { threw }
  }
}
