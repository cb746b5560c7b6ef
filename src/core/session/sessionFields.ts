/**
 * Reads the fields of objects that decide who is signed in and what they may do, so that a polluted prototype decides
 * nothing.
 *
 * Code elsewhere in the process that merges `{"__proto__":{"isSuperuser":true}}` puts a field on every object. So
 * inherited values do not count. In a session, copies of inherited values do not count either: koa-session loops over
 * inherited keys when it makes a session, and when it writes one.
 */

/** The value of an own property; `undefined` if there is none. */
export const ownField = (record: object, name: string): unknown =>
  Object.hasOwn(record, name) ? Reflect.get(record, name) : undefined

/** The same for a session: also `undefined` if `Object.prototype` was polluted with the value. */
export const sessionField = (session: object, name: string): unknown => {
  const value = ownField(session, name)
  if (!(name in Object.prototype)) return value
  return JSON.stringify(value) === JSON.stringify(Reflect.get(Object.prototype, name)) ? undefined : value
}

/** The same for a loaded user: getters of its class count, too, because merged data cannot make a getter. */
export const userField = (user: object, name: string): unknown => {
  if (Object.hasOwn(user, name)) return Reflect.get(user, name)
  let at: unknown = Object.getPrototypeOf(user)
  while (typeof at === 'object' && at !== null && at !== Object.prototype) {
    const property = Object.getOwnPropertyDescriptor(at, name)
    if (property !== undefined) return property.get === undefined ? undefined : Reflect.get(user, name)
    at = Object.getPrototypeOf(at)
  }
  return undefined
}

/** A copy of the own fields of a session, without a prototype, and without the fields that koa-session uses itself. */
export const sessionData = (session: object): Record<string, unknown> => {
  // Safe: an object without a prototype has no fields yet
  const data = Object.create(null) as Record<string, unknown>
  for (const name of Object.keys(session)) {
    const value = dataField(session, name)
    if (value !== undefined) data[name] = value
  }
  return data
}

// koa-session's own rule for data (lib/session.js, toJSON)
const dataField = (session: object, name: string): unknown => {
  if (name === 'isNew' || name.startsWith('_')) return undefined
  const value = sessionField(session, name)
  return typeof value === 'function' ? undefined : value
}

/** Whether a session holds any data. */
export const hasData = (session: object): boolean =>
  Object.keys(session).some((name) => dataField(session, name) !== undefined)
