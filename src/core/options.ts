/**
 * Checks the options of a function. Every function has a table with a check for each option; `checkOptions` applies it.
 *
 * An option that is `undefined` counts as left out. `auth` and the options of `ifWritten` are exceptions: there `undefined` comes
 * from a variable that is not set, or from the order of imports, and would make an operation public, or drop a check.
 *
 * A property of `Object.prototype` is no option: a merge elsewhere in the process may have put it there
 * (`Object.prototype.csrf`).
 */

/** RFC 9110 §5.6.2: the names of schemes, parameters, fields and cookies. */
export const token: RegExp = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/

/** A scope (RFC 6749 §3.3, NQCHAR): printable ASCII without blanks, `"` and `\`. */
export const isScope = (u: unknown): u is string => typeof u === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(u)

/** RFC 9110 §5.6.4: whether it can be a parameter's value, in ASCII. */
export const isQuotable = (u: unknown): u is string => typeof u === 'string' && /^[\t\x20-\x7e]*$/.test(u)

// The result of a class, of a generator and of a factory that was not called is always truthy. As a hook each of them
// would let everybody in
const factory = Symbol.for('koa-with-auth/factory')

/** Marks a function that makes authenticators or guards, so that it is recognized if it was not called. */
export const declareFactory = <F extends Function>(name: string, make: F): F =>
  Object.defineProperty(make, factory, { value: name })

/** Marks a condition, which the function of this name has returned: it is no hook. */
export const declareCondition = <F extends Function>(name: string, condition: F): F =>
  declareFactory(`${name}(...)`, condition)

export const declareFactories = (makes: Readonly<Record<string, Function>>): void => {
  for (const [name, make] of Object.entries(makes)) declareFactory(name, make)
}

const factoryName = (f: Function): string | undefined => {
  const name: unknown = Reflect.get(f, factory)
  return typeof name === 'string' ? name : undefined
}

const conditionCall = (f: Function): string | undefined => {
  const name = factoryName(f)
  return name?.endsWith('(...)') === true ? name : undefined
}

/** Whether it is a condition: the result of such a call, or a combinator that takes the authenticator itself. */
export const isCondition = (f: Function): boolean =>
  conditionCall(f) !== undefined || ['optional', 'lenient'].includes(factoryName(f) ?? '')

const isClass = (f: Function): boolean => /^class\b/.test(Function.prototype.toString.call(f))

const isGenerator = (f: Function): boolean => /GeneratorFunction\]$/.test(Object.prototype.toString.call(f))

/** Whether a value is an async function, whose result is always truthy. */
export const isAsync = (u: unknown): boolean => Object.prototype.toString.call(u) === '[object AsyncFunction]'

/** The type of a wrong value, for a message, which never prints the value, because it may be a secret. */
export const typeName = (u: unknown): string => {
  if (u === null) return 'null'
  if (u === undefined) return 'undefined'
  if (Array.isArray(u)) return 'an array'
  return typeof u === 'object' ? 'an object' : `a ${typeof u}`
}

/** Throws a TypeError for a value that is no hook of `arity` arguments. `fix` is for a function that takes more. */
export const checkHook = (where: string, hook: unknown, arity: number, fix = "see the kind's signature"): void => {
  if (typeof hook !== 'function') throw new TypeError(`${where} must be a function, not ${typeName(hook)}`)
  const call = conditionCall(hook)
  if (call !== undefined)
    throw new TypeError(`${where} is ${call}, a condition; write it after the authenticator: withAuth(a, ${call})`)
  const name = factoryName(hook)
  if (name !== undefined) throw new TypeError(`${where} is ${name} itself; call it: ${name}(...)`)
  if (isClass(hook))
    throw new TypeError(`${where} is the class ${hook.name}; pass a function, or a method bound to an instance`)
  if (isGenerator(hook)) {
    throw new TypeError(
      `${where} is a generator function, whose result is always truthy; write a plain or an async function`,
    )
  }
  if (hook.length > arity) {
    throw new TypeError(`${where} takes ${hook.length} parameters, but is called with ${arity}; ${fix}`)
  }
}

/** Throws a TypeError for a value that is no member of a combinator: it would let everybody in, or refuse everybody. */
export const checkMember = (where: string, member: unknown): void => {
  if (Array.isArray(member)) throw new TypeError(`${where} is a list in a list; write one list, or anyOf([...])`)
  if (member === undefined)
    throw new TypeError(
      `${where} is undefined; is it imported before it is defined? Only null makes an operation public`,
    )
  if (member === null)
    throw new TypeError(`${where} is null; write null alone: withAuth(null) makes an operation public`)
  if (typeof member !== 'function')
    throw new TypeError(
      `${where} must be an authenticator, such as httpBearer({ ... }), or a function of the request, not ${typeName(member)}`,
    )
  checkHook(where, member, 1, 'write (request) => principal; middleware is no authenticator')
}

export const isList = <A>(group: ReadonlyArray<A> | Readonly<Record<string, A>>): group is ReadonlyArray<A> =>
  Array.isArray(group)

// Each of these mistakes would let everybody in, or refuse everybody

