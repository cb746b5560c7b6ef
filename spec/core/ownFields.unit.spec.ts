/** The own fields of an object, and getters of its class. What a merge put on a prototype does not count. */
import { afterEach, describe, expect, it } from 'vitest'
import { ownField, ownOrGetter } from '../../src/core/data.js'

class Account {
  level = 9
  get isStaff() {
    return this.level > 5
  }
  set note(_written: unknown) {}
  find() {}
}
class Guest extends Account {}
// What a merge writes, on the prototype of a class or of all objects
Object.assign(Account.prototype, { merged: true })
class Hiding extends Account {}
Object.defineProperty(Hiding.prototype, 'isStaff', { value: true })
const bare: object = Object.assign(Object.create(null) as object, { isStaff: true })

afterEach(() => {
  Reflect.deleteProperty(Object.prototype, 'polluted')
})

describe('ownField', () => {
  it.each<[string, object, string, unknown]>([
    ['finds its own value', { isStaff: true }, 'isStaff', true],
    ['finds a value of an object without a prototype', bare, 'isStaff', true],
    ['nothing', {}, 'isStaff', undefined],
    ['ignores a getter of its class', new Account(), 'isStaff', undefined],
    ['ignores a method that all objects inherit', {}, 'toString', undefined],
  ])('%s', (_rule, object, name, expected) => {
    expect(ownField(object, name)).toBe(expected)
  })
})

describe('ownOrGetter', () => {
  it.each<[string, object, string, unknown]>([
    ['finds its own value', { isStaff: true }, 'isStaff', true],
    ['finds a value of an object without a prototype', bare, 'isStaff', true],
    ['finds nothing in an object without a prototype', bare, 'isSuperuser', undefined],
    [
      'finds a getter of its class, which sees the object',
      Object.assign(new Account(), { level: 1 }),
      'isStaff',
      false,
    ],
    ['finds a getter of a superclass', new Guest(), 'isStaff', true],
    ['ignores a value on the prototype of its class', new Account(), 'merged', undefined],
    ['ignores a value that hides a getter of a superclass', new Hiding(), 'isStaff', undefined],
    ['ignores a method of its class', new Account(), 'find', undefined],
    ['ignores a setter of its class', new Account(), 'note', undefined],
    ['ignores a getter that all objects inherit', {}, '__proto__', undefined],
  ])('%s', (_rule, object, name, expected) => {
    expect(ownOrGetter(object, name)).toBe(expected)
  })
})

it.each([
  { value: true, configurable: true },
  { get: () => true, configurable: true },
])('ownField and ownOrGetter ignore a polluted Object.prototype: %o', (property) => {
  Object.defineProperty(Object.prototype, 'polluted', property)
  for (const object of [{}, new Account(), new Guest(), []]) {
    expect([ownField(object, 'polluted'), ownOrGetter(object, 'polluted')]).toStrictEqual([undefined, undefined])
  }
})
