/**
 * Fields of records that decide who is signed in and what they may do, read so that a polluted prototype decides nothing.
 *
 * Code elsewhere in the process that merges `{"__proto__":{"isSuperuser":true}}` puts a field on every object. So inherited
 * values do not count, nor does a value that some loop over inherited keys (koa-session's constructor has one) copied.
 */

/** The value of an own property; `undefined` where there is none, or where it is what `Object.prototype` was polluted with. */
export const ownField = (record: object, name: string): unknown => {
  if (!Object.hasOwn(record, name)) return undefined
  const value: unknown = Reflect.get(record, name)
  return name in Object.prototype && value === Reflect.get(Object.prototype, name) ? undefined : value
}

/** The same for a loaded user: the getters of its class count, too. Merging data into a prototype cannot make a getter. */
export const userField = (user: object, name: string): unknown => {
  if (Object.hasOwn(user, name)) return ownField(user, name)
  let at: unknown = Object.getPrototypeOf(user)
  while (typeof at === 'object' && at !== null && at !== Object.prototype) {
    const property = Object.getOwnPropertyDescriptor(at, name)
    if (property !== undefined) return property.get === undefined ? undefined : Reflect.get(user, name)
    at = Object.getPrototypeOf(at)
  }
  return undefined
}

/** A copy of the own fields of a session, without a prototype. What koa-session keeps for itself is left out. */
export const sessionData = (session: object): Record<string, unknown> => {
  // Safe: an object without a prototype has no fields yet
  const data = Object.create(null) as Record<string, unknown>
  for (const name of Object.keys(session)) {
    // koa-session's own rule of what is data (lib/session.js, toJSON)
    if (name === 'isNew' || name.startsWith('_')) continue
    const value = ownField(session, name)
    if (value !== undefined && typeof value !== 'function') data[name] = value
  }
  return data
}

/** Whether a session holds any data. */
export const hasData = (session: object): boolean => Object.keys(sessionData(session)).length > 0
