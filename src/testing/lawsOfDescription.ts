/**
 * Laws of what an authenticator says of itself: that is what OpenAPI, the challenges, `Vary` and the check for CSRF go by.
 */
import type { AuthError } from '../core/AuthError.js'
import { branchesOf } from '../core/AuthError.js'
import { alternativesOf } from '../core/alternatives.js'
import { make } from '../core/Challenge.js'
import { challengesOf, leaves, type Leaf } from '../core/Description.js'
import { BasicCredentials } from '../core/Credentials.js'
import { attacksOn, lawAbout, type Law } from './lawsOfVerdicts.js'
import { named, placeOf, putting, valuesAt, without, type Place } from './Place.js'
import type { Sketch } from './Sketch.js'
import type { Subject } from './Subject.js'
import { letSomebodyIn, type Verdict } from './Verdict.js'

interface Asked {
  readonly what: string
  readonly sketch: Sketch
  readonly judge: (verdict: Verdict) => string | undefined
  /** What is left without what is looked at; who is let in by that is let in lawfully, by another credential. */
  readonly rest?: Sketch
}

const describedPlaces = ({ description }: Subject): ReadonlyArray<Place> =>
  leaves(description).flatMap((leaf) => placeOf(leaf) ?? [])

/** Whether a request carries something in a place. */
export const carries = (sketch: Sketch) => (place: Place) => valuesAt(place, sketch).length > 0

const placesOf = (demands: ReadonlyArray<{ readonly leaf: Leaf }>): ReadonlyArray<Place | undefined> =>
  demands.map(({ leaf }) => placeOf(leaf))

// -------------------------------------------------------------------------------------
// what it reads
// -------------------------------------------------------------------------------------

const UNKNOWN = 'Unkn0wnCredential5b1d'

const unknownAt = (place: Place): string =>
  place.in === 'authorization' && place.name.toLowerCase() === 'basic'
    ? BasicCredentials.encode({ username: UNKNOWN, password: UNKNOWN }).slice('Basic '.length)
    : UNKNOWN

const isAbsent = (verdict: Verdict): boolean =>
  (verdict._tag === 'Failed' && verdict.error._tag === 'absent') ||
  (verdict._tag === 'Passed' && verdict.principal === undefined)

// What it says it demands, sent with an unknown credential, is something: looked at where no valid request shows it
const carrying = (subject: Subject): ReadonlyArray<Asked> =>
  alternativesOf(subject.description)
    .map(placesOf)
    .filter((places): places is ReadonlyArray<Place> => places.length > 0 && !places.includes(undefined))
    .filter((places) => !subject.valid.some((sketch) => places.every(carries(sketch))))
    .map((places) => ({
      what: `an unknown credential in ${places.map(named).join(' and ')}`,
      sketch: places.reduce<Sketch>((sketch, place) => putting(place, [unknownAt(place)], sketch), {}),
      judge: (verdict) =>
        isAbsent(verdict)
          ? `it counts as absent, so something else is read: let scheme and extract name the same field, or give a valid request that carries ${places.map(named).join(' and ')}`
          : undefined,
    }))

// Who is let in without a complete alternative was let in by something that is not described
const withoutDescribed = (subject: Subject): ReadonlyArray<Asked> => {
  const described = describedPlaces(subject)
  const alternatives = alternativesOf(subject.description).map(placesOf)
  const isComplete = (sketch: Sketch): boolean =>
    alternatives.some(
      (places) => places.length > 0 && places.every((place) => place === undefined || carries(sketch)(place)),
    )
  return subject.valid.flatMap((sketch) => {
    const present = described.filter(carries(sketch))
    const stripped = present.reduce<Sketch>((rest, place) => without(place, rest), sketch)
    const undescribed = 'it was let in without what it says it demands; let scheme and extract name the same field'
    const lessOne = present.map((place): Asked => ({
      what: `a valid request without ${named(place)}`,
      sketch: without(place, sketch),
      judge: (verdict) => (letSomebodyIn(verdict) && !isComplete(without(place, sketch)) ? undescribed : undefined),
    }))
    if (!subject.isDescribed) return lessOne
    return [
      ...lessOne,
      {
        what: 'a valid request without anything that is described',
        sketch: stripped,
        judge: (verdict) => {
          if (letSomebodyIn(verdict)) return undescribed
          return isAbsent(verdict)
            ? undefined
            : 'it sends nothing of what is described, so it is absent: extract must answer none'
        },
      },
    ]
  })
}

