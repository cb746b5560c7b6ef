/** Evidence is a monoid, and it is beside a Right without being seen in it. */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  accept,
  evidence,
  evidenceOf,
  givenWith,
  merge,
  nothingSent,
  plainEvidence,
  withEvidence,
  type Evidence,
} from '../../src/core/Evidence.js'
import { End } from '../../src/core/ends.js'

const source = fc.nat(9).map((at) => ({ endFor: () => new End(at), at }))
const objects = fc.option(fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.nat(3), { noNullPrototype: false }), {
  nil: undefined,
})
const made: fc.Arbitrary<Evidence> = fc.record({
  accepted: fc.array(source, { maxLength: 2 }),
  objects,
  charges: fc.array(
    fc.constant(async () => ({})),
    { maxLength: 2 },
  ),
  isAnonymous: fc.boolean(),
  isRecovered: fc.boolean(),
  isCached: fc.boolean(),
})
const any = fc.oneof(made, fc.constant(nothingSent), fc.constant(plainEvidence))
const shown = ({ objects, ...rest }: Evidence) => ({ ...rest, objects: objects && { ...objects } })

describe('merge', () => {
  it('is associative', () => {
    fc.assert(
      fc.property(any, any, any, (a, b, c) => {
        expect(shown(merge(merge(a, b), c))).toStrictEqual(shown(merge(a, merge(b, c))))
      }),
    )
  })

  it('has nothingSent as its identity', () => {
    fc.assert(
      fc.property(any, (a) => {
        expect(merge(nothingSent, a)).toBe(a)
        expect(merge(a, nothingSent)).toBe(a)
      }),
    )
  })

  it('is anonymous if both are, cached or recovered if one is, and of one name the later object counts', () => {
    expect(merge(nothingSent, nothingSent).isAnonymous).toBe(true)
    const [cached, recovered] = [evidence({ isCached: true }), evidence({ isRecovered: true })]
    for (const both of [merge(cached, recovered), merge(recovered, cached)])
      expect(both).toMatchObject({ isCached: true, isRecovered: true })
    expect(merge({ ...nothingSent, isCached: true }, plainEvidence).isAnonymous).toBe(false)
    const [one, other] = [
      { ...plainEvidence, objects: { a: 1, b: 1 } },
      { ...plainEvidence, objects: { b: 2 } },
    ]
    expect({ ...merge(one, other).objects }).toStrictEqual({ a: 1, b: 2 })
  })
})

describe('beside a Right', () => {
  it('is what was given, and the Right equals any other', () => {
    fc.assert(
      fc.property(any, made, (own, more) => {
        const right = accept('anna', own)
        expect(right).toStrictEqual(E.right('anna'))
        expect(Reflect.ownKeys(right)).toStrictEqual(Reflect.ownKeys(E.right('anna')))
        expect(evidenceOf(right)).toBe(own)
        expect(shown(evidenceOf(withEvidence(right, more)))).toStrictEqual(shown(merge(own, more)))
        expect(evidenceOf(right)).toBe(own)
      }),
    )
  })

  it('is shared by all of which nothing is known', () => {
    expect(givenWith(accept('anna', plainEvidence))).toBeUndefined()
    expect(evidenceOf(E.right('anna'))).toBe(plainEvidence)
  })
})
