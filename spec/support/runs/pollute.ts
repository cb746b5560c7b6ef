/** A merge elsewhere in the process that writes to `Object.prototype`. */
import { onTestFinished } from 'vitest'

const add = (fields: object): void => {
  for (const [name, value] of Object.entries(fields)) {
    Object.defineProperty(Object.prototype, name, { value, configurable: true, enumerable: true, writable: true })
  }
}

const remove = (fields: object): void => {
  for (const name of Object.keys(fields)) Reflect.deleteProperty(Object.prototype, name)
}

/** Puts fields on every object until the test has finished. */
export const pollute = (fields: object): void => {
  onTestFinished(() => remove(fields))
  add(fields)
}

/** Runs a function while every object inherits these fields. */
export const polluted = <A>(fields: object, run: () => A): A => {
  add(fields)
  try {
    return run()
  } finally {
    remove(fields)
  }
}
