/**
 * The readers of a description agree with the guard: what can be sent, what was sent, and whether anonymous callers are
 * admitted.
 */
import { either as E } from 'fp-ts'
import fc from 'fast-check'
import { authenticator, Challenge, sessionAuth, type Description } from 'koa-with-auth'
import { fromFunction } from 'koa-with-auth/fp'
import { describe, expect, it } from 'vitest'
import { isSent, leaves, admitsAnonymous } from '../../src/core/Description.js'
import { alternativesOf } from '../../src/core/Alternative.js'
import { leavesOf, welcomes, type Tree } from '../support/models/evaluator.js'
import { mockRequest } from 'koa-with-auth/testing'
import { build, fieldsOf, tree } from '../support/models/trees.js'
import { requestOf, withLeaves } from '../support/models/treeRuns.js'
import { occurring, runs } from '../support/runs/samples.js'
import { row } from '../support/models/row.js'

// Every valid credential is allowed
const willing = tree.map(function allow(of: Tree): Tree {
  if (of.node === 'leaf') return { ...of, outcome: 'pass', sent: 'value' }
  if ('members' in of) return { ...of, members: of.members.map(allow) }
  const member = allow(of.member)
  if (of.node === 'authorize') return { ...of, member, allowed: true }
  return of.node === 'requireScopes' ? { ...of, member, granted: of.scopes } : { ...of, member }
})

// The disjunctive normal form as sets of leaves, written independently
const byHand = (of: Tree): ReadonlyArray<ReadonlyArray<string>> => {
  if (of.node === 'leaf') return [[of.id]]
  if (of.node === 'optional' || of.node === 'lenient') return [...byHand(of.member), []]
  if (!('members' in of)) return byHand(of.member)
  if (of.node !== 'allOf') return of.members.flatMap(byHand)
  let all: ReadonlyArray<ReadonlyArray<string>> = [[]]
  for (const member of of.members) all = all.flatMap((some) => byHand(member).map((more) => [...some, ...more]))
  return all
}

// Scopes that are required around a leaf
const scopesAbove = (of: Tree, id: string): ReadonlySet<string> => {
  if (of.node === 'leaf') return new Set()
  const below = ('members' in of ? of.members : [of.member]).filter((one) =>
    leavesOf(one).some((each) => each.id === id),
  )
  const own = of.node === 'requireScopes' ? of.scopes : []
  return new Set([...own, ...below.flatMap((one) => [...scopesAbove(one, id)])])
}

/** Whether a tree passes for a client that sends only these. */
const passesWith = async (of: Tree, ids: ReadonlyArray<string>): Promise<boolean> => {
  const sending = withLeaves(of, (each) => (ids.includes(each.id) ? each : { ...each, sent: 'nothing' }))
  return E.isRight(await build(of).evaluate(requestOf([sending])))
}

const contains = (ids: ReadonlyArray<string>, alternatives: ReadonlyArray<ReadonlyArray<string>>): boolean =>
  alternatives.some((one) => one.every((id) => ids.includes(id)))

const small = willing.filter((of) => byHand(of).length <= 24)

describe('alternativesOf', () => {
  it('is the disjunctive normal form, each leaf with the scopes around it', () => {
    fc.assert(
      fc.property(tree, (of) => {
        fc.pre(byHand(of).length <= 500)
        const { description } = build(of)
        const ids = new Map(leaves(description).map((leaf, at) => [leaf, leavesOf(of)[at]!.id]))
        const found = alternativesOf(description)
        expect(found.map(({ demands }) => demands.map(({ leaf }) => ids.get(leaf)))).toStrictEqual(byHand(of))
        for (const { leaf, scopes } of found.flatMap(({ demands }) => demands)) {
          expect(new Set(scopes)).toStrictEqual(scopesAbove(of, ids.get(leaf)!))
          expect(new Set(scopes).size).toBe(scopes.length)
        }
      }),
      { numRuns: runs(500) },
    )
  })

  it('each alternative passes alone, and is refused without any of its members', async () => {
    const refused = { times: 0 }
    await fc.assert(
      fc.asyncProperty(small, async (of) => {
        const alternatives = byHand(of)
        for (const alternative of alternatives) {
          expect(await passesWith(of, alternative)).toBe(true)
          for (const id of alternative) {
            const rest = alternative.filter((other) => other !== id)
            // The rest may be another alternative
            if (contains(rest, alternatives)) continue
            expect(await passesWith(of, rest)).toBe(false)
            refused.times++
          }
        }
      }),
      { numRuns: runs(300) },
    )
    expect(refused.times).toBeGreaterThan(occurring(300))
  })

  it('there are no others: each request that passes has all of one alternative', async () => {
    await fc.assert(
      fc.asyncProperty(small, fc.infiniteStream(fc.boolean()), async (of, coins) => {
        const ids = leavesOf(of).flatMap(({ id }) => (coins.next().value ? [id] : []))
        if (await passesWith(of, ids)) expect(contains(ids, byHand(of))).toBe(true)
      }),
      { numRuns: runs(500) },
    )
  })
})

describe('admitsAnonymous', () => {
  it('is true exactly if a request without credentials passes', async () => {
    const welcomed = { yes: 0, no: 0 }
    await fc.assert(
      fc.asyncProperty(tree, async (of) => {
        const made = build(of)
        const result = await made.evaluate(mockRequest({ method: 'POST', fields: fieldsOf([]) }))
        expect(admitsAnonymous(made.description)).toBe(E.isRight(result))
        expect(welcomes(of)).toBe(E.isRight(result))
        welcomed[E.isRight(result) ? 'yes' : 'no']++
        // There is then an alternative that demands nothing
        expect(alternativesOf(made.description).some(({ demands }) => demands.length === 0)).toBe(E.isRight(result))
      }),
      { numRuns: runs(500) },
    )
    expect(Math.min(welcomed.yes, welcomed.no)).toBeGreaterThan(occurring(50))
  })
})

describe('isSent', () => {
  it('is true exactly for requests that have a credential, valid or not', () => {
    const sent = { yes: 0, no: 0 }
    fc.assert(
      fc.property(
        tree,
        fc.constantFrom('all', 'some'),
        fc.infiniteStream(fc.integer({ min: 0, max: 3 })),
        (of, how, dice) => {
          const sending = withLeaves(of, (each) =>
            how === 'all' || dice.next().value === 0 ? each : { ...each, sent: 'nothing' },
          )
          const expected = leavesOf(sending).some((each) => each.sent !== 'nothing')
          expect(isSent(build(of).description, requestOf([sending]))).toBe(expected)
          sent[expected ? 'yes' : 'no']++
        },
      ),
      { numRuns: runs(500) },
    )
    expect(Math.min(sent.yes, sent.no)).toBeGreaterThan(occurring(20))
  })

  const throwing = authenticator({
    challenge: Challenge.make('Own'),
    ambient: false,
    extract: () => {
      throw new Error('extract')
    },
    authenticate: () => 'anna',
  })
  it.each<{ description: string; input: Description }>([
    row('a plain function', fromFunction(() => false).description),
    row('a kind whose extract throws', throwing.description),
    row('a session without koa-session', sessionAuth().description),
  ])('counts as sent what cannot be known: $description', ({ input }) => {
    expect(isSent(input, mockRequest())).toBe(true)
  })
})
