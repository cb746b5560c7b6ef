/**
 * Mistakes in configuration, refused where they are written: a TypeError that names the place and the fix.
 *
 * Each of these would otherwise let everybody in (a class, a generator and an un-called factory answer something truthy)
 * or nobody.
 */

import { absent, type AuthError } from './AuthError.js'
import { make, type Challenge } from './Challenge.js'
import { isQuotable } from './fieldSyntax.js'
import { admitsAnonymous, type Description } from './Description.js'

const factory = Symbol.for('koa-with-auth/factory')

/** Marks a function that makes authenticators or guards, so that it is recognized where it was not called. */
export const declareFactory = <F extends Function>(name: string, make: F): F =>
  Object.defineProperty(make, factory, { value: name })

const factoryName = (f: Function): string | undefined => {
  const name: unknown = Reflect.get(f, factory)
  return typeof name === 'string' ? name : undefined
}

const isClass = (f: Function): boolean => /^class\b/.test(Function.prototype.toString.call(f))

const isGenerator = (f: Function): boolean => /GeneratorFunction$/.test(Object.prototype.toString.call(f).slice(8, -1))

/** How a value that should not be there is called in a message. Never prints a value: it may be a secret. */
const named = (u: unknown): string =>
  u === null
    ? 'null'
    : Array.isArray(u)
      ? 'an array'
      : u === undefined
        ? 'undefined'
        : typeof u === 'object'
          ? 'an object'
          : `a ${typeof u}`

/** A function that the layer calls with `arity` arguments and whose answer decides. */
export const checkHook = (place: string, hook: unknown, arity: number): void => {
  if (typeof hook !== 'function') throw new TypeError(`${place} must be a function, not ${named(hook)}`)
  const name = factoryName(hook)
  if (name !== undefined) throw new TypeError(`${place} is ${name} itself; call it: ${name}(...)`)
  if (isClass(hook))
    throw new TypeError(`${place} is the class ${hook.name}; pass a function, or a method bound to an instance`)
  if (isGenerator(hook)) {
    throw new TypeError(`${place} is a generator, whose answer is always truthy; write a plain or an async function`)
  }
  if (hook.length > arity) {
    throw new TypeError(
      `${place} takes ${hook.length} parameters, but is called with ${arity}; see the kind's signature`,
    )
  }
}

/** Options of a factory: an object whose keys are all known. */
export const checkOptions = (place: string, options: unknown, known: ReadonlyArray<string>): void => {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new TypeError(`${place} takes an object of options, not ${named(options)}`)
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) throw new TypeError(`${place}: no option "${key}"; there are ${known.join(', ')}`)
  }
}

/** A name of a parameter, header or cookie. */
export const checkName = (place: string, name: unknown, allowed: RegExp): void => {
  if (typeof name !== 'string' || !allowed.test(name)) {
    throw new TypeError(`${place} must be a name without blanks, separators or control characters`)
  }
}

/** A protection space, where one is named. */
export const checkRealm = (place: string, realm: unknown): void => {
  if (realm !== undefined && !isQuotable(realm)) {
    throw new TypeError(`${place}({ realm }) must be printable ASCII on one line`)
  }
}

// What a timer can wait for, in milliseconds
const MAX_NUMBER = 2 ** 31 - 1

/** A positive number that a timer could wait for. */
export const checkPositive = (place: string, value: unknown): void => {
  if (typeof value !== 'number' || !(value >= 1 && value <= MAX_NUMBER)) {
    const given = typeof value === 'number' ? String(value) : named(value)
    throw new TypeError(`${place} must be a number from 1 to ${MAX_NUMBER}, not ${given}`)
  }
}

/** What every kind that reads a credential takes: a protection space, and how long the credential may be. */
export const checkCredential = (
  factory: string,
  { realm, maxLength }: { readonly realm?: unknown; readonly maxLength?: unknown },
): void => {
  checkRealm(factory, realm)
  if (maxLength !== undefined) checkPositive(`${factory}({ maxLength })`, maxLength)
}