export const checkGroup = (caller: string, group: unknown): void => {
  if (Array.isArray(group)) {
    if (group.length === 0) throw new TypeError(`${caller}([]): an empty list; pass at least one authenticator`)
    // `entries` also visits holes, which `forEach` would skip
    for (const [at, member] of group.entries()) checkMember(`${caller}([...])[${at}]`, member)
    return
  }
  if (typeof group !== 'object' || group === null) {
    throw new TypeError(
      `${caller} takes a list or an object of authenticators, not ${typeName(group)}; write ${caller}([a, b])`,
    )
  }
  if (!isPlain(group)) {
    throw new TypeError(`${caller} takes a plain object; one with its own prototype (__proto__) hides members`)
  }
  const entries = Object.entries(group)
  if (entries.length === 0) throw new TypeError(`${caller}({}): an empty object; pass at least one authenticator`)
  for (const [key, member] of entries) {
    // engines put integer-like keys first, whatever the order written
    if (/^\d+$/.test(key))
      throw new TypeError(
        `${caller}({ ${key}: ... }): the key looks like an integer, and would change the order; use a name`,
      )
    checkMember(`${caller}({ ${key} })`, member)
  }
}

/** Throws a TypeError for a value that an option must not have. `where` names the option, and `isWritten` says that it is not left out. */
export type Check = (where: string, value: unknown, isWritten?: boolean) => void

export type Given<T> = { readonly [K in keyof T]: Exclude<T[K], undefined> }

/** Options. Those that may be left out may also be `undefined`. */
export type OrUndefined<T> = {
  readonly [K in keyof T]: Partial<Pick<T, K>> extends Pick<T, K> ? T[K] | undefined : T[K]
}

export type Checks<T> = Readonly<Record<keyof T, Check>>

// How a message names an option: `httpBearer({ realm })`, `sessions(app, { idle })`, `httpJwt({ keys: { retry } })`
const optionOf = (where: string, name: string): string => {
  const whole = /\boptions\b|\{ \.\.\. \}/
  if (whole.test(where)) return where.replace(whole, `{ ${name} }`)
  return where.endsWith(' })') ? `${where.slice(0, -3)}: { ${name} } })` : `${where}({ ${name} })`
}

/** Whether it is an object as `{ ... }` makes it, in any realm: no instance of a class, no array, nothing that inherits its properties. */
export const isPlain = (u: unknown): u is object => {
  if (typeof u !== 'object' || u === null || !/ (Object|Module)\]$/.test(Object.prototype.toString.call(u)))
    return false
  const prototype: unknown = Object.getPrototypeOf(u)
  return prototype === null || Object.hasOwn(Object(prototype), 'isPrototypeOf')
}

/** Throws a TypeError for a value that is no plain object: the options of a Map, a class or a promise would be lost silently. */
export const checkPlain = (where: string, options: unknown): void => {
  if (isPlain(options)) return
  const tag = Object.prototype.toString.call(options).slice(8, -1)
  const isInstance = typeof options === 'object' && options !== null && !Array.isArray(options)
  const given = isInstance ? `an instance of ${tag === 'Object' ? 'a class' : tag}` : typeName(options)
  throw new TypeError(`${where} takes an object of options, not ${given}`)
}

const isScalar = (u: unknown): boolean => typeof u !== 'function' && (typeof u !== 'object' || u === null)

const isFlat = (u: unknown): boolean => isScalar(u) || (Array.isArray(u) && u.every(isScalar))

// A later change of an option must not change the admitted callers, because the policy file has the passed value. A value with methods stays itself
const settled = (value: unknown): unknown => {
  if (Array.isArray(value)) return Array.from<unknown>(value)
  if (!isPlain(value) || !Object.values(value).every(isFlat)) return value
  const copy = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, settled(one)]))
  return Object.getPrototypeOf(value) === null ? bare(copy) : copy
}

/**
 * Checks options, and returns them without those that are `undefined`, and with copies of lists and plain data. Throws a TypeError for
 * a value that is no plain object, for an option that is not in the table, and for a value that its check refuses. `where` is the call, such as
 * `httpBearer` or `sessions(app, options)`.
 */
export const checkOptions = <T extends object>(where: string, options: T, checks: Checks<T>): Given<T> => {
  checkPlain(where, options)
  const names = Object.keys(checks)
  for (const name of Object.keys(options)) {
    if (!names.includes(name)) throw new TypeError(`${where}: no option "${name}"; there are ${names.join(', ')}`)
  }
  const given: [string, unknown][] = []
  for (const [name, check] of Object.entries<Check>(checks)) {
    const isThere = Object.hasOwn(options, name)
    const value: unknown = isThere ? Reflect.get(options, name) : undefined
    check(optionOf(where, name), value, isThere)
    if (value !== undefined || (name === 'auth' && isThere)) given.push([name, settled(value)])
  }
  // Safe: options of the same names and values; a missing option was undefined
  return bare(Object.fromEntries(given)) as Given<T>
}

/** Whether an object or its class has a property. `Object.prototype`, which all objects share, does not count. */
export const isGiven = (options: object, name: string): boolean => {
  if (Object.hasOwn(options, name)) return true
  const next: unknown = Object.getPrototypeOf(options)
  return typeof next === 'object' && next !== null && Object.getPrototypeOf(next) !== null && isGiven(next, name)
}

/** The same properties without a prototype. The rest of a destructuring (`...others`) inherits from all objects again. */
export const bare = <T extends object>(properties: T): T =>
  // Safe: an empty object gets the properties
  Object.assign(Object.create(null) as T, properties)

export const withoutUndefined = <T extends object>(options: T): Given<T> =>
  // Safe: of the same names and values
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>
