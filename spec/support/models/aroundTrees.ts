/** Random trees with all combinators, including those that keep state, and requests that follow one another. */
import fc, { type Arbitrary } from 'fast-check'
import { leavesOf, outcomes, type Leaf, type Outcome, type Tree } from './evaluator.js'
import { points, type Around } from './world.js'
import { composed, fixed, numbered, withMembers } from './trees.js'
import { leaf as leafOf, withLeaves } from './treeRuns.js'

// --- trees

// Its outcome differs at each request
const leaf: Arbitrary<Leaf> = fc
  .record({ scheme: fc.constantFrom('Alpha', 'Beta', 'Gamma'), ambient: fc.constantFrom(true, false, false, false) })
  .map((own) => leafOf('', { outcome: 'absent', sent: 'nothing', ...own }))

const answers = ['pass', 'absent', 'invalid', 'expired', 'unavailable', 'raised'] as const
const around = (member: Arbitrary<Tree>): Arbitrary<Around> => {
  const id = fc.constant('')
  const answered = { id, member, outcome: fc.constantFrom('pass', 'pass', ...answers), late: fc.boolean() }
  return fc.oneof(
    fc.record({ node: fc.constant('map' as const), id, member, result: fc.constantFrom('wraps', 'throws', 'nothing') }),
    fc.record({ node: fc.constantFrom('flatMap' as const, 'recover' as const, 'recover' as const), ...answered }),
    fc.record({ node: fc.constant('timeout' as const), member }),
    fc.record({ node: fc.constant('throttled' as const), id, member, by: fc.constantFrom(...Object.keys(points)) }),
  )
}

const treeOf = (depth: number): Arbitrary<Tree> => {
  if (depth === 0) return leaf
  const below = treeOf(depth - 1)
  const others = fc.oneof(...composed(below))
  return fc.oneof(
    { arbitrary: leaf, weight: 1 },
    { arbitrary: others, weight: 3 },
    { arbitrary: around(below), weight: 5 },
  )
}

const isKeeping = ({ node }: Tree): boolean => node === 'throttled'

const isOneKind = (tree: Tree): boolean => {
  if (tree.node === 'leaf') return true
  if ('members' in tree) return tree.node === 'anyOf' && tree.members.length === 1 && isOneKind(tree.members[0]!)
  return !['optional', 'lenient', 'authorize', 'requireScopes'].includes(tree.node) && isOneKind(tree.member)
}

// A recovery of several kinds hides them from a combinator that is put around each
const visible = (tree: Tree, isInside = false): Tree => {
  if (tree.node === 'leaf') return tree
  if ('members' in tree) return withMembers(tree, (one) => visible(one, isInside))
  const member = visible(tree.member, isInside || isKeeping(tree))
  return tree.node === 'recover' && isInside && !isOneKind(member) ? member : { ...tree, member }
}

/** Trees with all combinators that can be built. */
export const keepingTree: Arbitrary<Tree> = treeOf(4).map((any) => numbered(visible(fixed(any))))

/** The same tree, with a combinator around several credentials put around each of them. */
export const apiece = (tree: Tree): Tree => {
  if (tree.node === 'leaf') return tree
  if ('members' in tree || !isKeeping(tree)) return withMembers(tree, apiece)
  return pushed((one) => ({ ...tree, member: one }), apiece(tree.member))
}
const pushed = (put: (tree: Tree) => Tree, member: Tree): Tree =>
  isOne(member) || member.node === 'leaf' ? put(member) : withMembers(member, (one) => pushed(put, one))
const isOne = (tree: Tree): boolean => {
  // A list of one member is this member
  if (tree.node === 'anyOf' && tree.keys === undefined && tree.members.length === 1) return isOne(tree.members[0]!)
  if (tree.node === 'map' || tree.node === 'flatMap') return isOne(tree.member)
  return tree.node === 'leaf' || tree.node === 'recover' || isKeeping(tree)
}

// --- requests

/** What a client sends, when and from where, and the outcome of each hook. */
export interface Step {
  readonly wait: number
  /** By how much the system clock is set. */
  readonly set: number
  readonly address: string
  readonly crossSite: boolean
  readonly plans: ReadonlyArray<Partial<Leaf>>
}

const sometimes = <A>(usual: A, ...others: A[]) =>
  fc.oneof({ arbitrary: fc.constant(usual), weight: 5 }, { arbitrary: fc.constantFrom(...others), weight: 1 })

const known: ReadonlyArray<Outcome> = outcomes.filter((one) => one !== 'pass' && one !== 'forged')
const plan: Arbitrary<Partial<Leaf>> = fc.oneof(
  { arbitrary: fc.constant({ sent: 'nothing', outcome: 'absent' } as const), weight: 2 },
  {
    arbitrary: fc
      .constantFrom('empty' as const, 'twice' as const)
      .map((sent) => ({ sent, outcome: 'malformed' as const })),
    weight: 1,
  },
  {
    arbitrary: fc
      .record({
        sent: fc.constant('value' as const),
        value: sometimes('v0', 'v1'),
        outcome: fc.oneof(
          { arbitrary: fc.constant('pass' as const), weight: 6 },
          fc.constantFrom(...known),
          fc.constantFrom('invalid' as const, 'unavailable' as const, 'unavailable' as const, 'unavailable' as const),
        ),
        late: fc.oneof({ arbitrary: fc.boolean(), weight: 9 }, fc.constant('never' as const)),
        expiresIn: fc.constantFrom(undefined, undefined, 0, 400, 1500),
      })
      .map(({ expiresIn, ...rest }) => ({
        ...rest,
        ...(expiresIn !== undefined && { expiresIn }),
        ...(rest.outcome === 'insufficient' && { scope: ['admin'] }),
      })),
    weight: 9,
  },
)

export const steps: Arbitrary<ReadonlyArray<Step>> = fc.array(
  fc.record({
    wait: fc.constantFrom(0, 0, 0, 300, 999, 1000, 20_000, 60_000),
    set: sometimes(0, -500, -60_000, 500),
    address: sometimes('192.0.2.1', '192.0.2.2'),
    crossSite: sometimes(false, true),
    plans: fc.array(plan, { minLength: 5, maxLength: 5 }),
  }),
  { minLength: 2, maxLength: 7 },
)

/** The tree as a request sees it, at a time. */
export const met = (tree: Tree, { crossSite, plans }: Step, now: number, at: number): Tree => {
  const ids = leavesOf(tree).map(({ id }) => id)
  const limited = new Set(limitedIn(tree))
  return withLeaves(tree, (one) => {
    const { expiresIn, ...own } = plans[ids.indexOf(one.id) % plans.length]! as Partial<Leaf> & { expiresIn?: number }
    const isForged = own.outcome === 'pass' && one.ambient === true && crossSite
    return {
      ...one,
      ...own,
      ...(isForged && { outcome: 'forged' as const }),
      // A hook that does not settle must be ended
      ...(own.late === 'never' && !limited.has(one.id) && { late: true }),
      principal: { id: one.id, at, ...(expiresIn !== undefined && { expiresAt: now + expiresIn }) },
    }
  })
}

const limitedIn = (tree: Tree): ReadonlyArray<string> => {
  if (tree.node === 'timeout') return leavesOf(tree).map(({ id }) => id)
  if (tree.node === 'leaf') return []
  return ('members' in tree ? tree.members : [tree.member]).flatMap(limitedIn)
}