/** What a kind of authenticator is made of. */
export const checkKind = (kind: {
  readonly challenge: Challenge | ((error: AuthError) => Challenge)
  readonly ambient: boolean
  readonly extract: unknown
  readonly authenticate: unknown
  readonly maxLength?: number | undefined
  readonly schemeName?: string
}): void => {
  if (typeof kind !== 'object' || kind === null) throw new TypeError('authenticator takes an object; see Kind')
  const { challenge, ambient, extract, authenticate, maxLength, schemeName } = kind
  if (typeof ambient !== 'boolean') {
    throw new TypeError(
      'authenticator({ ambient }) must say whether browsers send the credential by themselves: true or false',
    )
  }
  checkHook('authenticator({ extract })', extract, 1)
  checkHook('authenticator({ authenticate })', authenticate, 2)
  checkCredential('authenticator', { maxLength })
  const bare = typeof challenge === 'function' ? challenge(absent) : challenge
  if (typeof bare !== 'object' || bare === null) {
    throw new TypeError("authenticator({ challenge }) must be a challenge: Challenge.make('Scheme')")
  }
  make(bare.scheme, bare.parameters)
  checkSchemeName('authenticator({ schemeName })', schemeName)
}

/** OpenAPI 3.1: what a component may be called. */
export const checkSchemeName = (place: string, name: unknown): void => {
  if (name !== undefined && (typeof name !== 'string' || !/^[A-Za-z0-9._-]+$/.test(name))) {
    throw new TypeError(`${place} must be made of letters, digits, ".", "-" and "_", as OpenAPI wants names`)
  }
}

/** One thing that is taken as an authenticator. */
export const checkMember = (place: string, member: unknown): void => {
  if (Array.isArray(member)) throw new TypeError(`${place} is a list in a list; write one list, or anyOf([...])`)
  if (member === undefined)
    throw new TypeError(`${place} is undefined; is it imported before it is made? Only null makes public`)
  if (member === null) throw new TypeError(`${place} is null; write null by itself: withAuth(null) makes public`)
  checkHook(place, member, 1)
}

/** A list or record of alternatives. */
export const checkGroup = (place: string, group: unknown): void => {
  if (Array.isArray(group)) {
    if (group.length === 0) throw new TypeError(`${place}([]): an empty list; pass at least one authenticator`)
    // `entries` also visits holes, which `forEach` would skip
    for (const [at, member] of group.entries()) checkMember(`${place}([...])[${at}]`, member)
    return
  }
  if (typeof group !== 'object' || group === null) {
    throw new TypeError(`${place} takes a list or a record of authenticators, not ${named(group)}`)
  }
  const prototype: unknown = Object.getPrototypeOf(group)
  if (prototype !== Object.prototype && prototype !== null) {
    throw new TypeError(`${place} takes a plain record; one with a prototype of its own (__proto__) hides members`)
  }
  const entries = Object.entries(group)
  if (entries.length === 0) throw new TypeError(`${place}({}): an empty record; pass at least one authenticator`)
  for (const [key, member] of entries) {
    // engines put integer-like keys first, whatever the order written
    if (/^\d+$/.test(key))
      throw new TypeError(`${place}({ ${key}: ... }): a key that looks like an integer; give it a name`)
    checkMember(`${place}({ ${key} })`, member)
  }
}

/** Alternatives in the order tried: nothing behind one that lets everybody in would ever be asked. */
export const checkOrder = (place: string, members: ReadonlyArray<{ readonly description: Description }>): void => {
  const at = members.slice(0, -1).findIndex(({ description }) => admitsAnonymous(description))
  if (at >= 0) {
    throw new TypeError(
      `${place}: alternative ${at + 1} is optional, so those behind it would not be asked; put it last`,
    )
  }
}

/** What must be authenticated: an anonymous caller cannot be allowed anything. */
export const checkDemanding = (place: string, description: Description): void => {
  if (admitsAnonymous(description))
    throw new TypeError(`${place}: a is optional; write optional(${place.slice(0, -3)}(a))`)
}
