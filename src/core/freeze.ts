/**
 * Freezes constants that all requests share. So a mistake in a mapper or a hook is a TypeError at the first request.
 * Without it, the answer to one user could contain data of another user.
 */

/** Freezes plain data, deeply. Functions and instances of classes (an Error, a RegExp) are left as they are. */
export const deepFreeze = <A>(value: A): A => {
  if (!isData(value)) return value
  for (const key of Reflect.ownKeys(value)) deepFreeze(Reflect.get(value, key))
  return Object.freeze(value)
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
