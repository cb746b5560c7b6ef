/** Helpers that handle data safely: frozen, own, aged, and marked. */

/**
 * Freezes plain data, deeply: constants that all requests share. So a mistake in a mapper or a hook is a TypeError at the first
 * request. Without it, the answer to one user could contain data of another user. Functions and instances of classes (an Error, a
 * RegExp) are left as they are.
 */
export const deepFreeze = <A>(value: A): A => {
  if (!isData(value)) return value
  for (const key of Reflect.ownKeys(value)) deepFreeze(Reflect.get(value, key))
  return Object.freeze(value)
}

/** Gives a function properties that cannot be changed. A tracer can still copy them to its own function. */
export const withFixed = <F extends Function, P extends object>(f: F, properties: P): F & P => {
  for (const key of Reflect.ownKeys(properties)) {
    Object.defineProperty(f, key, { value: deepFreeze<unknown>(Reflect.get(properties, key)), enumerable: true })
  }
  // Safe: it has them now
  return f as F & P
}

/** A deeply frozen copy of plain data. The original stays writable. */
export const frozenCopy = <A>(value: A): A => {
  if (!isData(value)) return value
  const copy = Array.isArray(value)
    ? value.map((one: unknown) => frozenCopy(one))
    : Object.fromEntries(Object.entries(value).map(([key, one]) => [key, frozenCopy(one)]))
  // Safe: the same keys, and a copy of each value
  return Object.freeze(copy) as A
}

const isData = (value: unknown): value is object => {
  if (typeof value !== 'object' || value === null) return false
  if (Array.isArray(value)) return true
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}

/**
 * The own properties of an object, in an object without a prototype: a missing property is `undefined`. Code elsewhere in
 * the process that merges `{"__proto__":{"isSuperuser":true}}` puts a field on every object. So inherited values must
 * not decide the identity or the rights of a caller.
 */
export const ownFields = (record: object): Readonly<Record<string, unknown>> => ({ __proto__: null, ...record })

/** The own properties of the object that a string is as JSON; `undefined` for any other string. */
export const jsonFields = (text: string): Readonly<Record<string, unknown>> | undefined => {
  const read: unknown = unlessThrown(() => JSON.parse(text))
  if (typeof read !== 'object' || read === null || Array.isArray(read)) return undefined
  // Safe: the object is new, and a copy would take longer
  return Object.setPrototypeOf(read, null) as Readonly<Record<string, unknown>>
}

/** The result of a function; `undefined` if it throws. */
export const unlessThrown = <A>(read: () => A): A | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** An answer that may be no promise: if it is one that rejects all the same, that ends no process. */
export const unawaited = <A>(answer: A): A => {
  if (typeof answer === 'object' && answer !== null) new Promise((resolve) => resolve(answer)).catch(() => undefined)
  return answer
}

export const ownField = (record: object, name: string): unknown =>
  Object.hasOwn(record, name) ? Reflect.get(record, name) : undefined

/** The same, but getters of the object's class count, too, because merged data cannot make a getter. */
export const ownOrGetter = (object: object, name: string): unknown => {
  if (Object.hasOwn(object, name)) return Reflect.get(object, name)
  let at: unknown = Object.getPrototypeOf(object)
  while (typeof at === 'object' && at !== null && at !== Object.prototype) {
    const property = Object.getOwnPropertyDescriptor(at, name)
    if (property !== undefined) return property.get === undefined ? undefined : Reflect.get(object, name)
    at = Object.getPrototypeOf(at)
  }
  return undefined
}

/** The codes of this package's errors, by which a program can tell them apart. Messages may change, codes do not. */
export type ErrorCode =
  | 'ERR_AUTH_ENDED'
  | 'ERR_AUTH_UNAVAILABLE'
  | 'ERR_BODY_WAS_READ'
  | 'ERR_GUARD_MISPLACED'
  | 'ERR_GUARD_REPLACED'
  | 'ERR_INSECURE_REQUEST'
  | 'ERR_LAW_VIOLATIONS'
  | 'ERR_NOT_SEALED'
  | 'ERR_NO_LIVE_KEY'
  | 'ERR_SIGN_IN_REFUSED'
  | 'ERR_UPSTREAM_GONE'

export const withCode = <E extends Error>(error: E, code: ErrorCode): E => Object.assign(error, { code })

/** `instanceof` for errors of a code, whichever copy of this package made them. A subclass is asked as usual. */
export const isInstance = (asked: Function, own: Function, u: unknown, code: ErrorCode): boolean =>
  asked === own
    ? typeof u === 'object' && u !== null && 'code' in u && u.code === code
    : Reflect.apply(Function.prototype[Symbol.hasInstance], asked, [u])

/** The code of an error of Node; an empty string for anything else. */
export const codeOf = (error: unknown): string =>
  typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''

/**
 * An error for a process warning. In production without its message, which can contain values: an address, a
 * statement of SQL. Elsewhere without it if it has one of these secrets, in whatever letter case, encoding or line breaks. Characters that could forge a
 * log line are escaped. Never throws, also for an error whose getters throw.
 */
export const errorInWords = (error: unknown, secrets: ReadonlyArray<string> = []): string =>
  unlessThrown(() => wordsOf(error, secrets)) ?? 'an Error'

const wordsOf = (error: unknown, secrets: ReadonlyArray<string>): string => {
  if (!(error instanceof Error)) return 'not an Error'
  const code = 'code' in error && typeof error.code === 'string' ? `${error.name} ${error.code}` : error.name
  const whole = process.env['NODE_ENV'] === 'production' ? code : `${code}: ${error.message}`
  const said = [whole, code].find((text) => !secrets.some((secret) => says(text, secret)))
  return (said ?? 'an Error')
    .slice(0, MAX_WORDS)
    .replace(unprintable, (one) => `\\u{${one.charCodeAt(0).toString(16)}}`)
}

