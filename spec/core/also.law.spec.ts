/** Requirement.Monoid with `also`: levels that add are a monoid, too, in their effect. */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { also, anyOf } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import * as Requirement from '../../src/core/Requirement.js'
import { observe } from '../support/models/arbitraries.js'
import { foldLevels, verdictOf, type Level } from '../support/models/evaluator.js'
import { levels as many, requirementOf, treesOf } from '../support/models/trees.js'
import { leaf, requestOf } from '../support/models/treeRuns.js'
import { occurring, runs } from '../support/runs/samples.js'
import { row } from '../support/models/row.js'

const { concat, empty } = Requirement.Monoid
const levels = many.filter((of) => of.length > 1)

/** The effect of a requirement: decision, verdict, calls of hooks, description. */
const outcomeOf = async (
  of: ReadonlyArray<Level>,
  combine: (all: Requirement.Requirement[]) => Requirement.Requirement,
) => {
  let tag: Requirement.Requirement['_tag'] = 'Inherit'
  const seen = await observe(
    (calls) => {
      const requirement = combine(of.map((level) => requirementOf(level, calls)))
      tag = requirement._tag
      return Requirement.effective(requirement) ?? anyone
    },
    requestOf(treesOf(of)),
  )
  return { _tag: tag, ...seen }
}
const anyone = anyOf([() => 'anyone'])

describe('Requirement.Monoid with also', () => {
  it('empty is the identity on both sides', async () => {
    await fc.assert(
      fc.asyncProperty(levels, async ([level]) => {
        const one = requirementOf(level!, [])
        expect(concat(empty, one)).toBe(one)
        expect(concat(one, empty)).toBe(one)
      }),
    )
  })

  it('is associative: decision, verdict, form of the principal, calls of hooks, description', async () => {
    const added = { yes: 0 }
    await fc.assert(
      fc.asyncProperty(levels, fc.nat(), async (of, where) => {
        const at = 1 + (where % (of.length - 1))
        if (of.slice(1).some((level) => typeof level !== 'string' && 'also' in level)) added.yes++
        const folded = await outcomeOf(of, (all) => all.reduce(concat))
        const fromTheRight = await outcomeOf(of, (all) => all.reduceRight((inner, outer) => concat(outer, inner)))
        const halves = await outcomeOf(of, (all) =>
          concat(all.slice(0, at).reduce(concat), all.slice(at).reduce(concat)),
        )
        expect(fromTheRight).toStrictEqual(folded)
        expect(halves).toStrictEqual(folded)
      }),
      { numRuns: runs(500) },
    )
    expect(added.yes).toBeGreaterThan(occurring(100))
  })

  it('ignores what is outside of the innermost decision that does not add', async () => {
    await fc.assert(
      fc.asyncProperty(levels, async (of) => {
        const from = of.findLastIndex((level) => level !== 'inherit' && (level === 'public' || 'require' in level))
        fc.pre(from > 0)
        const whole = await outcomeOf(of, (all) => all.reduce(concat))
        const below = await outcomeOf(of, (all) => all.slice(from).reduce(concat))
        expect(below).toStrictEqual(whole)
      }),
      { numRuns: runs(300) },
    )
  })

  it('does not change its arguments', () => {
    fc.assert(
      fc.property(levels, (of) => {
        const all = of.map((level) => Object.freeze(requirementOf(level, [])))
        for (const one of all) if (one._tag === 'Also') Object.freeze(one.authenticators)
        expect(() => all.reduce(concat)).not.toThrow()
      }),
    )
  })
})

describe('effective', () => {
  const required = leaf('a')
  const [first, second, third] = [{ also: leaf('b') }, { also: leaf('c') }, { also: leaf('d') }]

  it.each<{ description: string; input: ReadonlyArray<Level>; expected: unknown }>([
    row('require, then also', [{ require: required }, first], { inherited: 'a', own: 'b' }),
    row('public, then also', ['public', first], { inherited: undefined, own: 'b' }),
    row('inherit, then also', [first], { inherited: undefined, own: 'b' }),
    row('only also', ['inherit', first], { inherited: undefined, own: 'b' }),
    row('also, then also', [first, second], { inherited: { inherited: undefined, own: 'b' }, own: 'c' }),
    row('require, then three that add', [{ require: required }, first, second, third], {
      inherited: { inherited: { inherited: 'a', own: 'b' }, own: 'c' },
      own: 'd',
    }),
    row('also, then require: replaces', [first, { require: required }], 'a'),
    row('also, then public, then also: public is a decision', [{ require: required }, first, 'public', second], {
      inherited: undefined,
      own: 'c',
    }),
  ])('truth table: $description', async ({ input, expected }) => {
    const { result } = await outcomeOf(input, (all) => all.reduce(concat))
    expect(result).toStrictEqual(E.right(expected))
    const log = { calls: [], reached: [], late: false }
    expect(verdictOf(foldLevels(input)!, log)).toStrictEqual({ tag: 'pass', principal: expected })
  })

  it('of inherit and of public: anyone may call', () => {
    for (const one of [Requirement.inherit, Requirement.open, concat(Requirement.inherit, Requirement.open)]) {
      expect(Requirement.effective(one)).toBeUndefined()
    }
    expect(concat(also(anyone), Requirement.open)).toBe(Requirement.open)
  })
})
