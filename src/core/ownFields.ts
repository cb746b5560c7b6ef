/**
 * Reads the fields of objects that decide who a caller is and what they may do, so that a polluted prototype decides nothing.
 *
 * Code elsewhere in the process that merges `{"__proto__":{"isSuperuser":true}}` puts a field on every object. So inherited
 * values do not count.
 */

/** The value of an own property; `undefined` if there is none. */
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
