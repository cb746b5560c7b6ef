/**
 * The laws of an authenticator, or of any function of the request.
 *
 * It is called with requests without a socket, as a guard would call it. A hook that asks a store asks it many times. Only behavior that can be
 * seen from outside is checked, not whether secrets are compared in constant time.
 */
import { checkMember } from '../../core/options.js'
import type { AuthenticatorLike } from '../../core/Authenticator.js'
import { lawsOf, type Law, type Laws } from './Law.js'
import { letSomebodyIn, lawSubject, unauthorized, type LawOptions, type Subject, type Verdict } from './Subject.js'
import { attacksOn, lawAbout, resultLaws } from './verdicts.js'
import { branchesOf } from '../../core/AuthError.js'
import { make } from '../../core/Challenge.js'
import { leaves, challengesOf, type Leaf } from '../../core/Description.js'
import { alternativesOf } from '../../core/Alternative.js'
import {
  describedLocations,
  locationOf,
  placeInWords,
  putCredentials,
  valuesAt,
  withoutCredential,
} from '../CredentialLocation.js'
import type { CredentialLocation } from '../CredentialLocation.js'
import { fromOtherSite, type RequestSpec } from '../requests.js'
import { isBasic, wholly } from '../attacks.js'

export const authenticatorLaws = (authenticator: AuthenticatorLike, options: LawOptions): Laws => {
  checkMember('laws.authenticator(a, ...)', authenticator)
  const subject = lawSubject('laws.authenticator(a, options)', authenticator, options)
  return lawsOf('an authenticator', lawsOfAuthenticators, subject)
}

// OpenAPI, the challenges, `Vary` and the check for CSRF rely on the description of an authenticator
interface LawCase {
  readonly what: string
  readonly spec: RequestSpec
  readonly judge: (verdict: Verdict) => string | undefined
  /** The request without this credential. If it is let in by another credential, so may be the whole. */
  readonly rest?: RequestSpec
}

const carries = (spec: RequestSpec) => (location: CredentialLocation) => valuesAt(location, spec).length > 0

// of each alternative that demands something; `undefined` for a credential that has no place
const alternativePlaces = ({ description }: Subject): ReadonlyArray<ReadonlyArray<CredentialLocation | undefined>> =>
  alternativesOf(description)
    .map(({ demands }) => demands.map(({ leaf }) => locationOf(leaf)))
    .filter(({ length }) => length > 0)

const UNKNOWN = 'Unkn0wnCredential5b1d'

const isAbsent = (verdict: Verdict): boolean =>
  (verdict._tag === 'Failed' && verdict.error._tag === 'absent') ||
  (verdict._tag === 'Passed' && verdict.principal === undefined)

// An unknown credential in the described places must not count as absent. Checked if no valid request uses these places
const unknownInDescribed = (subject: Subject): ReadonlyArray<LawCase> =>
  alternativePlaces(subject)
    .flatMap((locations) => {
      const known = locations.flatMap((location) => location ?? [])
      return known.length === locations.length ? [known] : []
    })
    .filter((locations) => !subject.valid.some((spec) => locations.every(carries(spec))))
    .map((locations) => {
      const places = locations.map(placeInWords).join(' and ')
      return {
        what: `an unknown credential in ${places}`,
        spec: locations.reduce<RequestSpec>(
          (spec, location) => putCredentials(location, [wholly(location, UNKNOWN)], spec),
          {},
        ),
        judge: (verdict) =>
          isAbsent(verdict)
            ? `it counts as absent, so something else is read: let scheme and extract name the same field, or give a valid request that carries ${places}`
            : undefined,
      }
    })

// A request without a complete alternative must not be let in: something that is not described would decide
const withoutDescribed = (subject: Subject): ReadonlyArray<LawCase> => {
  const described = describedLocations(subject.description)
  const alternatives = alternativePlaces(subject)
  const isComplete = (spec: RequestSpec): boolean =>
    alternatives.some((locations) => locations.every((location) => location === undefined || carries(spec)(location)))
  return subject.valid.flatMap((spec) => {
    const present = described.filter(carries(spec))
    const stripped = present.reduce<RequestSpec>((rest, location) => withoutCredential(location, rest), spec)
    const undescribed = 'it was admitted without the described credential; let scheme and extract name the same field'
    const lessOne = present.map((location): LawCase => {
      const rest = withoutCredential(location, spec)
      return {
        what: `a valid request without ${placeInWords(location)}`,
        spec: rest,
        judge: (verdict) => (letSomebodyIn(verdict) && !isComplete(rest) ? undescribed : undefined),
      }
    })
    if (!subject.isDescribed) return lessOne
    return [
      ...lessOne,
      {
        what: 'a valid request without anything that is described',
        spec: stripped,
        judge: (verdict) => {
          if (letSomebodyIn(verdict)) return undescribed
          return isAbsent(verdict)
            ? undefined
            : 'it sends no described credential, so it is absent: extract must return none'
        },
      },
    ]
  })
}

