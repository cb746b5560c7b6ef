/** Requests that must be refused, made from locations of credentials and from valid requests. One that is valid by chance is left out. */
import * as E from 'fp-ts/lib/Either.js'
import { BasicCredentials } from '../core/Credentials.js'
import { addCredential, placeInWords, putCredentials, valuesAt, withoutCredential } from './CredentialLocation.js'
import type { CredentialLocation } from './CredentialLocation.js'
import type { RequestSpec } from './requests.js'

/**
 * Strings that careless code accepts: empty values as strings, names that every object has, names of properties of arrays, strings,
 * functions, Buffers, Errors and other objects that are used as a table of keys, patterns, and one that is far too long. The empty
 * string is the first.
 */
export const notoriousTexts: ReadonlyArray<string> = [
  '',
  ' ',
  'undefined',
  'null',
  'true',
  'false',
  '-1',
  'NaN',
  '[object Object]',
  '{}',
  '[]',
  '""',
  '__proto__',
  'constructor',
  'toString',
  ...['0', '1', 'length', 'size', 'name', 'message', 'stack', 'source', 'byteLength', 'byteOffset', 'buffer'],
  'admin',
  'root',
  '*',
  '%',
  '.*',
  "' OR '1'='1",
  '../../etc/passwd',
  '${jndi:x}',
  '\u00e9\u00ff',
  'A'.repeat(9000),
]

/** Other spellings of a credential: a comparison by prefix, in any letter case, as a number or as a pattern would let them in. */
const misspellings = (location: CredentialLocation, value: string): ReadonlyArray<string> => {
  const decoded = isBasic(location) ? BasicCredentials.decode(`Basic ${value}`) : E.right(value)
  if (E.isLeft(decoded)) return []
  const texts = typeof decoded.right === 'string' ? otherTexts(value) : otherPairs(decoded.right)
  return [...new Set(texts)].filter((text) => text !== value)
}

const otherTexts = (text: string): ReadonlyArray<string> => [...otherLengths(text), ...otherCases(text)]

const otherLengths = (text: string): ReadonlyArray<string> => [
  text.slice(0, -1),
  text.slice(1),
  text.slice(0, Math.ceil(text.length / 2)),
  text.slice(0, 1),
  `${text}x`,
  `x${text}`,
  `${text}${text}`,
  // as Node joins two fields
  `${text}, x`,
  `x, ${text}`,
  `${text},${text}`,
  ...['*', '%', '_', '.'].map((pattern) => `${text.slice(0, -1)}${pattern}`),
  encodeURIComponent(text.toWellFormed()),
  ...(/^\d+$/.test(text) ? [`0${text}`, `+${text}`, `${text}.0`, `${text}e0`, `0x${Number(text).toString(16)}`] : []),
]

const otherCases = (text: string): ReadonlyArray<string> => [
  text.toLowerCase(),
  text.toUpperCase(),
  text.replace(/[a-z]/gi, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())),
]

const otherPairs = ({ username, password }: BasicCredentials): ReadonlyArray<string> => [
  ...otherTexts(password).map((text) => pair(username, text)),
  // without other letter cases, because an application may ignore the case of user names
  ...otherLengths(username).map((text) => pair(text, password)),
  pair(username, ''),
  pair('', password),
  pair('', ''),
  pair(password, username),
]

export interface Attack {
  readonly what: string
  readonly spec: RequestSpec
  /** Credentials in it that must be in no response. */
  readonly secrets: ReadonlyArray<string>
  /** The request without the wrong credential. If it is let in by another credential, so may be the attack. */
  readonly rest?: RequestSpec
}

interface Target {
  readonly locations: ReadonlyArray<CredentialLocation>
  readonly valid: ReadonlyArray<RequestSpec>
}

const WRONG_CREDENTIAL = 'Wr0ngCredential7f3a9c'

/** The credentials that are long enough not to be in a response by chance. */
export const secretsAmong = (values: ReadonlyArray<string>): ReadonlyArray<string> =>
  values.filter((value) => value.length >= 8)

export const isBasic = ({ in: where, name }: CredentialLocation): boolean =>
  where === 'authorization' && name.toLowerCase() === 'basic'

// A string at the place of a credential; for Basic as user name, as password, and as it is
const spelled = (location: CredentialLocation, text: string): ReadonlyArray<string> =>
  isBasic(location) ? [pair(text, text), pair('admin', text), pair(text, ''), text] : [text]

