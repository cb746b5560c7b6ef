/** A merge elsewhere in the process that writes to `Object.prototype`. */
import { onTestFinished } from 'vitest'

/** Puts fields on every object until the test has finished. */
export const pollute = (fields: object): void => {
  onTestFinished(() => {
    for (const name of Object.keys(fields)) Reflect.deleteProperty(Object.prototype, name)
  })
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(Object.prototype, name, { value, configurable: true, enumerable: true, writable: true })
  }
}
