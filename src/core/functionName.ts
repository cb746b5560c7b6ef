/**
 * What the description of an authenticator calls a function that decides, so that a policy file shows when another one decides: its
 * name, and a digest of its text. Blanks, comments and quotes are not in the digest, so another layout is the same function.
 *
 * The text of a bound function is that of every other one. Its label says that it is `bound, not compared`; then only a name that the
 * application gives it tells it from others.
 */
import { digest } from '../crypto/secrets.js'
import { that } from './checks.js'
import { checkHook } from './options.js'
import { tokensOf } from './functionText.js'

const MAX_LENGTH = 100

/** What a policy file calls the functions that `seal(app, { lock })` refuses. */
export const NOT_COMPARED = '(no name, bound, not compared)'

const given = Symbol.for('koa-with-auth/name')

const givenName = (f: Function): string | undefined => {
  const name: unknown = Object.hasOwn(f, given) ? Reflect.get(f, given) : undefined
  return typeof name === 'string' ? name : undefined
}

/**
 * Gives a function a name that policy files call it by, and returns the function. Use it for functions that their text does not tell
 * apart: bound methods, and what one factory made of different values. Any option that is a function takes it. Throws a TypeError for a
 * name that cannot be one, and for a function that has another name already, or is frozen.
 *
 * @example
 * import { httpBearer, named, withAuth } from 'koa-with-auth'
 * import { rateLimit } from 'koa-with-auth'
 *
 * const plans = { of: (user: { plan: string }) => user.plan }
 * const by = named('the plan of the user', plans.of.bind(plans))
 */
export const named = <F extends Function>(name: string, f: F): F => {
  conditionName('named(name, f)', name)
  checkHook('named(name, f): f', f, Infinity)
  const before = givenName(f)
  if (before === name) return f
  if (before !== undefined) throw new TypeError(`named('${name}', f): f is named '${before}' already`)
  if (!Object.isExtensible(f))
    throw new TypeError(`named('${name}', f): f is frozen; write named('${name}', (...all) => f(...all))`)
  return Object.defineProperty(f, given, { value: name })
}

/** Whether the text of a function says nothing about it: a bound function, or a proxy of one. */
const isBound = (f: Function): boolean => /^function\s*\(\)\s*\{\s*\[native code\]\s*\}$/.test(textOf(f))

const textOf = (f: Function): string => Function.prototype.toString.call(f)

/** What a policy file calls a function: the name that was given to it, or its own, and a digest of its text. */
export const functionName = (f: Function, name = givenName(f)): string => {
  if (isBound(f)) return `${name ?? ownName(f)} ${name === undefined ? NOT_COMPARED : '(bound, not compared)'}`
  const own = name ?? ownName(f)
  return `${own === '' ? 'function' : own} ${digestOf(f)}`
}

/** The same for the value of an option, whose name a function without its own one has from there. */
export const functionOf = (option: string, f: Function, name = givenName(f)): string =>
  name === undefined && !isBound(f) && ownName(f) === option ? digestOf(f) : functionName(f, name)

const ownName = (f: Function): string => {
  const own: unknown = f.name
  return typeof own === 'string' ? onOneLine(own) : ''
}

/** A digest of the text of a function. */
export const digestOf = (f: Function): string => {
  const text = textOf(f)
  return digest(tokensOf(text)?.join('\n') ?? text, 'hex').slice(0, 12)
}

/**
 * Options in words, for the policy file: `maxTokenAge 300`, `nonce (lifetime 60)`, a function by its name. Never call it with a secret.
 */
export const optionWords = (options: object): ReadonlyArray<string> =>
  Object.entries(options).flatMap(([name, value]: [string, unknown]) =>
    value === undefined ? [] : [`${name} ${valueInWords(value)}`],
  )

const valueInWords = (value: unknown): string => {
  if (typeof value === 'function') return functionName(value)
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
