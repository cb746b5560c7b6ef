/** What requests share is frozen deeply. Instances of classes are not changed. */
import { describe, expect, it } from 'vitest'
import { deepFreeze, frozenCopy } from '../../src/core/data.js'

class Account {
  name = 'anna'
}
const hidden = Symbol('hidden')
const bare = () => Object.assign(Object.create(null) as object, { a: { b: 1 } })

describe('deepFreeze', () => {
  it.each([
    ['an object', () => ({ a: { b: 1 } })],
    ['an array', () => [[1], { a: 1 }]],
    ['an object without a prototype', bare],
    ['a property whose key is a symbol', () => ({ [hidden]: { a: 1 } })],
  ])('freezes %s', (_description, make) => {
    const value = deepFreeze(make())
    for (const part of [value, ...Reflect.ownKeys(value).map((key): unknown => Reflect.get(value, key))]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  it.each([new Account(), new Error('bug'), /a/, new Map(), () => true])('does not change %o', (value) => {
    const { inside } = deepFreeze({ inside: value })
    expect(inside).toBe(value)
    expect(Object.isFrozen(inside)).toBe(false)
  })

  it('accepts null', () => {
    expect(deepFreeze({ a: null })).toStrictEqual({ a: null })
  })
})

describe('frozenCopy', () => {
  it.each([
    ['an object', { a: { b: 1 } }],
    ['an array', [[1], { a: 1 }]],
    ['null', null],
  ])('of %s is frozen, and the original is not', (_description, original) => {
    const copy = frozenCopy(original)
    expect(copy).toStrictEqual(original)
    expect([Object.isFrozen(copy), Object.isFrozen(original)]).toStrictEqual([true, original === null])
  })

  it('of an object without a prototype has its properties', () => {
    expect(frozenCopy(bare())).toEqual({ a: { b: 1 } })
  })

  it('does not change instances of classes', () => {
    const account = new Account()
    expect(frozenCopy({ account }).account).toBe(account)
    expect(Object.isFrozen(account)).toBe(false)
  })
})
