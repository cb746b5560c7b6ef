/** The constructors of a decision; the monoid is in spec/laws. */
import { fromCallable, Requirement, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'

const a = fromCallable(() => 'anna')

describe('Requirement', () => {
  it('a guard carries what it decided', () => {
    expect(withAuth(a).requirement).toStrictEqual(Requirement.require(a))
    expect(withAuth(null).requirement).toBe(Requirement.open)
  })

  it('5.5.1 of a list: one authenticator of all', () => {
    const { requirement } = withAuth([a, a])
    expect(requirement._tag === 'Require' && requirement.authenticator.description._tag).toBe('AnyOf')
  })
})
