/** What requests share is frozen to its depth; what is no plain data stays as it is. */
import { describe, expect, it } from 'vitest'
import { deepFreeze, frozenCopy } from '../../src/core/freeze.js'

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
    ['what a symbol names', () => ({ [hidden]: { a: 1 } })],
  ])('freezes %s', (_description, make) => {
    const value = deepFreeze(make())
    for (const part of [value, ...Reflect.ownKeys(value).map((key): unknown => Reflect.get(value, key))]) {
      expect(Object.isFrozen(part)).toBe(true)
    }
  })

  it.each([new Account(), new Error('bug'), /a/, new Map(), () => true])('leaves %o as it is', (value) => {
    const { inside } = deepFreeze({ inside: value })
    expect(inside).toBe(value)
    expect(Object.isFrozen(inside)).toBe(false)
  })

  it('takes null', () => {
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

  it('leaves instances of classes as they are', () => {
    const account = new Account()
    expect(frozenCopy({ account }).account).toBe(account)
    expect(Object.isFrozen(account)).toBe(false)
  })
})
