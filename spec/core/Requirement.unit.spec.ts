/** The constructors of a decision; the monoid is in also.law.spec.ts. */
import { either as E } from 'fp-ts'
import { also, withAuth } from 'koa-with-auth'
import { fromFunction } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { guardFor } from '../../src/koa/guard.js'
import { mockRequest } from 'koa-with-auth/testing'

const a = fromFunction(() => 'anna')
const b = fromFunction(() => 'berta')
const { concat } = Requirement.Monoid
const passing = (requirement: Requirement.Requirement) =>
  Requirement.effective(requirement)?.evaluate(mockRequest()) ?? 'anybody'

describe('Requirement', () => {
  it('a guard has the decision that it enforces', () => {
    expect(withAuth(a).requirement).toStrictEqual(Requirement.guardedBy(a))
    expect(withAuth(null).requirement).toBe(Requirement.open)
    expect([Requirement.open, Requirement.inherit]).toStrictEqual([{ _tag: 'Public' }, { _tag: 'Inherit' }])
    expect(Reflect.get(withAuth(a), 'levels')).toStrictEqual(['operation'])
  })

  it('5.5.1 a list becomes one authenticator', () => {
    const { requirement } = withAuth([a, a])
    expect(requirement._tag === 'Require' && requirement.authenticator.description._tag).toBe('AnyOf')
  })
})

describe('also', () => {
  it('is not applied before it is combined with an outer level', () => {
    expect(also(a)).toStrictEqual({ _tag: 'Also', authenticators: [a] })
    expect(passing(also([a, b]))).toStrictEqual(E.right({ inherited: undefined, own: 'anna' }))
    expect(concat(Requirement.inherit, also(a))).toStrictEqual(also(a))
    expect(concat(also(a), also(b))).toStrictEqual({ _tag: 'Also', authenticators: [a, b] })
    expect(concat(also(a), Requirement.inherit)).toStrictEqual(also(a))
    expect(concat(also(a), Requirement.open)).toBe(Requirement.open)
  })

  it('without authenticators is a TypeError', () => {
    // Safe: the types do not allow this
    const nothing: Requirement.Requirement = { _tag: 'Also', authenticators: [] as never }
    expect(() => passing(nothing)).toThrow('a requirement: also(...) holds no authenticator')
    expect(() => withAuth(nothing as never)).toThrow('withAuth(also(...)): also(...) holds no authenticator')
    expect(() => concat(also(a), nothing)).toThrow('a requirement: also(...) holds no authenticator')
  })
})

describe('an invalid requirement, which would make an operation public,', () => {
  const strange: ReadonlyArray<readonly [what: string, requirement: object]> = [
    ['of another version', { _tag: 'RequireSoon' }],
    ['without a tag', {}],
    ['with a tag in another letter case', { _tag: 'require', authenticator: undefined }],
    ['without an authenticator', { _tag: 'Require' }],
    ['with a function without a description', { _tag: 'Require', authenticator: () => true }],
    ['that adds no authenticator', { _tag: 'Also', authenticators: [] }],
    ['that adds undefined', { _tag: 'Also', authenticators: [undefined] }],
    ['that adds null', { _tag: 'Also', authenticators: null }],
    ['that adds an authenticator and a hole', { _tag: 'Also', authenticators: [a, undefined] }],
    ['that adds a plain function, and an authenticator', { _tag: 'Also', authenticators: [() => true, a] }],
  ]

  it.each(strange)('%s: is a TypeError', (_what, given) => {
    // Safe: JavaScript can write this
    const requirement = given as Requirement.Requirement
    expect(() => Requirement.effective(requirement)).toThrow(TypeError)
    expect(() => guardFor(requirement, { levels: [] })).toThrow(TypeError)
    for (const outer of [Requirement.inherit, Requirement.open, Requirement.guardedBy(a), also(a)]) {
      expect(() => Requirement.effective(concat(outer, requirement))).toThrow(TypeError)
    }
    for (const inner of [Requirement.inherit, also(b)]) {
      expect(() => Requirement.effective(concat(requirement, inner))).toThrow(TypeError)
    }
  })

  it.each([
    { authenticators: undefined },
    { authenticators: {} },
    { authenticators: [null] },
    { authenticators: [() => true] },
    { authenticators: { length: 1 } },
  ])('withAuth of an Also that was made by hand is a TypeError: %j', ({ authenticators }) => {
    expect(() => withAuth({ _tag: 'Also', authenticators } as never)).toThrow(TypeError)
  })
})
