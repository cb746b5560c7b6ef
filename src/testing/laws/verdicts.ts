/** Laws of an authenticator's results: it always answers, admits valid callers and no others, and does so every time. */
import { inspect, isDeepStrictEqual } from 'node:util'
import fc, { type Arbitrary } from 'fast-check'
import { branchesOf } from '../../core/AuthError.js'
import { isThenable } from '../../core/Result.js'
import { defaultErrorMapper } from '../../core/Settings.js'
import { locationsIn, valuesAt, withoutCredential } from '../CredentialLocation.js'
import { asServersRead, blindAttacks, hostileIn, informedAttacks, leaked, secretsAmong, unknownIn } from '../attacks.js'
import type { Attack } from '../attacks.js'
import { fromOtherSite, impostors, mergeRequests, printed, type RequestSpec } from '../requests.js'
import type { Law } from './Law.js'
import { verdictInWords, letSomebodyIn, type Subject, type Verdict } from './Subject.js'
import { hostileTexts, requestSpecs, secretTexts } from './random.js'

export const lawAbout = <A extends { readonly spec: RequestSpec; readonly what?: string }>(
  name: string,
  of: (subject: Subject) => ReadonlyArray<A>,
  judge: (verdict: Verdict, lawCase: A, subject: Subject) => string | undefined | Promise<string | undefined>,
): Law<Subject> => ({
  name,
  find: async (subject) => {
    for (const lawCase of of(subject)) {
      const verdict = await subject.askOnce(lawCase.spec)
      // then no law can be checked
      const fix = verdict._tag === 'NeverSettled' ? settleFix(subject) : await judge(verdict, lawCase, subject)
      const what = lawCase.what === undefined ? '' : `${lawCase.what}: `
      if (fix !== undefined)
        return { counterexample: `${what}${printed(lawCase.spec)}\n${verdictInWords(verdict)}`, fix }
    }
    return undefined
  },
})

const settleFix = ({ within }: Subject): string =>
  `settle every promise within ${within} ms; give questions to a store a shorter time limit`

const randomAttacks = (target: Subject): Arbitrary<Attack> => {
  const { locations, valid } = target
  const nothing = fc.constant<Attack>({ what: 'no credential', spec: {}, secrets: [] })
  const at = locations.map((location) => {
    const isWrong = (text: string): boolean =>
      valid.every((one) => !valuesAt(location, one).includes(asServersRead(location, text)))
    return fc.oneof(
      secretTexts()
        .filter(isWrong)
        .map((secret) => unknownIn(location, secret)),
      hostileTexts()
        .filter(isWrong)
        .map((text) => hostileIn(location, text)),
    )
  })
  const informed = informedAttacks(target)
  const attack = fc.oneof(nothing, ...at, ...(informed.length > 0 ? [fc.constantFrom(...informed)] : []))
  return fc
    .tuple(requestSpecs(), attack)
    .map(([about, { spec, ...rest }]) => ({ ...rest, spec: mergeRequests(about, spec) }))
}

/** All requests with a credential that must be refused: first the fixed requests, then the random requests. */
export const attacksOn = (subject: Subject): ReadonlyArray<Attack> => [
  ...blindAttacks(subject.locations),
  ...informedAttacks(subject),
  ...fc.sample(randomAttacks(subject), { numRuns: subject.runs, seed: 1 }),
]

// Without any credential: an empty request, valid requests without theirs, and requests that claim to be a user
const requestsWithoutCredentials = ({ locations, valid }: Subject): ReadonlyArray<Attack> => {
  const stripped = valid.map(({ remoteAddress: _, ...spec }) =>
    [...locations, ...locationsIn(spec)].reduce<RequestSpec>(
      (rest, location) => withoutCredential(location, rest),
      spec,
    ),
  )
  return [{}, ...stripped, ...impostors].map((spec) => ({ what: 'no credential', spec, secrets: [] }))
}

const validRequests = ({ valid }: Subject): ReadonlyArray<{ readonly spec: RequestSpec }> =>
  valid.map((spec) => ({ spec }))

const total = lawAbout(
  'is total: never throws, never rejects, settles in time',
  (subject) => [...validRequests(subject), ...requestsWithoutCredentials(subject), ...attacksOn(subject)],
  (verdict) => {
    if (verdict._tag === 'Threw' || verdict._tag === 'NoEither')
      return 'return false or a Left for a refused credential; throw nothing'
    return verdict._tag === 'Failed' && verdict.error._tag === 'raised'
      ? 'an exception is a 500, not a 401; return false or a Left for credentials that are missing, strange or wrong'
      : undefined
  },
)

const failsClosed = lawAbout(
  'fails closed: without a credential no caller is admitted',
  requestsWithoutCredentials,
  (verdict) =>
    letSomebodyIn(verdict)
      ? 'compare with a credential only if it was sent: an absent field is undefined or an empty string, and must equal nothing'
      : undefined,
)