const MAX_WORDS = 1000
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

// Letters and digits only, because mail programs and URLs put line breaks, escapes and separators in
const bareOf = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')
const withoutTransferEscapes = (text: string): string => text.replace(/=\s+|%[\da-f]{2}|=[\da-f]{2}/gi, '')

// The start of a long secret is enough, because a message may cut it
const says = (text: string, secret: string): boolean => {
  const start = bareOf(secret).slice(0, 16)
  return start !== '' && [text, withoutTransferEscapes(text)].some((one) => bareOf(one).includes(start))
}

/** A moment by both clocks, in milliseconds. */
export interface Moment {
  readonly monotonic: number
  readonly system: number
}

export const thisMoment = (): Moment => ({ monotonic: performance.now(), system: Date.now() })

/**
 * How long ago a moment was, in milliseconds. The greater age of the two clocks counts, so nothing is kept for too
 * long. Somebody can set the system clock back. The monotonic clock (`performance.now()`) can stop while a machine
 * sleeps, or while a function that a cloud runs is frozen.
 */
export const ageOf = ({ monotonic, system }: Moment, now = Date.now()): number =>
  Math.max(performance.now() - monotonic, now - system)

/**
 * Makes a clock for expiry that must never be undone, in milliseconds since 1970. It does not follow a system clock that is set ahead: a
 * used link that was forgotten meanwhile would be good again once the clock is right.
 */
export const steadyClock = (): (() => number) => {
  const { monotonic, system } = thisMoment()
  return () => Math.min(Date.now(), system + performance.now() - monotonic)
}

/** Whether a moment was less than so many milliseconds ago. `undefined` was never. */
export const isYounger = (since: Moment | undefined, ms: number): boolean => since !== undefined && ageOf(since) < ms

/** A string for HTML, also within the quotes of an attribute. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"'\u2028\u2029]/g, (character) => `&#${character.charCodeAt(0)};`)

/** Whether a path has dot segments or the like, which URL resolves and a router does not: one path would stand for another. */
export const hasDots = (path: string): boolean => /\\|(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i.test(path)

/*
 * Each mark is a `Symbol.for`, so that two copies of the package in one process (at two paths, of two versions)
 * recognize each other's, and so that a debugger shows it. A mark that a single file reads is defined there.
 */

/**
 * The `param` of functions that stay before `param` hooks. The router sorts hooks among the functions of a layer by
 * their `param`, and puts them before the first that has none. No path has a parameter of this name (D-R10).
 */
export const aheadOfParams = Symbol.for('koa-with-auth/ahead-of-params')

/** On a function: it describes its operation, see `openapi/operation.ts`. */
export const operationMark = Symbol.for('koa-with-auth/operation')

/** On middleware: the function that an upgrade runs instead, see `upgrades/guardUpgrade.ts`. */
export const upgradeMark = Symbol.for('koa-with-auth/upgrade')

/** A part of this package and its settings, as plain data: for `audit --asvs`. */
export interface Fact {
  readonly part: string
  readonly [setting: string]: string | number | boolean | undefined
}

const factMark: unique symbol = Symbol.for('koa-with-auth/fact')

export const stating = <A extends object>(made: A, fact: Fact | undefined): A =>
  fact === undefined ? made : Object.defineProperty(made, factMark, { value: fact })

/** The settings that a function or a kind has noted. */
// Safe: only `stating` writes it
export const factOf = (made: object): Fact | undefined => Reflect.get(made, factMark) as Fact | undefined

/** On a router and its layers: they are sealed, see `audit/seal.ts`. */
export const sealedMark = Symbol.for('koa-with-auth/sealed')

/**
 * Keeps the marks of functions under OpenTelemetry's Koa instrumentation, which Sentry uses too.
 *
 * At `app.use(router.routes())` it replaces each function of each layer by a function without its properties. Then the guard
 * could not be found any more. It does not replace a function twice: a replaced function has `true` under a symbol
 * named `koa-layer-patched`, which is private to each copy of it. So ours inherit `true` for every symbol of this name.
 * The cost: no span for guards. All other properties are those of a function. `spec/package/tracers.http.slow.spec.ts` pins this.
 *
 * koa-compose calls `concat` with each function at each request, which V8 does slowly if a proxy is inherited. So a function that
 * was asked gets the property itself, and none inherits the proxy after the first request (`likeAnyOther`).
 */
const alreadyReplaced: object = new Proxy(
  // Safe: it is the prototype of functions
  Object.create(Function.prototype) as object,
  {
    get: (prototype, key, self): unknown => {
      // V8 would call it an Object, and lodash no function
      if (key === Symbol.toStringTag) return 'Function'
      if (typeof key !== 'symbol' || key.description !== 'koa-layer-patched') return Reflect.get(prototype, key, self)
      if (typeof self === 'function') Object.defineProperty(self, key, { value: true })
      return true
    },
  },
)

export const notWrapped = <F extends Function>(f: F): F => Object.setPrototypeOf(f, alreadyReplaced) as F

/** Undoes `notWrapped` for functions whose application is mounted: tracers have asked them, or there are none. */
export const likeAnyOther = (functions: Iterable<object>): void => {
  for (const f of functions) {
    if (Object.getPrototypeOf(f) === alreadyReplaced) Object.setPrototypeOf(f, Function.prototype)
  }
}
