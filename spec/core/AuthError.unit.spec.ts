/** The closed union of failures: which values are failures, and which failures stop a list. */
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { because, leavesAnonymous, outcomeOf, refusedObject } from '../../src/core/AuthError.js'
import { row } from '../support/models/row.js'

const { absent, malformed, invalid, expired, forged, insufficient, notFound, throttled, unavailable, raised } =
  AuthError

describe('constructors', () => {
  it.each([
    row('insufficient without a scope', insufficient(), { _tag: 'insufficient' }),
    row('insufficient', insufficient(['a']), { _tag: 'insufficient', scope: ['a'] }),
    row('invalid with a reason', invalid({ code: 'c' }), { _tag: 'invalid', code: 'c' }),
    row('an object that is not there', refusedObject('note', 404), { _tag: 'notFound', object: 'note' }),
    row('an object of another user', refusedObject('note', 403), { _tag: 'insufficient', object: 'note' }),
    row('throttled', throttled(), { _tag: 'throttled' }),
    row('throttled with seconds', throttled(0), { _tag: 'throttled', retryAfter: 0 }),
    row('unavailable', unavailable(), { _tag: 'unavailable' }),
    row('unavailable with seconds', unavailable(0), { _tag: 'unavailable', retryAfter: 0 }),
    row('raised with what was thrown', raised(undefined), { _tag: 'raised', error: undefined }),
  ])('$description', ({ input, expected }) => {
    expect(input).toStrictEqual(expected)
    expect(Object.isFrozen(input)).toBe(true)
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

describe('stops, and the outcome in a record', () => {
  it.each([
    ...[absent, malformed, invalid, expired].map((error) => row(error._tag, error, [false, 'refused'])),
    ...[forged, insufficient(), notFound].map((error) => row(error._tag, error, [false, 'forbidden'])),
    ...[throttled(), unavailable(), raised(1)].map((error) => row(error._tag, error, [true, error._tag])),
  ])('$description: $expected', ({ input, expected }) => {
    expect([AuthError.stops(input), outcomeOf(input)]).toStrictEqual(expected)
  })
})

describe('leavesAnonymous', () => {
  const unknown = because(invalid, 'user')
  it.each([
    row('nothing was sent', absent, true),
    row('a session of an unknown user', unknown, true),
    row('such a session, and nothing else', { ...unknown, branches: [unknown, absent] }, true),
    row('such a session, and a bad key', { ...unknown, branches: [unknown, invalid] }, false),
    row('beside a member not asked', { ...unknown, branches: [unknown, { ...absent, skipped: true }] }, false),
    row('a bad key', invalid, false),
  ])('$description: $expected', ({ input, expected }) => {
    expect(leavesAnonymous(input)).toBe(expected)
  })
})

describe('branchesOf', () => {
  it('decision "Failures": of two equal failures, the first gives the folded failure its fields', () => {
    const both = AuthError.Semigroup.concat(insufficient(['a']), insufficient(['b']))
    expect([AuthError.Ord.compare(absent, invalid), AuthError.Ord.compare(invalid, absent)]).toEqual([-1, 1])
    expect(both).toMatchObject({ scope: ['a'], branches: [{ scope: ['a'] }, { scope: ['b'] }] })
  })
})
