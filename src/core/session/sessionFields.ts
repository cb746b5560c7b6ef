/**
 * Reads the fields of a session, so that a polluted prototype decides nothing (see `core/ownFields.ts`).
 *
 * Copies of inherited values do not count either: koa-session loops over inherited keys when it makes a session, and when
 * it writes one.
 */
import { ownField } from '../ownFields.js'

/** The value of an own field; `undefined` if there is none, or if `Object.prototype` was polluted with the value. */
export const sessionField = (session: object, name: string): unknown => {
  const value = ownField(session, name)
  if (!(name in Object.prototype)) return value
  return JSON.stringify(value) === JSON.stringify(Reflect.get(Object.prototype, name)) ? undefined : value
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
