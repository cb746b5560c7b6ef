/** Real authenticators for trees with combinators that keep state, and a limiter that uses the clock of the test. */
import { either as E } from 'fp-ts'
import { AuthError, throttled } from 'koa-with-auth'
import { flatMap, map, recoverUnavailable, timeout } from 'koa-with-auth/fp'
import type { Authenticator } from 'koa-with-auth'
import type { Leaf, Tree } from './evaluator.js'
import { points, WINDOW, type Around } from './world.js'
import { buildLeaf, buildNode } from './trees.js'

// Like those of rate-limiter-flexible
const limiter = (limit: number) => {
  const entries = new Map<string, { guesses: number; readonly end: number }>()
  const entryOf = (key: string) => {
    const before = entries.get(key)
    if (before !== undefined && performance.now() < before.end) return before
    const entry = { guesses: 0, end: performance.now() + WINDOW }
    entries.set(key, entry)
    return entry
  }
  return {
    consume: async (key: string) => {
      const entry = entryOf(key)
      const consumedPoints = ++entry.guesses
      const answer = {
        consumedPoints,
        remainingPoints: limit - consumedPoints,
        msBeforeNext: entry.end - performance.now(),
      }
      // Those limiters reject with a value that is not an Error
      if (consumedPoints > limit) throw answer
      return answer
    },
    reward: async (key: string) => {
      entryOf(key).guesses--
    },
  }
}

const changes: Readonly<Record<(Around & { readonly node: 'map' })['result'], (principal: unknown) => unknown>> = {
  wraps: (principal) => ({ mapped: principal }),
  throws: () => {
    throw new Error('map')
  },
  nothing: () => undefined,
}

const failures: Readonly<Record<string, () => unknown>> = {
  absent: () => E.left(AuthError.absent),
  invalid: () => false,
  expired: () => E.left(AuthError.expired),
  unavailable: () => E.left(AuthError.unavailable(3)),
  raised: () => {
    throw new Error('hook')
  },
}

const timeoutsIn = (tree: Tree): number => {
  if (tree.node === 'leaf') return 0
  const below = 'members' in tree ? tree.members : [tree.member]
  return Math.max(...below.map(timeoutsIn)) + (tree.node === 'timeout' ? 1 : 0)
}

/** `throttled` by its name in a tree. */
export const newLimits = () =>
  Object.fromEntries(Object.entries(points).map(([by, limit]) => [by, throttled({ limiter: limiter(limit) })]))

/** Makes it. `now` says what is true of a leaf at the present request. */
export const buildAround = (of: Tree, calls: string[], now: (leaf: Leaf) => Leaf): Authenticator<unknown> => {
  const limits = newLimits()
  const answering =
    ({ id, outcome, late }: Around & { readonly node: 'flatMap' | 'recover' }, passed: (given: unknown) => unknown) =>
    (given: unknown): unknown => {
      calls.push(id)
      const decide = failures[outcome] ?? (() => passed(given))
      return late ? Promise.resolve().then(decide) : decide()
    }
  const make = (tree: Tree): Authenticator<unknown> => {
    switch (tree.node) {
      case 'leaf':
        return buildLeaf(tree, calls, () => now(tree))
      case 'timeout':
        // All inner time limits end before
        return timeout(100 ** timeoutsIn(tree.member))(make(tree.member))
      case 'map': {
        const change = changes[tree.result]
        return map((principal: unknown) => {
          calls.push(tree.id)
          // Safe: the types refuse it, and `map` must find it
          return change(principal) as object
        })(make(tree.member))
      }
      case 'flatMap':
        return flatMap(answering(tree, (principal) => ({ changed: principal })))(make(tree.member))
      case 'recover':
        return recoverUnavailable(answering(tree, () => ({ recovered: tree.id })))(make(tree.member))
      case 'throttled':
        return limits[tree.by]!(make(tree.member))
      default:
        return buildNode(tree, make)
    }
  }
  return make(of)
}
