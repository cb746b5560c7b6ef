/** The values that an option may have: the checks of the tables of options. */
import { checkHook, isPlain, isQuotable, typeName, type Check } from './options.js'

/** A check of all values but an allowed one. */
export const except =
  (allowed: unknown, check: Check): Check =>
  (where, value) => {
    if (value !== allowed) check(where, value)
  }

export const maybe = (check: Check): Check => except(undefined, check)

/** An option without which less is checked: it may be left out, but not be `undefined`. */
export const ifWritten =
  (check: Check): Check =>
  (where, value, isWritten = false) => {
    if (value !== undefined) return check(where, value)
    if (isWritten)
      throw new TypeError(
        `${where} is undefined; is a variable not set, or an import circular? Leave it out to go without it`,
      )
  }

/** An option for which a condition is true. `rule` is the rule in words, after the name of the option. */
export const that =
  (isGood: (value: unknown) => boolean, rule: string): Check =>
  (where, value) => {
    if (!isGood(value)) throw new TypeError(`${where} ${rule}`)
  }

/** An array of so many members at least, for each of which a condition is true. */
export const listOf = (isGood: (one: unknown) => boolean, rule: string, least = 0): Check =>
  that((value) => Array.isArray(value) && value.length >= least && value.every(isGood), rule)

/** An option that is checked where it is used. */
export const unchecked: Check = () => {}

export const hook =
  (arity: number): Check =>
  (where, value) =>
    checkHook(where, value, arity)

export const oneOf = (...values: ReadonlyArray<string>): Check =>
  that((value) => values.includes(value as string), `must be ${values.map((one) => `'${one}'`).join(' or ')}`)

const MIN_KEY_BYTES = 32

export const secrets = listOf(
  (key) => (typeof key === 'string' || key instanceof Uint8Array) && Buffer.byteLength(key) >= MIN_KEY_BYTES,
  `must be an array of secrets, each of ${MIN_KEY_BYTES} bytes or more`,
  1,
)

export const flag = that((value) => typeof value === 'boolean', 'must be true or false')

export const list = that(Array.isArray, 'must be an array')

export const isRecord = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const record = that(isPlain, 'must be an object')

export const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === 'object' && value !== null && typeof Reflect.get(value, name) === 'function'

/** An object with methods; `fix` says where to find such an object. */
export const withMethods =
  (names: ReadonlyArray<string>, fix: string): Check =>
  (where, value) => {
    const missing = names.find((name) => !hasMethod(value, name))
    if (missing !== undefined) throw new TypeError(`${where} has no method ${missing}; ${fix}`)
  }

export const string = that((value) => typeof value === 'string', 'must be a string')

export const isFilled = (value: unknown): value is string => typeof value === 'string' && value !== ''

export const nonEmpty = that(isFilled, 'must be a string that is not empty')

/** A string that matches an expression, which has neither of the flags g and y. */
export const like = (allowed: RegExp, rule: string): Check =>
  that((value) => typeof value === 'string' && allowed.test(value), rule)

export const nameLike = (allowed: RegExp): Check =>
  like(allowed, 'must be a name without blanks, separators or control characters')

export const realm = that(isQuotable, 'must be printable ASCII on one line')

// The longest wait of a timer, in milliseconds
const MAX_NUMBER = 2 ** 31 - 1

/** A positive number that a timer could wait for. */
export const positive: Check = (where, value) => {
  if (typeof value === 'number' && value >= 1 && value <= MAX_NUMBER) return
  const given = typeof value === 'number' ? String(value) : typeName(value)
  throw new TypeError(`${where} must be a number from 1 to ${MAX_NUMBER}, not ${given}`)
}

/** Milliseconds that are compared with whole seconds, such as those of tokens: less than a second is a number of seconds by mistake. */
export const milliseconds: Check = (where, value) => {
  if (typeof value === 'number' && value >= 1000 && value <= Number.MAX_SAFE_INTEGER) return
  const given = typeof value === 'number' ? String(value) : typeName(value)
  throw new TypeError(`${where} must be a number of milliseconds, at least 1000, not ${given}; a minute is 60_000`)
}

export const millisecondsOrNone = except(0, milliseconds)

const DAY_MS = 86_400_000
const MAX_COOKIE_DAYS = 400

/** A time that a browser keeps a cookie (RFC 6265bis: at most 400 days). */
export const duration = that(
  (value) => typeof value === 'number' && value >= 1 && value <= MAX_COOKIE_DAYS * DAY_MS,
  `must be a number of milliseconds, at most ${MAX_COOKIE_DAYS} days`,
)

/** A name that OpenAPI 3.1 allows for a component. */
export const schemeName = like(
  /^[A-Za-z0-9._-]+$/,
  'must consist of letters, digits, ".", "-" and "_", as OpenAPI demands of names',
)
