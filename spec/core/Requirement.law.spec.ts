/** Requirement: a monoid in which the innermost decision wins (spec 5.6). */
import fc, { type Arbitrary } from 'fast-check'
import { fromFunction } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'

const { Monoid, inherit, open, guardedBy } = Requirement
const { concat, empty } = Monoid

const required = ['a', 'b', 'c'].map((name) => guardedBy(fromFunction(() => name)))
const requirement: Arbitrary<Requirement.Requirement> = fc.constantFrom(inherit, open, ...required)

describe('Requirement.Monoid', () => {
  it('empty is the identity on both sides', () => {
    fc.assert(
      fc.property(requirement, (a) => {
        expect(concat(empty, a)).toBe(a)
        expect(concat(a, empty)).toBe(a)
      }),
    )
  })

  it('is associative', () => {
    fc.assert(
      fc.property(requirement, requirement, requirement, (a, b, c) => {
        expect(concat(concat(a, b), c)).toBe(concat(a, concat(b, c)))
      }),
    )
  })

  it('5.6 whatever the number of levels, the innermost decision wins', () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 6 }), (levels) => {
        const effective = levels.reduce(concat, empty)
        expect(effective).toBe(levels.findLast(({ _tag }) => _tag !== 'Inherit') ?? inherit)
      }),
    )
  })

  const [a, b] = required as [Requirement.Requirement, Requirement.Requirement]
  it.each([
    { description: 'inherit, then inherit', outer: inherit, inner: inherit, expected: inherit },
    { description: 'inherit, then public', outer: open, inner: inherit, expected: open },
    { description: 'inherit, then require', outer: a, inner: inherit, expected: a },
    { description: '5.6.4 require, then public', outer: a, inner: open, expected: open },
    { description: 'public, then public', outer: open, inner: open, expected: open },
    { description: 'public, then inherit', outer: inherit, inner: open, expected: open },
    { description: 'require, then inherit', outer: inherit, inner: b, expected: b },
    { description: '5.6.3 public, then require', outer: open, inner: b, expected: b },
    { description: '5.6.2 require, then require: replaces, never adds', outer: a, inner: b, expected: b },
  ])('truth table: $description', ({ outer, inner, expected }) => {
    expect(concat(outer, inner)).toBe(expected)
  })
})
