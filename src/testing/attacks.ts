/** Requests that must be refused, made from locations of credentials and from valid requests. One that is valid by chance is left out. */
import * as E from 'fp-ts/lib/Either.js'
import { BasicCredentials } from '../core/Credentials.js'
import { addCredential, placeInWords, putCredentials, valuesAt, withoutCredential } from './CredentialLocation.js'
import type { CredentialLocation } from './CredentialLocation.js'
import type { RequestSpec } from './requests.js'

/**
 * Strings that careless code accepts: empty values as strings, names that every object has, names of properties of arrays, strings,
 * functions, Buffers, Errors and other objects that are used as a table of keys, patterns, and a string that is far too long. The empty
 * string is the first.
 */
export const notoriousTexts: ReadonlyArray<string> = [
  '',
  ' ',
  ...'undefined null true false -1 NaN {} [] "" __proto__ constructor toString'.split(' '),
  ...'0 1 length size name message stack source byteLength byteOffset buffer admin root * % .*'.split(' '),
  ...['[object Object]', "' OR '1'='1", '../../etc/passwd', '${jndi:x}', '\u00e9\u00ff', 'A'.repeat(9000)],
]

/** Other spellings of a credential: a comparison by prefix, in any letter case, as a number or as a pattern would let them in. */
const misspellings = (location: CredentialLocation, value: string): ReadonlyArray<string> => {
  const decoded = isBasic(location) ? BasicCredentials.decode(`Basic ${value}`) : E.right(value)
  if (E.isLeft(decoded)) return []
  const texts = typeof decoded.right === 'string' ? otherTexts(value) : otherPairs(decoded.right)
  return [...new Set(texts)].filter((text) => text !== value)
}

const otherTexts = (text: string): ReadonlyArray<string> => [
  ...otherLengths(text),
  text.toLowerCase(),
  text.toUpperCase(),
  text.replace(/[a-z]/gi, (letter) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase())),
]

const otherLengths = (text: string): ReadonlyArray<string> => [
  ...[text.slice(0, -1), text.slice(1), text.slice(0, Math.ceil(text.length / 2)), text.slice(0, 1)],
  ...[`${text}x`, `x${text}`, `${text}${text}`],
  // as Node joins two fields
  ...[`${text}, x`, `x, ${text}`, `${text},${text}`],
  ...['*', '%', '_', '.'].map((pattern) => `${text.slice(0, -1)}${pattern}`),
  encodeURIComponent(text.toWellFormed()),
  ...(/^\d+$/.test(text) ? [`0${text}`, `+${text}`, `${text}.0`, `${text}e0`, `0x${Number(text).toString(16)}`] : []),
]

const otherPairs = ({ username, password }: BasicCredentials): ReadonlyArray<string> => [
  ...otherTexts(password).map((text) => pair(username, text)),
  // without other letter cases, because an application may ignore the case of user names
  ...otherLengths(username).map((text) => pair(text, password)),
  ...[pair(username, ''), pair('', password), pair('', ''), pair(password, username)],
]

export interface Attack {
  readonly what: string
  readonly spec: RequestSpec
  /** Credentials in it that must be in no response. */
  readonly secrets: ReadonlyArray<string>
  /** The request without the wrong credential. If it is let in by another credential, so may be the attack. */
  readonly rest?: RequestSpec
}

const WRONG_CREDENTIAL = 'Wr0ngCredential7f3a9c'

/** The credentials that are long enough not to be in a response by chance. */
export const secretsAmong = (values: ReadonlyArray<string>): ReadonlyArray<string> =>
  values.filter((value) => value.length >= 8)

export const isBasic = ({ in: where, name }: CredentialLocation): boolean =>
  where === 'authorization' && name.toLowerCase() === 'basic'

const pair = (username: string, password: string): string =>
  BasicCredentials.encode({ username, password }).slice('Basic '.length)

/** A string as a credential of a place: for Basic, as user name and as password. */
export const wholly = (location: CredentialLocation, text: string): string =>
  isBasic(location) ? pair(text, text) : text

export const unknownIn = (location: CredentialLocation, secret: string): Attack => ({
  what: `an unknown credential in ${placeInWords(location)}`,
  spec: putCredentials(location, [wholly(location, secret)], {}),
  secrets: [secret],
})

export const hostileIn = (location: CredentialLocation, text: string): Attack => ({
  what: `${text === '' ? 'an empty' : 'a hostile'} credential in ${placeInWords(location)}`,
  spec: putCredentials(location, [text], {}),
  secrets: [],
})

/** Attacks that need no valid credential. */
export const blindAttacks = (locations: ReadonlyArray<CredentialLocation>): ReadonlyArray<Attack> =>
  locations.flatMap((location) => [
    ...notoriousTexts.flatMap((text) => {
      const texts = isBasic(location) ? [pair(text, text), pair('admin', text), pair(text, ''), text] : [text]
      const { what } = hostileIn(location, text)
      return texts.map((one) => ({ ...hostileIn(location, one), what }))
    }),
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
export const informedAttacks = (target: {
  readonly locations: ReadonlyArray<CredentialLocation>
  readonly valid: ReadonlyArray<RequestSpec>
}): ReadonlyArray<Attack> =>
  target.valid.flatMap((spec) =>
    target.locations.flatMap((location) =>
      valuesAt(location, spec).flatMap((value) => changedCredentials(location, value, spec, target.valid)),
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
  const twice = [
    [value, wrong],
    [wrong, value],
    [value, value],
  ]
  const nearlyRight = misspellings(location, value).filter((text) => !others.has(asServersRead(location, text)))
  const { name } = location
  const otherSchemes =
    location.in === 'authorization' ? [value, `x${name} ${value}`, `x-${value} ${value}`, `${name}${value}`] : []
  return [
    ...twice.map((values) => ({
      what: `a credential sent twice in ${placeInWords(location)}`,
      spec: putCredentials(location, values, spec),
      secrets: secretsAmong([value]),
      rest,
    })),
    ...nearlyRight.map((text) => ({
      what: `a credential that is nearly right in ${placeInWords(location)}`,
      spec: putCredentials(location, [text], spec),
      secrets: [],
      rest,
    })),
    ...otherSchemes.map((text) => ({
      what: 'a valid credential under another scheme, or under none',
      spec: addCredential({ in: 'header', name: 'Authorization' }, text, rest),
      secrets: secretsAmong([value]),
      rest,
    })),
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

/** The first of these secrets that a string contains, as it is, in base64, or in a URL. */
export const leaked = (text: string, secrets: ReadonlyArray<string>): string | undefined =>
  secrets.find((secret) => {
    const base64 = Buffer.from(secret).toString('base64').replace(/=+$/, '')
    const forms = [secret, base64, Buffer.from(`${secret}:${secret}`).toString('base64'), encodeURIComponent(secret)]
    return forms.some((form) => text.includes(form))
  })
