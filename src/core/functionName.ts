/**
 * What the description of an authenticator calls a function that decides, so that a policy file shows when another one decides.
 *
 * A function has the name that the application gives it, or its own. One without a name is called by a digest of its text as it
 * is written, so another layout is another name.
 */
import { digest } from '../crypto/secrets.js'
import { that } from './checks.js'

const MAX_LENGTH = 100

/** The name of a function: one line, without blanks around it. */
export const functionName = (f: Function): string => {
  const own: unknown = f.name
  const name = typeof own === 'string' ? onOneLine(own) : ''
  return name === '' ? `function ${digestOf(f)}` : name
}

/** The name of a function, and a digest of its text: another function of the same name has other words. */
export const nameAndDigest = (f: Function): string => {
  const name = functionName(f)
  return name.includes(digestOf(f)) ? name : `${name} ${digestOf(f)}`
}

/** A digest of the text of a function. */
export const digestOf = (f: Function): string => digest(Function.prototype.toString.call(f), 'hex').slice(0, 12)

/**
 * Options in words, for the policy file: `maxTokenAge 300`, `nonce (lifetime 60)`, a function by its name. Never call it with a secret.
 */
export const optionWords = (options: object): ReadonlyArray<string> =>
  Object.entries(options).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [`${name} ${valueInWords(value)}`],
  )

const valueInWords = (value: unknown): string => {
  if (typeof value === 'function') return nameAndDigest(value)
  if (Array.isArray(value)) return value.map(valueInWords).join(' ')
  return typeof value === 'object' && value !== null ? `(${optionWords(value).join(' ')})` : String(value)
}

// A computed name can be any string
const onOneLine = (name: string): string =>
  name
    .replace(/[^\p{L}\p{N}$_.:/ #-]+/gu, '_')
    .trim()
    .slice(0, MAX_LENGTH)

/** A name that an application gives a condition: one line, without signs that the policy file gives a meaning. */
export const conditionName = that(
  (value) =>
    typeof value === 'string' &&
    value.length <= MAX_LENGTH &&
    /^[\p{L}\p{N}$_.:/#-]+(?: [\p{L}\p{N}$_.:/#-]+)*$/u.test(value),
  `must be a name of at most ${MAX_LENGTH} letters, digits, single blanks and "$_.:/#-", such as 'admin'`,
)
