/** What an object itself says, or a getter of its class. What merged data put on a prototype decides nothing. */
import { afterEach, describe, expect, it } from 'vitest'
import { ownField, ownOrGetter } from '../../src/core/ownFields.js'

class Account {
  level = 9
  get isStaff() {
    return this.level > 5
  }
  set note(_written: unknown) {}
  find() {}
}
class Guest extends Account {}
// what a merge writes, on the prototype of a class or on that of all objects
Object.assign(Account.prototype, { merged: true })
class Hiding extends Account {}
Object.defineProperty(Hiding.prototype, 'isStaff', { value: true })
const bare: object = Object.assign(Object.create(null) as object, { isStaff: true })

afterEach(() => {
  Reflect.deleteProperty(Object.prototype, 'polluted')
})

describe('ownField', () => {
  it.each<[string, object, string, unknown]>([
    ['its own value', { isStaff: true }, 'isStaff', true],
    ['of an object without a prototype', bare, 'isStaff', true],
    ['nothing', {}, 'isStaff', undefined],
    ['not a getter of its class', new Account(), 'isStaff', undefined],
    ['not a method of all objects', {}, 'toString', undefined],
  ])('%s', (_rule, object, name, expected) => {
    expect(ownField(object, name)).toBe(expected)
  })
})

describe('ownOrGetter', () => {
  it.each<[string, object, string, unknown]>([
    ['its own value', { isStaff: true }, 'isStaff', true],
    ['of an object without a prototype', bare, 'isStaff', true],
    ['nothing of an object without a prototype', bare, 'isSuperuser', undefined],
    ['a getter of its class, which sees the object', Object.assign(new Account(), { level: 1 }), 'isStaff', false],
    ['a getter of a class further up', new Guest(), 'isStaff', true],
    ['not a value on the prototype of its class', new Account(), 'merged', undefined],
    ['not a value that hides a getter further up', new Hiding(), 'isStaff', undefined],
    ['not a method of its class', new Account(), 'find', undefined],
    ['not a setter of its class', new Account(), 'note', undefined],
    ['not a getter of all objects', {}, '__proto__', undefined],
  ])('%s', (_rule, object, name, expected) => {
    expect(ownOrGetter(object, name)).toBe(expected)
  })
})

it.each([
  { value: true, configurable: true },
  { get: () => true, configurable: true },
])('a polluted Object.prototype decides nothing: %o', (property) => {
  Object.defineProperty(Object.prototype, 'polluted', property)
  for (const object of [{}, new Account(), new Guest(), []]) {
    expect([ownField(object, 'polluted'), ownOrGetter(object, 'polluted')]).toStrictEqual([undefined, undefined])
  }
})