const refusesOthers = lawAbout(
  'refuses wrong, empty, hostile, repeated and nearly right credentials',
  attacksOn,
  async (verdict, { what, rest }, { askOnce }) => {
    if (!letSomebodyIn(verdict)) return undefined
    if (rest !== undefined && letSomebodyIn(await askOnce(rest))) return undefined
    return what.includes('sent twice')
      ? 'never guess which of two counts: read with fromHeader, fromAuthorization, fromQuery or fromCookie, which return both'
      : 'compare the whole credential, the second parameter of a hook, with constantTimeEqual, or look it up exactly: in a Map, because table[key] also finds what every array, function or Buffer has; await promises, and unwrap Options before they become a principal'
  },
)

const letsIn = lawAbout('lets in valid requests', validRequests, (verdict) => {
  if (verdict._tag !== 'Passed')
    return 'it must let in every request given as valid; is it the right credential? A hook is called with the request first, then with the credential: (request, credential) => ...'
  return unfinishedPrincipal(verdict.principal)
})

const unfinishedPrincipal = (principal: unknown): string | undefined => {
  if (!principal) return 'a principal must be truthy; return an object that identifies the caller'
  if (typeof principal === 'function') return 'a principal is a function; call it'
  if (typeof principal !== 'object') return undefined
  if (isThenable(principal) || Object.values(principal).some(isThenable)) {
    return 'a principal holds a promise that was not awaited, so it does not identify the caller; await it'
  }
  return '_tag' in principal && ['None', 'Some', 'Left', 'Right'].includes(String(principal._tag))
    ? 'a principal is an Option or an Either, which is truthy with any content; unwrap it'
    : undefined
}

const deterministic: Law<Subject> = {
  name: 'is deterministic: the same request gets the same verdict',
  find: async (subject) => {
    const { ask, valid, locations } = subject
    const wrong = blindAttacks(locations).slice(0, 3)
    for (const spec of [...valid, ...wrong.map((attack) => attack.spec)]) {
      const first = await ask(spec)
      const between = await Promise.all([ask(spec), ask({}), ask(spec)])
      const verdicts = [first, between[0], between[2], await ask(spec)]
      const other = verdicts.find((verdict) => verdict._tag === 'NeverSettled' || !isSameVerdict(first, verdict))
      if (other === undefined) continue
      const counterexample = `${printed(spec)}\nfirst: ${verdictInWords(first)}\nthen: ${verdictInWords(other)}`
      if (other._tag === 'NeverSettled') return { counterexample, fix: settleFix(subject) }
      const fix =
        'keep nothing from one request to the next: no counter, no regular expression with the flag g, no shared variable'
      return { counterexample, fix }
    }
    return undefined
  },
}

const isSameVerdict = (one: Verdict, other: Verdict): boolean => {
  if (one._tag === 'Passed' && other._tag === 'Passed') return isDeepStrictEqual(one.principal, other.principal)
  if (one._tag !== 'Failed' || other._tag !== 'Failed') return one._tag === other._tag
  const tags = ({ error }: typeof one) => branchesOf(error).map(({ _tag }) => _tag)
  return one.error._tag === other.error._tag && tags(one).join() === tags(other).join()
}

// Also with valid credentials that are refused for another reason
const requestsWithSecrets = (subject: Subject): ReadonlyArray<Attack> => [
  ...attacksOn(subject).filter(({ secrets }) => secrets.length > 0),
  ...subject.valid.map((spec) => ({
    what: 'a write from another site',
    spec: fromOtherSite(spec),
    secrets: secretsAmong(subject.locations.flatMap((location) => valuesAt(location, spec))),
  })),
]

const inspectEverything = { depth: null, maxStringLength: null, maxArrayLength: null, showHidden: false } as const

const reportedBy = (verdict: Verdict, spec: RequestSpec, { requestOf }: Subject): string => {
  if (!('error' in verdict)) return ''
  const mapped = verdict._tag === 'Failed' ? JSON.stringify(defaultErrorMapper(verdict.error, requestOf(spec))) : ''
  return `${inspect(verdict.error, inspectEverything)}\n${mapped}`
}

const secrecy = lawAbout(
  'leaks nothing: no credential that was sent is in a failure, a challenge or an exception',
  requestsWithSecrets,
  (verdict, { spec, secrets }, subject) =>
    leaked(reportedBy(verdict, spec, subject), secrets) === undefined
      ? undefined
      : 'leave the credential out of failures, challenges and messages of exceptions: they end up in logs and at the client',
)

export const resultLaws: ReadonlyArray<Law<Subject>> = [
  letsIn,
  total,
  failsClosed,
  refusesOthers,
  deterministic,
  secrecy,
]
