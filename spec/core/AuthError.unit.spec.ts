/** The closed union of failures: which values are failures, and which failures stop a list. */
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { row } from '../support/models/row.js'

const { absent, malformed, invalid, expired, forged, insufficient, notFound, throttled, unavailable, raised } =
  AuthError

describe('constructors', () => {
  it.each([
    row('insufficient without a scope', insufficient(), { _tag: 'insufficient' }),
    row('insufficient', insufficient(['a']), { _tag: 'insufficient', scope: ['a'] }),
    row('throttled', throttled(), { _tag: 'throttled' }),
    row('throttled with seconds', throttled(0), { _tag: 'throttled', retryAfter: 0 }),
    row('unavailable', unavailable(), { _tag: 'unavailable' }),
    row('unavailable with seconds', unavailable(0), { _tag: 'unavailable', retryAfter: 0 }),
    row('raised with what was thrown', raised(undefined), { _tag: 'raised', error: undefined }),
  ])('$description', ({ input, expected }) => {
    expect(input).toStrictEqual(expected)
  })
})

describe('is', () => {
  it.each([
    absent,
    malformed,
    invalid,
    expired,
    forged,
    insufficient(),
    notFound,
    throttled(),
    unavailable(),
    raised(1),
  ])('accepts %o', (error) => {
    expect(AuthError.is(error)).toBe(true)
  })

  it.each([
    row('null', null),
    row('text', 'absent'),
    row('an object without a tag', {}),
    row('a tag that is not a string', { _tag: ['absent'] }),
    row('another tag', { _tag: 'Absent' }),
    row('A-29 the name of a method that every object inherits', { _tag: 'constructor' }),
    row('A-29 __proto__', { _tag: '__proto__' }),
  ])('refuses $description', ({ input }) => {
    expect(AuthError.is(input)).toBe(false)
  })
})

describe('stops', () => {
  it.each([
    ...[absent, malformed, invalid, expired, forged, insufficient(), notFound].map((input) => ({
      input,
      expected: false,
    })),
    ...[throttled(), unavailable(), raised(1)].map((input) => ({ input, expected: true })),
  ])('$input._tag: $expected', ({ input, expected }) => {
    expect(AuthError.stops(input)).toBe(expected)
  })
})

describe('branchesOf', () => {
  it('decision "Failures": of two equal failures, the first gives the folded failure its fields', () => {
    const both = AuthError.Semigroup.concat(insufficient(['a']), insufficient(['b']))
    expect(both).toMatchObject({ scope: ['a'], branches: [{ scope: ['a'] }, { scope: ['b'] }] })
  })
})