const pair = (username: string, password: string): string =>
  BasicCredentials.encode({ username, password }).slice('Basic '.length)

export const wholly = (location: CredentialLocation, text: string): string =>
  isBasic(location) ? pair(text, text) : text

export const unknownIn = (location: CredentialLocation, secret: string): Attack => ({
  what: `an unknown credential in ${placeInWords(location)}`,
  spec: putCredentials(location, [wholly(location, secret)], {}),
  secrets: [secret],
})

/** Attacks that need no valid credential. */
export const blindAttacks = (locations: ReadonlyArray<CredentialLocation>): ReadonlyArray<Attack> =>
  locations.flatMap((location) => [
    ...notoriousTexts.flatMap((text) =>
      spelled(location, text).map((value) => ({
        what: `${text === '' ? 'an empty' : 'a hostile'} credential in ${placeInWords(location)}`,
        spec: putCredentials(location, [value], {}),
        secrets: [],
      })),
    ),
    unknownIn(location, WRONG_CREDENTIAL),
    ...(location.in === 'authorization' ? otherSchemes(location) : []),
  ])

// Values of the field without the scheme or the credential
const otherSchemes = ({ name }: CredentialLocation): ReadonlyArray<Attack> =>
  ['', name, `${name} `, WRONG_CREDENTIAL, `Token ${WRONG_CREDENTIAL}`, `Negotiate ${WRONG_CREDENTIAL}`].map(
    (value) => ({
      what: 'an Authorization field of another scheme, or of none',
      spec: { fields: [['Authorization', value]] },
      secrets: [],
    }),
  )

/** Attacks that begin with a valid request: its credential sent twice, spelled otherwise, or under another scheme. */
export const informedAttacks = ({ locations, valid }: Target): ReadonlyArray<Attack> =>
  valid.flatMap((spec) =>
    locations.flatMap((location) =>
      valuesAt(location, spec).flatMap((value) => changedCredentials(location, value, spec, valid)),
    ),
  )

const changedCredentials = (
  location: CredentialLocation,
  value: string,
  spec: RequestSpec,
  valid: ReadonlyArray<RequestSpec>,
): ReadonlyArray<Attack> => {
  const wrong = wholly(location, WRONG_CREDENTIAL)
  const rest = withoutCredential(location, spec)
  const others = new Set(valid.flatMap((one) => valuesAt(location, one)).map((one) => asServersRead(location, one)))
  return [
    ...[
      [value, wrong],
      [wrong, value],
      [value, value],
    ].map((values) => ({
      what: `a credential sent twice in ${placeInWords(location)}`,
      spec: putCredentials(location, values, spec),
      secrets: secretsAmong([value]),
      rest,
    })),
    ...misspellings(location, value)
      .filter((text) => !others.has(asServersRead(location, text)))
      .map((text) => ({
        what: `a credential that is nearly right in ${placeInWords(location)}`,
        spec: putCredentials(location, [text], spec),
        secrets: [],
        rest,
      })),
    ...(location.in === 'authorization' ? underOtherSchemes(location, value, spec) : []),
  ]
}

/**
 * A credential as a server reads it. Blanks around a field's value do not belong to it (RFC 9110 §5.5), nor do quotes
 * around a cookie's (RFC 6265 §4.1.1).
 */
export const asServersRead = (location: CredentialLocation, text: string): string => {
  if (location.in === 'query') return text
  const value = text.replace(/^[ \t]+|[ \t]+$/g, '')
  return location.in === 'cookie' ? value.replace(/^"(.*)"$/, '$1') : value
}

const underOtherSchemes = (location: CredentialLocation, value: string, spec: RequestSpec): ReadonlyArray<Attack> => {
  const rest = withoutCredential(location, spec)
  return [value, `x${location.name} ${value}`, `x-${value} ${value}`, `${location.name}${value}`].map((text) => ({
    what: 'a valid credential under another scheme, or under none',
    spec: addCredential({ in: 'header', name: 'Authorization' }, text, rest),
    secrets: secretsAmong([value]),
    rest,
  }))
}

/** The forms in which a string can contain a credential: as it is, in base64, in a URL. */
const traces = (secret: string): ReadonlyArray<string> => {
  const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
  return [secret, base64, Buffer.from(`${secret}:${secret}`).toString('base64'), encodeURIComponent(secret)]
}

/** The first of these secrets that a string contains. */
export const leaked = (text: string, secrets: ReadonlyArray<string>): string | undefined =>
  secrets.find((secret) => traces(secret).some((trace) => text.includes(trace)))
