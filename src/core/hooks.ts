/**
 * Checks whether a function can decide. A class, a generator and a factory that was not called return something truthy,
 * which would let everybody in.
 */

const factory = Symbol.for('koa-with-auth/factory')

/** Marks a function that makes authenticators or guards, so that it is recognized if it was not called. */
export const declareFactory = <F extends Function>(name: string, make: F): F =>
  Object.defineProperty(make, factory, { value: name })

const factoryName = (f: Function): string | undefined => {
  const name: unknown = Reflect.get(f, factory)
  return typeof name === 'string' ? name : undefined
}

const isClass = (f: Function): boolean => /^class\b/.test(Function.prototype.toString.call(f))

const isGenerator = (f: Function): boolean => /GeneratorFunction\]$/.test(Object.prototype.toString.call(f))

/** Whether a value is an async function, whose result is always truthy. */
export const isAsync = (u: unknown): boolean => Object.prototype.toString.call(u) === '[object AsyncFunction]'

/** What a message calls a wrong value. It never prints the value, which may be a secret. */
export const named = (u: unknown): string => {
  if (u === null) return 'null'
  if (u === undefined) return 'undefined'
  if (Array.isArray(u)) return 'an array'
  return typeof u === 'object' ? 'an object' : `a ${typeof u}`
}

/**
 * Throws a TypeError for a value that cannot be a hook of `arity` arguments. `fix` is for a function that takes more.
 */
export const checkHook = (place: string, hook: unknown, arity: number, fix = "see the kind's signature"): void => {
  if (typeof hook !== 'function') throw new TypeError(`${place} must be a function, not ${named(hook)}`)
  const name = factoryName(hook)
  if (name !== undefined) throw new TypeError(`${place} is ${name} itself; call it: ${name}(...)`)
  if (isClass(hook))
    throw new TypeError(`${place} is the class ${hook.name}; pass a function, or a method bound to an instance`)
  if (isGenerator(hook)) {
    throw new TypeError(
      `${place} is a generator function, whose result is always truthy; write a plain or an async function`,
    )
  }
  if (hook.length > arity) {
    throw new TypeError(`${place} takes ${hook.length} parameters, but is called with ${arity}; ${fix}`)
  }
}
