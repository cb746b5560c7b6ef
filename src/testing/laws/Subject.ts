/**
 * An authenticator under test: how it is called, and its possible results.
 *
 * It is called as a guard calls it, after the middleware above. Unlike a guard, this also notices exceptions, and
 * calls that never end.
 */
import { inspect } from 'node:util'
import type { Context, Middleware, Request } from 'koa'
import { is as isAuthError, type AuthError } from '../../core/AuthError.js'
import { fromFunction, type Authenticator, type AuthenticatorLike } from '../../core/Authenticator.js'
import type { BasicCredentials } from '../../core/Credentials.js'
import { leaves } from '../../core/Description.js'
import { settingsOf } from '../../core/Exchange.js'
import * as is from '../../core/checks.js'
import { checkOptions, type Checks } from '../../core/options.js'
import { distinctLocations, locationOf, locationsIn, putCredentials } from '../CredentialLocation.js'
import type { CredentialLocation } from '../CredentialLocation.js'
import { HOST, mockRequest, withBasic, type ContextFactory, type RequestSpec } from '../requests.js'

/** The result of a call, also a result that is forbidden. */
export type Verdict =
  | { readonly _tag: 'Passed'; readonly principal: unknown }
  | { readonly _tag: 'Failed'; readonly error: AuthError }
  | { readonly _tag: 'Threw'; readonly error: unknown }
  | { readonly _tag: 'NoEither'; readonly answer: unknown }
  | { readonly _tag: 'NeverSettled' }

const verdictFrom = (result: unknown): Verdict => {
  if (typeof result === 'object' && result !== null && '_tag' in result) {
    if (result._tag === 'Right' && 'right' in result) return { _tag: 'Passed', principal: result.right }
    if (result._tag === 'Left' && 'left' in result && isAuthError(result.left)) {
      return { _tag: 'Failed', error: result.left }
    }
  }
  return { _tag: 'NoEither', answer: result }
}

/** The failures whose status is 401. */
export const unauthorized: ReadonlyArray<AuthError['_tag']> = ['absent', 'malformed', 'invalid', 'expired']

/** Whether a caller with credentials was let in; `optional` lets anonymous callers in, too. */
export const letSomebodyIn = (verdict: Verdict): boolean => verdict._tag === 'Passed' && verdict.principal !== undefined

export const verdictInWords = (verdict: Verdict): string => {
  switch (verdict._tag) {
    case 'Passed':
      if (verdict.principal === undefined) return 'let an anonymous caller in, as undefined'
      return `let in ${valueInWords(verdict.principal)}`
    case 'Failed':
      if (verdict.error._tag === 'raised') return `raised ${valueInWords(verdict.error.error)}`
      return `refused as ${verdict.error._tag}`
    case 'Threw':
      return `threw ${valueInWords(verdict.error)}`
    case 'NoEither':
      return `answered ${valueInWords(verdict.answer)}, which is no Either of an AuthError`
    case 'NeverSettled':
      return 'never settled'
  }
}

/** A value in words, without the stack of an Error. */
export const valueInWords = (u: unknown): string =>
  u instanceof Error ? `${u.name}: ${u.message}` : inspect(u, { depth: 3, breakLength: Infinity })

/** A request that must be accepted; or only its credential, which is put into the place that the description names. */
export type ValidRequest = RequestSpec | string | BasicCredentials

/** How the laws are checked. */
export interface LawOptions {
  /** Requests that must be accepted: at least one for each alternative. */
  readonly valid: ReadonlyArray<ValidRequest>
  /** How long one request may take, in milliseconds. Default 1000. */
  readonly within?: number | undefined
  /** How many random requests each law is checked with, in addition to the fixed requests. Default 100. */
  readonly runs?: number | undefined
  /** Middleware that runs before the authenticator, such as sessions and `authSettings`. Default: none. */
  readonly above?: ReadonlyArray<Middleware> | undefined
  /** The application whose `keys` and settings the requests have. Default: a new application. */
  readonly app?: ContextFactory | undefined
}

// After something has not ended once, later calls wait only so long: the check has failed already, and must say so before a test runner ends it
const IMPATIENT = 25

