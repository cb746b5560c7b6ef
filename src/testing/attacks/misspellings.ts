/**
 * Credentials that are nearly right. A comparison by prefix, in any letter case, as a number or as a pattern would let
 * them in.
 */
import * as E from 'fp-ts/lib/Either.js'
import { BasicCredentials } from '../../core/Credentials.js'
import type { CredentialLocation } from '../request/CredentialLocation.js'

/** Other spellings of the credential in a place; for Basic, of its user name and of its password. */
export const misspellings = (place: CredentialLocation, value: string): ReadonlyArray<string> => {
  const distinct = (texts: ReadonlyArray<string>) => [...new Set(texts)].filter((text) => text !== value)
  if (place.in === 'authorization' && place.name.toLowerCase() === 'basic') {
    const decoded = BasicCredentials.decode(`Basic ${value}`)
    return E.isLeft(decoded) ? [] : distinct(otherPairs(decoded.right))
  }
  return distinct(otherTexts(value))
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

const otherPairs = ({ username, password }: BasicCredentials): ReadonlyArray<string> =>
  [
    ...otherTexts(password).map((text) => ({ username, password: text })),
    // without other letter cases, because an application may ignore the case of user names
    ...otherLengths(username).map((text) => ({ username: text, password })),
    { username, password: '' },
    { username: '', password },
    { username: '', password: '' },
    { username: password, password: username },
  ].map((credentials) => BasicCredentials.encode(credentials).slice('Basic '.length))
