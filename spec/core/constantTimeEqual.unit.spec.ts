/** Comparing secrets: correct for any strings, without an exception, whatever their lengths. */
import { constantTimeEqual } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'

describe('A-15 constantTimeEqual', () => {
  it.each([
    { description: 'equal strings', input: ['supersecret', 'supersecret'], expected: true },
    { description: 'both empty', input: ['', ''], expected: true },
    { description: 'the beginning of the other', input: ['supersecret', 'super'], expected: false },
    { description: 'one empty', input: ['', 'a'], expected: false },
    { description: 'another letter case', input: ['Secret', 'secret'], expected: false },
    { description: 'a trailing NUL', input: ['a', 'a\0'], expected: false },
    { description: '256 characters, equal', input: ['a'.repeat(256), 'a'.repeat(256)], expected: true },
    {
      description: '256 characters, the last one different',
      input: ['a'.repeat(256), `${'a'.repeat(255)}b`],
      expected: false,
    },
    { description: '256 and 257 characters', input: ['a'.repeat(256), 'a'.repeat(257)], expected: false },
    { description: '257 characters, equal', input: ['a'.repeat(257), 'a'.repeat(257)], expected: true },
    {
      description: '257 characters, the last one different',
      input: ['a'.repeat(257), `${'a'.repeat(256)}b`],
      expected: false,
    },
    {
      description: 'long, the last one different',
      input: [`${'ab'.repeat(50_000)}a`, `${'ab'.repeat(50_000)}b`],
      expected: false,
    },
    { description: 'shorter than the one that was compared before', input: ['a', 'aaaa'], expected: false },
    { description: 'lengths that differ by 100 000', input: ['a', 'a'.repeat(100_001)], expected: false },
    { description: 'long, equal', input: ['ab'.repeat(50_000), 'ab'.repeat(50_000)], expected: true },
    { description: 'outside of ASCII', input: ['пароль', 'пароль'], expected: true },
    { description: 'composed and decomposed: nothing is normalized (B-21)', input: ['é', 'e\u0301'], expected: false },
    { description: 'equal lone surrogates', input: ['\ud800', '\ud800'], expected: true },
    { description: 'two lone surrogates that are equal in UTF-8', input: ['\ud800', '\udfff'], expected: false },
    { description: 'a lone surrogate and its replacement', input: ['\ud800', '\ufffd'], expected: false },
    {
      description: 'a character and the Latin-1 character of its low byte',
      input: ['\u0161', '\u0061'],
      expected: false,
    },
  ])('$description: $expected', ({ input: [a = '', b = ''], expected }) => {
    expect(constantTimeEqual(a, b)).toBe(expected)
    expect(constantTimeEqual(b, a)).toBe(expected)
  })

  it.each([undefined, null, 0, NaN, true, {}, [], ['a'], Symbol('a'), () => 'a', Buffer.from('a'), new String('a')])(
    'a value that is not a string equals nothing, itself included, without an exception: %o',
    (other) => {
      // Safe: a caller without types could pass this
      const value = other as string
      expect(constantTimeEqual(value, value)).toBe(false)
      expect(constantTimeEqual('a', value)).toBe(false)
      expect(constantTimeEqual(value, 'a')).toBe(false)
      expect(constantTimeEqual(value, '')).toBe(false)
    },
  )
})
