/** The constructors of a decision; the monoid is in Requirement.law.spec.ts. */
import { either as E } from 'fp-ts'
import { also, fromFunction, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { mockRequest } from 'koa-with-auth/testing'

const a = fromFunction(() => 'anna')
const b = fromFunction(() => 'berta')
const { concat } = Requirement.Monoid
const passing = (requirement: Requirement.Requirement) =>
  Requirement.effective(requirement)?.evaluate(mockRequest()) ?? 'anybody'

describe('Requirement', () => {
  it('a guard carries what it decided', () => {
    expect(withAuth(a).requirement).toStrictEqual(Requirement.guardedBy(a))
    expect(withAuth(null).requirement).toBe(Requirement.open)
    expect([Requirement.open, Requirement.inherit]).toStrictEqual([{ _tag: 'Public' }, { _tag: 'Inherit' }])
    expect(Reflect.get(withAuth(a), 'levels')).toStrictEqual(['operation'])
  })

  it('5.5.1 of a list: one authenticator of all', () => {
    const { requirement } = withAuth([a, a])
    expect(requirement._tag === 'Require' && requirement.authenticator.description._tag).toBe('AnyOf')
  })
})

describe('also', () => {
  it('keeps what it adds until it is known to what', () => {
    expect(also(a)).toStrictEqual({ _tag: 'Also', authenticators: [a] })
    expect(passing(also([a, b]))).toStrictEqual(E.right({ inherited: undefined, own: 'anna' }))
    expect(concat(Requirement.inherit, also(a))).toStrictEqual(also(a))
    expect(concat(also(a), also(b))).toStrictEqual({ _tag: 'Also', authenticators: [a, b] })
    expect(concat(also(a), Requirement.inherit)).toStrictEqual(also(a))
    expect(concat(also(a), Requirement.open)).toBe(Requirement.open)
  })

  it.each<[string, Requirement.Requirement, unknown]>([
    ['to nothing', also(b), { inherited: undefined, own: 'berta' }],
    ['to nothing, twice', concat(also(a), also(b)), { inherited: { inherited: undefined, own: 'anna' }, own: 'berta' }],
    ['to public', concat(Requirement.open, also(b)), { inherited: undefined, own: 'berta' }],
    ['to a demand', concat(Requirement.guardedBy(a), also(b)), { inherited: 'anna', own: 'berta' }],
  ])('%s: who is let in', (_, requirement, principal) => {
    expect(passing(requirement)).toStrictEqual(E.right(principal))
  })

  it('of nothing is nothing', () => {
    // Safe: what types do not allow
    const nothing: Requirement.Requirement = { _tag: 'Also', authenticators: [] as never }
    expect(passing(nothing)).toBe('anybody')
    expect(() => withAuth(nothing as never)).toThrow('withAuth(also(...)): also(...) holds no authenticator')
  })
})
