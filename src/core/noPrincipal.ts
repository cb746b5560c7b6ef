/**
 * Recognizes truthy objects that are no principals: an Error that was returned instead of thrown, and the result of a
 * lookup that found nothing. `fromAnswer` checks every object that a hook returns.
 *
 * The objects may be of any realm (a `vm` context, Jest's sandbox), so no prototype is compared by identity alone.
 */
import { types } from 'node:util'

/** Whether an object is an Error of any realm or a DOMException, or inherits from an Error's prototype. */
export const isErrorObject = (answer: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(answer)
  return (prototype !== Object.prototype && inheritsFromError(prototype)) || types.isNativeError(answer)
}

const inheritsFromError = (prototype: unknown): boolean => {
  for (let at = prototype; typeof at === 'object' && at !== null; at = Object.getPrototypeOf(at)) {
    if (at === Error.prototype || isErrorPrototype(at)) return true
  }
  return false
}

// `Error.prototype` of another realm
const isErrorPrototype = (prototype: object): boolean =>
  Object.hasOwn(prototype, 'message') && isPrototype(prototype) && prototype.constructor.name === 'Error'

/**
 * Whether an object is the result of a lookup that found nothing: a prototype (`table['__proto__']`), or an object
 * without keys whose prototype is plain or null (Redis returns `{}` for a missing hash).
 */
export const foundNothing = (answer: object): boolean => (isPlain(answer) && !hasKeys(answer)) || isPrototype(answer)

/** Whether a function is one that every object or function inherits: `table['constructor']`, `table['toString']`. */
export const isInheritedFunction = (answer: Function): boolean => {
  const ofFunctions: unknown = Object.getPrototypeOf(answer)
  if (!isObject(ofFunctions)) return false
  const ofObjects: unknown = Object.getPrototypeOf(ofFunctions)
  return isPrototype(answer) || isMethod(ofFunctions, answer) || (isObject(ofObjects) && isMethod(ofObjects, answer))
}

const isObject = (u: unknown): u is object => (typeof u === 'object' && u !== null) || typeof u === 'function'

const isPrototype = (answer: object): boolean =>
  Object.hasOwn(answer, 'constructor') &&
  typeof answer.constructor === 'function' &&
  answer.constructor.prototype === answer

const isMethod = (prototype: object, answer: Function): boolean =>
  Object.hasOwn(prototype, 'constructor') &&
  (prototype.constructor === answer || Object.getOwnPropertyDescriptor(prototype, answer.name)?.value === answer)

const isPlain = (answer: object): boolean => {
  const prototype: unknown = Object.getPrototypeOf(answer)
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null
}

// In a loop, because making a list of the keys would take the longest time of the whole evaluation
const hasKeys = (answer: object): boolean => {
  for (const key in answer) if (Object.hasOwn(answer, key)) return true
  return Reflect.ownKeys(answer).length > 0
}