const lawChecks: Checks<LawOptions> = {
  valid: is.listOf(() => true, 'must be an array of at least one request or credential that is let in', 1),
  within: is.maybe(is.positive),
  runs: is.maybe(is.positive),
  above: is.maybe(is.list),
  app: is.unchecked,
}

export const lawSubject = (caller: string, member: AuthenticatorLike, given: LawOptions) => {
  const options = checkOptions(caller, given, lawChecks)
  const { valid, within = 1000, runs = 100, above = [], app } = options
  const authenticator = fromFunction(member)
  const { description } = authenticator
  const described = leaves(description).map(locationOf)
  const isDescribed = !described.includes(undefined)
  const specs = valid.map((one) => specOf(caller, one, described))
  const places = [...described.flatMap((one) => one ?? []), ...(isDescribed ? [] : specs.flatMap(locationsIn))]
  const requestOf = (spec: RequestSpec) => mockRequest(withHost(spec), app)
  let patience = within
  const ask = async (spec: RequestSpec): Promise<Verdict> => {
    const verdict = await verdictInTime(verdictOn(authenticator, requestOf(spec), above), patience)
    if (verdict._tag === 'NeverSettled') patience = Math.min(patience, IMPATIENT)
    return verdict
  }
  const verdicts = new Map<string, Promise<Verdict>>()
  return {
    description,
    valid: specs,
    /** The places that are described; if something has no scheme, also those in valid requests. */
    locations: distinctLocations(places),
    isDescribed,
    runs,
    within,
    requestOf,
    settingsFor: async (spec: RequestSpec) => {
      const request = requestOf(spec)
      await through(above, request.ctx, async () => {})
      return settingsOf(request)
    },
    /** Calls it with a new request each time. */
    ask,
    /** The same, but caches results, because several laws look at a result. */
    askOnce: (spec: RequestSpec): Promise<Verdict> => {
      const key = JSON.stringify(spec)
      const verdict = verdicts.get(key) ?? ask(spec)
      verdicts.set(key, verdict)
      return verdict
    },
  }
}

export type Subject = ReturnType<typeof lawSubject>

// RFC 9112 §3.2: every request has a Host
const withHost = (spec: RequestSpec): RequestSpec =>
  spec.fields?.some(([name]) => name.toLowerCase() === 'host') === true
    ? spec
    : { ...spec, fields: [['Host', HOST], ...(spec.fields ?? [])] }

const specOf = (
  caller: string,
  valid: ValidRequest,
  locations: ReadonlyArray<CredentialLocation | undefined>,
): RequestSpec => {
  if (typeof valid !== 'string' && !('username' in valid)) return valid
  const [only] = locations
  if (only === undefined || locations.length !== 1) {
    throw new TypeError(
      `${caller.replace('options', '{ valid }')}: a credential alone is not a request; write the request, such as withBearer('...') or withHeader('X-API-Key', '...')`,
    )
  }
  if (typeof valid === 'string') return putCredentials(only, [valid], {})
  return withBasic(valid.username, valid.password)
}

const verdictOn = async (
  { evaluate }: Authenticator<unknown>,
  request: Request,
  above: ReadonlyArray<Middleware>,
): Promise<Verdict> => {
  let verdict: Verdict = { _tag: 'Threw', error: new Error('the middleware above did not call next()') }
  const last = async (): Promise<void> => {
    verdict = verdictFrom(await evaluate(request))
  }
  try {
    await through(above, request.ctx, last)
  } catch (error) {
    verdict = { _tag: 'Threw', error }
  }
  return verdict
}

const through = (above: ReadonlyArray<Middleware>, ctx: Context, last: () => Promise<void>): Promise<unknown> =>
  above.reduceRight<() => Promise<unknown>>(
    (next, middleware) => () => Promise.resolve().then((): unknown => middleware(ctx, next)),
    last,
  )()

const verdictInTime = (verdict: Promise<Verdict>, ms: number): Promise<Verdict> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Verdict>((resolve) => {
    timer = setTimeout(resolve, ms, { _tag: 'NeverSettled' })
  })
  return Promise.race([verdict, late]).finally(() => clearTimeout(timer))
}