// A valid credential in another place, which no description names
const validElsewhere = (subject: Subject): ReadonlyArray<LawCase> => {
  const described = describedLocations(subject.description)
  const isDescribed = (location: CredentialLocation) =>
    described.some((one) => one.in === location.in && one.name === location.name)
  return subject.valid.flatMap((spec) =>
    described.flatMap((from) =>
      valuesAt(from, spec).flatMap((value) =>
        hidingPlaces(from)
          .filter((to) => !isDescribed(to))
          .map((to): LawCase => ({
            what: `a valid credential in ${placeInWords(to)}`,
            spec: putCredentials(to, [value], withoutCredential(from, spec)),
            rest: withoutCredential(from, spec),
            judge: (verdict) =>
              letSomebodyIn(verdict)
                ? `it also reads ${placeInWords(to)}, which it does not describe; add an alternative`
                : undefined,
          })),
      ),
    ),
  )
}

const hidingPlaces = ({ in: where, name }: CredentialLocation): ReadonlyArray<CredentialLocation> => {
  if (where !== 'authorization')
    return (['query', 'header', 'cookie'] as const).filter((one) => one !== where).map((one) => ({ in: one, name }))
  const inQuery = ['access_token', 'token'].map((parameter) => ({ in: 'query', name: parameter }) as const)
  return [...inQuery, { in: 'cookie', name: 'token' }]
}

const describedTruly = lawAbout(
  'its description is true: it reads the described credential, and nothing else',
  (subject) => [...withoutDescribed(subject), ...unknownInDescribed(subject), ...validElsewhere(subject)],
  async (verdict, { judge, rest }, { askOnce }) =>
    rest !== undefined && letSomebodyIn(await askOnce(rest)) ? undefined : judge(verdict),
)

/** Every 401 offers a challenge of the described scheme (RFC 9110 §15.5.2). */
const offersChallenges = lawAbout(
  'offers a challenge with every 401, of the scheme that it describes',
  attacksOn,
  (verdict, { spec }, { description }) => {
    if (verdict._tag !== 'Failed' || !unauthorized.includes(verdict.error._tag)) return undefined
    const sent = branchesOf(verdict.error).flatMap(({ challenge }) => challenge ?? [])
    const challenges = sent.length > 0 ? sent : challengesOf(description)
    try {
      challenges.forEach(({ scheme, parameters }) => make(scheme, parameters))
    } catch {
      return "a challenge cannot be written into a header; make it with Challenge.make('Scheme', { ... })"
    }
    const offered = challenges.map(({ scheme }) => scheme.toLowerCase())
    // a group offers only the challenges of members that have not passed
    const group = alternativesOf(description).some(({ demands }) => demands.length > 1)
    const missing = leaves(description).flatMap((leaf) => {
      const location = locationOf(leaf)
      if (leaf.scheme?.type !== 'http' || offered.includes(leaf.scheme.scheme.toLowerCase())) return []
      return group && location !== undefined && carries(spec)(location) ? [] : [leaf.scheme.scheme]
    })
    return missing.length === 0
      ? undefined
      : `it describes the HTTP scheme ${missing[0]}, but offers ${offered.join(', ') || 'nothing'}; clients send the described scheme`
  },
)

const isSentByBrowsers = (leaf: Leaf): boolean => {
  const location = locationOf(leaf)
  return leaf.ambient || location?.in === 'cookie' || (location !== undefined && isBasic(location))
}

const refusesOtherSites = lawAbout(
  'refuses writes that another site makes a browser send with a valid credential',
  ({ description, valid }) =>
    valid
      // only requests whose credentials are all sent by browsers
      .filter((spec) => {
        const sent = leaves(description).filter((leaf) => {
          const location = locationOf(leaf)
          return location === undefined || carries(spec)(location)
        })
        return sent.length > 0 && sent.every(isSentByBrowsers)
      })
      .map((spec) => ({ what: 'a write from another site', spec: fromOtherSite(spec) })),
  async (verdict, { spec }, { settingsFor }) =>
    letSomebodyIn(verdict) && (await settingsFor(spec)).csrf
      ? 'browsers send cookies and Basic credentials by themselves: say ambient: true'
      : undefined,
)

// last, because it is made of the laws above
const lawsOfAuthenticators: ReadonlyArray<Law<Subject>> = [
  ...resultLaws,
  describedTruly,
  offersChallenges,
  refusesOtherSites,
]
