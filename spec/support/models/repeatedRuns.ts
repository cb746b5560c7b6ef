/** A tree with combinators that keep state, and the expected result of each of several requests, on stopped clocks. */
import { met, apiece, type Step } from './aroundTrees.js'
import { buildAround } from './builtAround.js'
import type { Clock } from '../runs/clock.js'
import { leavesOf, verdictOf, type Leaf, type Log, type Tree } from './evaluator.js'
import { newWorld } from './world.js'

/** Makes the real authenticator and its model. */
export const repeated = (tree: Tree, clock: Clock) => {
  const calls: string[] = []
  let present = new Map<string, Leaf>()
  const authenticator = buildAround(tree, calls, ({ id }) => present.get(id)!)
  const world = newWorld()
  /**
   * Moves the clocks, and returns the expected result of the next request, and the tree as the request sees it; `at` is
   * its number.
   */
  const next = (step: Step, at: number) => {
    clock.move(step.wait)
    clock.set(step.set)
    const now = met(tree, step, Date.now(), at)
    present = new Map(leavesOf(now).map((leaf) => [leaf.id, leaf]))
    const { address, crossSite } = step
    Object.assign(world, { now: performance.now(), address, crossSite, held: [], recovered: false })
    const log: Log = { calls: [], reached: [], late: false, world }
    calls.length = 0
    return { verdict: verdictOf(apiece(now), log), log, tree: now }
  }
  return { authenticator, calls, next }
}
