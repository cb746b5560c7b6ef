/**
 * Requests that must let nobody in: wrong credentials, hostile ones, right ones sent twice or spelled otherwise.
 *
 * They are made of the places where credentials travel and of the requests that are let in. One of them that is right by
 * chance, another of the valid ones, is left out.
 */
import fc, { type Arbitrary } from 'fast-check'
import { BasicCredentials } from '../core/Credentials.js'
import { hostileTexts, notoriousTexts, secrets } from './credentials.js'
import { misspellings } from './misspellings.js'
import { adding, named, putting, valuesAt, without, type Place } from './Place.js'
import { sketches } from './requests.js'
import { together, type Sketch } from './Sketch.js'

/** A request that must let nobody in. */
export interface Attack {
  /** What is wrong with it. */
  readonly what: string
  readonly sketch: Sketch
  /** Credentials that it carries, and that stand in no answer by chance. */
  readonly secrets: ReadonlyArray<string>
  /** What is left without what is wrong; who is let in by that is let in lawfully, by another credential. */
  readonly rest?: Sketch
}

/** What attacks are made of. */
export interface Target {
  readonly places: ReadonlyArray<Place>
  /** Requests that are let in. */
  readonly valid: ReadonlyArray<Sketch>
}

const WRONG = 'Wr0ngCredential7f3a9c'
const MIN_SECRET = 8

const isBasic = ({ in: where, name }: Place): boolean => where === 'authorization' && name.toLowerCase() === 'basic'

// A text where it belongs; for Basic as user name and as password, and as it is
const spelled = (place: Place, text: string): ReadonlyArray<string> =>
  isBasic(place) ? [pair(text, text), pair('admin', text), pair(text, ''), text] : [text]

const pair = (username: string, password: string): string =>
  BasicCredentials.encode({ username, password }).slice('Basic '.length)

const unknownIn = (place: Place, secret: string): Attack => ({
  what: `an unknown credential in ${named(place)}`,
  sketch: putting(place, [isBasic(place) ? pair(secret, secret) : secret], {}),
  secrets: [secret],
})

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

/** Attacks that need no valid credential. */
export const blindAttacks = (places: ReadonlyArray<Place>): ReadonlyArray<Attack> =>
  places.flatMap((place) => [
    ...notoriousTexts.flatMap((text) =>
      spelled(place, text).map((value) => ({
        what: text === '' ? `an empty credential in ${named(place)}` : `a hostile credential in ${named(place)}`,
        sketch: putting(place, [value], {}),
        secrets: [],
      })),
    ),
    unknownIn(place, WRONG),
    ...(place.in === 'authorization' ? otherSchemes(place) : []),
  ])

// What stands in the field where the scheme or the credential should
const otherSchemes = ({ name }: Place): ReadonlyArray<Attack> =>
  ['', name, `${name} `, WRONG, `Token ${WRONG}`, `Negotiate ${WRONG}`].map((value) => ({
    what: 'an Authorization field of another scheme, or of none',
    sketch: { fields: [['Authorization', value]] },
    secrets: [],
  }))

/** Attacks that begin with a valid request: its credential sent twice, spelled otherwise, or under another scheme. */
export const informedAttacks = ({ places, valid }: Target): ReadonlyArray<Attack> =>
  valid.flatMap((sketch) =>
    places.flatMap((place) => valuesAt(place, sketch).flatMap((value) => changed(place, value, sketch, valid))),
  )

const changed = (place: Place, value: string, sketch: Sketch, valid: ReadonlyArray<Sketch>): ReadonlyArray<Attack> => {
  const wrong = isBasic(place) ? pair(WRONG, WRONG) : WRONG
  const kept = value.length >= MIN_SECRET ? [value] : []
  const rest = without(place, sketch)
  const others = new Set(valid.flatMap((one) => valuesAt(place, one)).map((one) => plain(place, one)))
  return [
    ...[
      [value, wrong],
      [wrong, value],
      [value, value],
    ].map((values) => ({
      what: `a credential sent twice in ${named(place)}`,
      sketch: putting(place, values, sketch),
      secrets: kept,
      rest,
    })),
    ...misspellings(place, value)
      .filter((text) => !others.has(plain(place, text)))
      .map((text) => ({
        what: `a credential that is nearly right in ${named(place)}`,
        sketch: putting(place, [text], sketch),
        secrets: [],
        rest,
      })),
    ...(place.in === 'authorization' ? underOtherSchemes(place, value, sketch) : []),
  ]
}

// Blanks around a field's value are no part of it (RFC 9110 §5.5), nor is a pair of quotes around a cookie's (RFC 6265 §4.1.1)
const plain = (place: Place, text: string): string => {
  if (place.in === 'query') return text
  const value = text.replace(/^[ \t]+|[ \t]+$/g, '')
  return place.in === 'cookie' ? value.replace(/^"(.*)"$/, '$1') : value
}

const underOtherSchemes = (place: Place, value: string, sketch: Sketch): ReadonlyArray<Attack> => {
  const rest = without(place, sketch)
  return [value, `x${place.name} ${value}`, `x-${value} ${value}`, `${place.name}${value}`].map((text) => ({
    what: 'a valid credential under another scheme, or under none',
    sketch: adding({ in: 'header', name: 'Authorization' }, text, rest),
    secrets: value.length >= MIN_SECRET ? [value] : [],
    rest,
  }))
}

/** Attacks with random credentials in random requests. */
export const randomAttacks = (target: Target): Arbitrary<Attack> => {
  const { places, valid } = target
  const nothing = fc.constant<Attack>({ what: 'no credential', sketch: {}, secrets: [] })
  const at = places.map((place) =>
    fc.oneof(
      secrets().map((secret) => unknownIn(place, secret)),
      hostileTexts()
        .filter((text) => valid.every((one) => !valuesAt(place, one).includes(plain(place, text))))
        .map((text) => ({
          what: `a hostile credential in ${named(place)}`,
          sketch: putting(place, [text], {}),
          secrets: [],
        })),
    ),
  )
  const informed = informedAttacks(target)
  const attack = fc.oneof(nothing, ...at, ...(informed.length > 0 ? [fc.constantFrom(...informed)] : []))
  return fc
    .tuple(sketches(), attack)
    .map(([about, { sketch, ...rest }]) => ({ ...rest, sketch: together(about, sketch) }))
}
