/** What an option may be: the checks of the tables of options. */
import { checkHook, isQuotable, typeName, type Check } from './options.js'

export const maybe =
  (check: Check): Check =>
  (where, value) => {
    if (value !== undefined) check(where, value)
  }

/** An option that is checked where it is used. */
export const unchecked: Check = () => {}

/** A hook: a function that decides, and is called with `arity` arguments. */
export const hook =
  (arity: number): Check =>
  (where, value) =>
    checkHook(where, value, arity)

export const oneOf =
  (...values: ReadonlyArray<string>): Check =>
  (where, value) => {
    if (values.includes(value as string)) return
    throw new TypeError(`${where} must be ${values.map((one) => `'${one}'`).join(' or ')}`)
  }

const MIN_SECRET_BYTES = 32

export const secrets: Check = (where, value) => {
  const keys: ReadonlyArray<unknown> = Array.isArray(value) ? value : []
  const isKey = (key: unknown) =>
    (typeof key === 'string' || key instanceof Uint8Array) && Buffer.byteLength(key) >= MIN_SECRET_BYTES
  if (keys.length > 0 && keys.every(isKey)) return
  throw new TypeError(`${where} must be an array of secrets, each of ${MIN_SECRET_BYTES} bytes or more`)
}

export const flag: Check = (where, value) => {
  if (typeof value !== 'boolean') throw new TypeError(`${where} must be true or false`)
}

export const list: Check = (where, value) => {
  if (!Array.isArray(value)) throw new TypeError(`${where} must be an array`)
}

/** An object with methods; `fix` says where to find one. */
export const withMethods =
  (names: ReadonlyArray<string>, fix: string): Check =>
  (where, value) => {
    const isObject = typeof value === 'object' && value !== null
    const missing = names.find((name) => !isObject || typeof Reflect.get(value, name) !== 'function')
    if (missing !== undefined) throw new TypeError(`${where} has no method ${missing}; ${fix}`)
  }

export const string: Check = (where, value) => {
  if (typeof value !== 'string') throw new TypeError(`${where} must be a string`)
}

export const nonEmpty: Check = (where, value) => {
  if (typeof value !== 'string' || value === '') throw new TypeError(`${where} must be a string that is not empty`)
}

export const nameLike =
  (allowed: RegExp): Check =>
  (where, value) => {
    if (typeof value === 'string' && allowed.test(value)) return
    throw new TypeError(`${where} must be a name without blanks, separators or control characters`)
  }

export const realm: Check = (where, value) => {
  if (!isQuotable(value)) throw new TypeError(`${where} must be printable ASCII on one line`)
}

// What a timer can wait for, in milliseconds
const MAX_NUMBER = 2 ** 31 - 1

/** A positive number that a timer could wait for. */
export const positive: Check = (where, value) => {
  if (typeof value === 'number' && value >= 1 && value <= MAX_NUMBER) return
  const given = typeof value === 'number' ? String(value) : typeName(value)
  throw new TypeError(`${where} must be a number from 1 to ${MAX_NUMBER}, not ${given}`)
}

/**
 * Milliseconds that are compared with times in whole seconds, such as those of tokens. Less than a second can only be a mistake: a
 * number of seconds.
 */
export const milliseconds: Check = (where, value) => {
  if (typeof value === 'number' && value >= 1000 && value <= Number.MAX_SAFE_INTEGER) return
  const given = typeof value === 'number' ? String(value) : typeName(value)
  throw new TypeError(`${where} must be a number of milliseconds, at least 1000, not ${given}; a minute is 60_000`)
}

/** As `milliseconds`; 0 is allowed. */
export const millisecondsOrNone: Check = (where, value) => {
  if (value !== 0) milliseconds(where, value)
}

const DAY = 86_400_000
const MAX_DAYS = 400

/** A time that a browser keeps a cookie (RFC 6265bis: at most 400 days). */
export const duration: Check = (where, value) => {
  if (typeof value === 'number' && value >= 1 && value <= MAX_DAYS * DAY) return
  throw new TypeError(`${where} must be a number of milliseconds, at most ${MAX_DAYS} days`)
}

/** A name that OpenAPI 3.1 allows for a component. */
export const schemeName: Check = (where, value) => {
  if (typeof value === 'string' && /^[A-Za-z0-9._-]+$/.test(value)) return
  throw new TypeError(`${where} must consist of letters, digits, ".", "-" and "_", as OpenAPI demands of names`)
}
