/** The digest under which `remembered` keeps a principal: two different credentials never have the same. */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { credentialKey } from '../../src/guesses/remembered.js'

const secret = randomBytes(32).toString('base64')
const keyOf = (sent: unknown): string => credentialKey(secret, '0o', sent)

// Few values, many of them similar when they are serialized
const values: ReadonlyArray<readonly [description: string, value: unknown]> = [
  ['an empty string', ''],
  ['a string', 'a'],
  ['another string', 'b'],
  ['a longer string', 'ab'],
  ['a string of a digit', '1'],
  ['a string that looks like a written one', 's1:a'],
  ['a lone surrogate', '\ud800'],
  ['another lone surrogate', '\udfff'],
  ['the replacement of both in UTF-8', '\ufffd'],
  ['a number', 1],
  ['another number', 2],
  ['a bigint', 1n],
  ['another bigint', 2n],
  ['an empty array', []],
  ['an array of a string', ['a']],
  ['an array of another', ['b']],
  ['an array of two strings', ['a', 'b']],
  ['an array of the two in one', ['ab']],
  ['an array of two, the first one longer', ['aa', 'b']],
  ['an array of two, the second one longer', ['a', 'ab']],
  ['an array in an array', [['a'], 'b']],
  ['the other of two in an array', ['a', ['b']]],
  ['an array of two, the first one with marks of another', ['a;string:b', 'c']],
  ['an array of two, the second one with marks of another', ['a', 'b;string:c']],
  ['an array of null', [null]],
  ['an array of null and a string', [null, 'a']],
  ['an array of a string and null', ['a', null]],
  ['an array of undefined', [undefined]],
  ['an array of true', [true]],
  ['an array of false', [false]],
  ['bytes', Buffer.from([1])],
  ['other bytes', Buffer.from([2])],
  ['bytes above 127', Buffer.from([0xff])],
  ['other bytes above 127', Buffer.from([0xfe])],
  ['the UTF-8 of the first', Buffer.from('\u00ff')],
  ['an empty object', {}],
  ['an object', { a: 'a' }],
  ['an object with another value', { a: 'b' }],
  ['an object with another name', { b: 'a' }],
  ['an object with a number', { a: 1 }],
  ['an object with another number', { a: 2 }],
  ['an object with true', { a: true }],
  ['an object with false', { a: false }],
  ['an object with null', { a: null }],
  ['an object with undefined', { a: undefined }],
  ['an object with two names', { a: 'a', b: 'b' }],
  ['an object in an object', { a: { a: 'a' }, b: 'b' }],
  ['two objects, the second one nested', { a: { a: 'a', b: 'b' } }],
  ['a session', { toJSON: () => ({ user: 'anna' }) }],
  ['the session of another user', { toJSON: () => ({ user: 'ben' }) }],
]

describe('the key of a remembered credential', () => {
  it('M-03 is different for each of these', () => {
    const descriptions = new Map<string, string>()
    for (const [description, value] of values) {
      const key = keyOf(value)
      expect(descriptions.get(key), `${description} has the key of`).toBeUndefined()
      descriptions.set(key, description)
    }
  })

  it('differs for different bytes, and is the same for equal bytes, however they are held', () => {
    expect(keyOf(new Uint8Array([1]))).toBe(keyOf(Buffer.from([1])))
    expect(keyOf(new Uint8Array([1]))).not.toBe(keyOf(new Uint8Array([2])))
  })

  it('is the same for an object without a prototype', () => {
    expect(keyOf(Object.assign(Object.create(null), { a: 1 }))).toBe(keyOf({ a: 1 }))
  })

  const data = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom<unknown>('', 'a', 'b', '1', ':', ';', 's1:a', 1, 2, 11, 1n, true, false, null, undefined),
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'ab', '1'), tie('value'), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value
  const credential = data.filter((sent) => typeof sent !== 'boolean' && sent !== undefined && sent !== null)

  it('of plain data is the same exactly if they are equal', () => {
    fc.assert(
      fc.property(credential, credential, (one, other) => {
        expect(keyOf(structuredClone(one))).toBe(keyOf(one))
        if (!isDeepStrictEqual(one, other)) expect(keyOf(one)).not.toBe(keyOf(other))
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['a', 'b'],
    ['0o', '0x'],
    ['1o', '11o'],
  ])('differs between kinds: %s and %s', (one, other) => {
    expect(credentialKey(secret, one, '1')).not.toBe(credentialKey(secret, other, '1'))
  })

  it('differs for another secret', () => {
    expect(credentialKey(randomBytes(32).toString('base64'), '0o', 'a')).not.toBe(keyOf('a'))
  })
})

describe('a credential that would have the same key in every request is refused', () => {
  it.each<[string, unknown]>([
    ['true', true],
    ['false', false],
    ['null', null],
    ['undefined', undefined],
    ['a symbol', Symbol('a')],
    ['a function', () => 'a'],
    ['a Map', new Map([['a', 1]])],
    ['an instance of a class', new (class Token {})()],
    ['an object whose toJSON shows only a part', { req: {}, toJSON: () => ({}) }],
    ['an array with a function', [() => 'a']],
  ])('%s', (_description, sent) => {
    expect(() => keyOf(sent)).toThrow(TypeError)
    expect(() => keyOf(sent)).toThrow('must be a string or plain data')
  })
})
