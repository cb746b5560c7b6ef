/** The closed union of failures: which values are failures, and which failures stop a list. */
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'

const { absent, malformed, invalid, expired, forged, insufficient, notFound, throttled, unavailable, raised } =
  AuthError

describe('constructors', () => {
  it.each([
    { description: 'insufficient without a scope', input: insufficient(), expected: { _tag: 'insufficient' } },
    { description: 'insufficient', input: insufficient(['a']), expected: { _tag: 'insufficient', scope: ['a'] } },
    { description: 'throttled', input: throttled(), expected: { _tag: 'throttled' } },
    { description: 'throttled with seconds', input: throttled(0), expected: { _tag: 'throttled', retryAfter: 0 } },
    { description: 'unavailable', input: unavailable(), expected: { _tag: 'unavailable' } },
    {
      description: 'unavailable with seconds',
      input: unavailable(0),
      expected: { _tag: 'unavailable', retryAfter: 0 },
    },
    {
      description: 'raised with what was thrown',
      input: raised(undefined),
      expected: { _tag: 'raised', error: undefined },
    },
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
    { description: 'null', input: null },
    { description: 'text', input: 'absent' },
    { description: 'an object without a tag', input: {} },
    { description: 'a tag that is not a string', input: { _tag: ['absent'] } },
    { description: 'another tag', input: { _tag: 'Absent' } },
    { description: 'A-29 the name of a method that every object inherits', input: { _tag: 'constructor' } },
    { description: 'A-29 __proto__', input: { _tag: '__proto__' } },
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
  it('of a failure without branches is the failure itself', () => {
    expect(AuthError.branchesOf(expired)).toStrictEqual([expired])
  })

  it('decision "Failures": of two equal failures, the first gives the folded failure its fields', () => {
    const both = AuthError.Semigroup.concat(insufficient(['a']), insufficient(['b']))
    expect(both).toMatchObject({ scope: ['a'], branches: [{ scope: ['a'] }, { scope: ['b'] }] })
  })
})
