/** AuthError: a total order by strength, and the semigroup that folds the failures of a list. */
import fc from 'fast-check'
import { AuthError } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { authError } from '../support/models/arbitraries.js'

const { Semigroup, branchesOf, Ord, stops } = AuthError
const { concat } = Semigroup

describe('AuthError.Ord is a total order', () => {
  it('is reflexive, antisymmetric up to strength, transitive and total', () => {
    fc.assert(
      fc.property(authError, authError, authError, (a, b, c) => {
        expect(Ord.equals(a, a)).toBe(true)
        expect(Ord.compare(a, b)).toBe(-Ord.compare(b, a) + 0)
        expect(Ord.compare(a, b) === 0).toBe(Ord.equals(a, b))
        if (Ord.compare(a, b) <= 0 && Ord.compare(b, c) <= 0) {
          expect(Ord.compare(a, c)).toBeLessThanOrEqual(0)
        }
      }),
    )
  })

  it('decision "Failures": absent < malformed < invalid < expired < forged < insufficient < throttled = unavailable = raised', () => {
    const { absent, malformed, invalid, expired, forged, insufficient, throttled, unavailable, raised } = AuthError
    const ascending = [absent, malformed, invalid, expired, forged, insufficient(), unavailable()]
    ascending.forEach((weaker, at) => {
      for (const stronger of ascending.slice(at + 1)) expect(Ord.compare(weaker, stronger)).toBe(-1)
    })
    expect(Ord.equals(unavailable(), raised(null))).toBe(true)
    expect(Ord.equals(throttled(), unavailable())).toBe(true)
  })
})

describe('AuthError.Semigroup', () => {
  it('is associative, branches included', () => {
    fc.assert(
      fc.property(authError, authError, authError, (a, b, c) => {
        expect(concat(concat(a, b), c)).toStrictEqual(concat(a, concat(b, c)))
      }),
      { numRuns: 1000 },
    )
  })

  it('has the tag of the strongest; of equals, that of the first', () => {
    fc.assert(
      fc.property(authError, authError, (a, b) => {
        fc.pre(!stops(a))
        const { branches: _, ...expected } = Ord.compare(b, a) > 0 ? b : a
        expect(concat(a, b)).toMatchObject(expected)
      }),
    )
  })

  it('keeps every branch, in the order that they were tried', () => {
    fc.assert(
      fc.property(authError, authError, (a, b) => {
        fc.pre(!stops(a))
        expect(branchesOf(concat(a, b))).toStrictEqual([...branchesOf(a), ...branchesOf(b)])
      }),
    )
  })

  it('drops what comes after a failure that stops, because it was never tried', () => {
    fc.assert(
      fc.property(authError, authError, (a, b) => {
        fc.pre(stops(a))
        expect(concat(a, b)).toBe(a)
      }),
    )
  })

  it('does not change its arguments', () => {
    fc.assert(
      fc.property(authError, authError, (a, b) => {
        const [before, after] = [structuredClone(a), structuredClone(b)]
        concat(a, b)
        expect([a, b]).toEqual([before, after])
      }),
    )
  })
})