// The credential of a header, in a cookie or the query string, where nobody was told to put it
const elsewhere = (subject: Subject): ReadonlyArray<Asked> => {
  const described = describedPlaces(subject)
  const isDescribed = (place: Place) => described.some((one) => one.in === place.in && one.name === place.name)
  return subject.valid.flatMap((sketch) =>
    described.flatMap((from) =>
      valuesAt(from, sketch).flatMap((value) =>
        hidingPlaces(from)
          .filter((to) => !isDescribed(to))
          .map((to): Asked => ({
            what: `a valid credential in ${named(to)}`,
            sketch: putting(to, [value], without(from, sketch)),
            rest: without(from, sketch),
            judge: (verdict) =>
              letSomebodyIn(verdict)
                ? `it also reads ${named(to)}, which it does not describe; add an alternative`
                : undefined,
          })),
      ),
    ),
  )
}

const hidingPlaces = ({ in: where, name }: Place): ReadonlyArray<Place> =>
  where === 'authorization'
    ? [
        { in: 'query', name: 'access_token' },
        { in: 'query', name: 'token' },
        { in: 'cookie', name: 'token' },
      ]
    : (['query', 'header', 'cookie'] as const).filter((one) => one !== where).map((one) => ({ in: one, name }))

/** It reads what it describes, and nothing else. */
export const describedTruly: Law = lawAbout<Asked>(
  'its description is true: it reads what it says it reads, and nothing else',
  (subject) => [...withoutDescribed(subject), ...carrying(subject), ...elsewhere(subject)],
  async (verdict, { judge, rest }, { askOnce }) =>
    rest !== undefined && letSomebodyIn(await askOnce(rest)) ? undefined : judge(verdict),
)

// -------------------------------------------------------------------------------------
// what it offers
// -------------------------------------------------------------------------------------

const unauthorized: ReadonlyArray<AuthError['_tag']> = ['absent', 'malformed', 'invalid', 'expired']

/** Every 401 offers a challenge of the described scheme (RFC 9110 §15.5.2). */
export const offersChallenges: Law = lawAbout<{ readonly sketch: Sketch }>(
  'offers a challenge with every 401, of the scheme that it describes',
  (subject) => attacksOn(subject),
  (verdict, { sketch }, { description }) => {
    if (verdict._tag !== 'Failed' || !unauthorized.includes(verdict.error._tag)) return undefined
    const told = branchesOf(verdict.error).flatMap(({ challenge }) => challenge ?? [])
    const challenges = told.length > 0 ? told : challengesOf(description)
    try {
      challenges.forEach(({ scheme, parameters }) => make(scheme, parameters))
    } catch {
      return "a challenge cannot be written into a header; make it with Challenge.make('Scheme', { ... })"
    }
    const offered = challenges.map(({ scheme }) => scheme.toLowerCase())
    // of a group only what has not passed is offered
    const group = alternativesOf(description).some((alternative) => alternative.length > 1)
    const missing = leaves(description).flatMap((leaf) => {
      const place = placeOf(leaf)
      if (leaf.scheme?.type !== 'http' || offered.includes(leaf.scheme.scheme.toLowerCase())) return []
      return group && place !== undefined && carries(sketch)(place) ? [] : [leaf.scheme.scheme]
    })
    return missing.length === 0
      ? undefined
      : `it describes the HTTP scheme ${missing[0]}, but offers ${offered.join(', ') || 'nothing'}; a client is told to send what it describes`
  },
)
