/** Random trees of authenticators, the real authenticator for each, and the request that its client sends. */
import { either as E, option as O } from 'fp-ts'
import fc, { type Arbitrary } from 'fast-check'
import {
  allOf,
  also,
  anyOf,
  AuthError,
  authenticator,
  authorize,
  Challenge,
  fromHeader,
  optional,
  requireScopes,
  type Authenticator,
} from 'koa-with-auth'
import { altW, firstPresent, lenient } from 'koa-with-auth/fp'
import * as Requirement from '../../../src/core/Requirement.js'
import { leavesOf, outcomes, welcomes } from './evaluator.js'
import type { Group, Leaf, Level, Outcome, Tree } from './evaluator.js'

// --- arbitraries

const scopes = fc.subarray(['read', 'write'])

// Half of the leaves pass, because otherwise a group rarely passes
const outcome: Arbitrary<Outcome> = fc.oneof(
  { arbitrary: fc.constant('pass' as const), weight: 8 },
  { arbitrary: fc.constant('absent' as const), weight: 3 },
  ...outcomes.slice(2).map((one) => ({ arbitrary: fc.constant(one), weight: 1 })),
)

// What can be sent for an outcome, if it is not a value alone
const sendings: { readonly [O in Outcome]?: ReadonlyArray<Leaf['sent']> } = {
  absent: ['nothing', 'nothing', 'value'],
  malformed: ['empty', 'twice', 'value'],
}

// `numbered` sets the identifier
const leaf: Arbitrary<Leaf> = outcome.chain((made) =>
  fc.record({
    node: fc.constant('leaf' as const),
    id: fc.constant(''),
    scheme: fc.constantFrom('Alpha', 'Beta', 'Gamma'),
    outcome: fc.constant(made),
    sent: fc.constantFrom(...(sendings[made] ?? ['value' as const])),
    ...(made === 'insufficient' && { scope: fc.constant(['admin']) }),
    late: fc.boolean(),
  }),
)

const treeOf = (depth: number): Arbitrary<Tree> => {
  if (depth === 0) return leaf
  return fc.oneof({ arbitrary: leaf, weight: 2 }, ...composed(treeOf(depth - 1)))
}

/** The combinators that keep no state, around smaller trees. */
export const composed = (below: Arbitrary<Tree>): ReadonlyArray<fc.WeightedArbitrary<Tree>> => {
  const group = fc
    .record({
      node: fc.constantFrom('anyOf' as const, 'firstPresent' as const, 'allOf' as const),
      members: fc.array(below, { minLength: 1, maxLength: 3 }),
      isRecord: fc.boolean(),
    })
    .map(({ isRecord, ...rest }): Tree => ({
      ...rest,
      ...(isRecord && { keys: rest.members.map((_, at) => `k${at}`) }),
    }))
  return [
    { arbitrary: group, weight: 5 },
    { arbitrary: fc.tuple(below, below).map((members): Tree => ({ node: 'alt', members })), weight: 1 },
    {
      arbitrary: fc.record({ node: fc.constantFrom('optional' as const, 'lenient' as const), member: below }),
      weight: 2,
    },
    {
      arbitrary: fc.record({
        node: fc.constant('authorize' as const),
        member: below,
        allowed: fc.boolean(),
        late: fc.boolean(),
      }),
      weight: 1,
    },
    {
      arbitrary: fc.record({
        node: fc.constant('requireScopes' as const),
        member: below,
        scopes: scopes.map((some) => (some.length === 0 ? ['read'] : some)),
        granted: scopes,
      }),
      weight: 1,
    },
  ]
}

/** Everything that has an identifier gets its own. */
export const numbered = <A extends object>(of: A): A => {
  let next = 0
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== 'object' || value === null) return value
    const copy = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one)]))
    return 'id' in copy ? { ...copy, id: `n${next++}` } : copy
  }
  // Safe: only identifiers were changed
  return walk(of) as A
}

/** The same node around other members. */
export const withMembers = (tree: Exclude<Tree, Leaf>, change: (member: Tree) => Tree): Tree =>
  'members' in tree ? { ...tree, members: tree.members.map(change) } : { ...tree, member: change(tree.member) }

// Removes what makes a tree a mistake
const demanding = (tree: Tree): Tree => {
  if (!welcomes(tree) || tree.node === 'leaf') return tree
  if (tree.node === 'optional' || tree.node === 'lenient') return demanding(tree.member)
  return withMembers(tree, demanding)
}

/** The same tree without what makes it a mistake. */
export const fixed = (tree: Tree): Tree => {
  if (tree.node === 'leaf') return tree
  if (!('members' in tree)) {
    const member = fixed(tree.member)
    return { ...tree, member: tree.node === 'authorize' || tree.node === 'requireScopes' ? demanding(member) : member }
  }
  const members = tree.members.map(fixed)
  if (tree.node === 'allOf') return { ...tree, members }
  return { ...tree, members: members.map((member, at) => (at === members.length - 1 ? member : demanding(member))) }
}

/** Any tree up to a depth of 4, including those that must be refused. */
export const anyTree: Arbitrary<Tree> = treeOf(4).map(numbered)

/** Trees that can be built. */
export const tree: Arbitrary<Tree> = treeOf(4).map((any) => numbered(fixed(any)))

const required = treeOf(3).map(fixed)
const level: Arbitrary<Level> = fc.oneof(
  fc.constantFrom('inherit' as const, 'public' as const),
  required.map((require) => ({ require })),
  required.map((also) => ({ also })),
)

/** From the outermost level to the innermost. Most have only one tree. */
export const levels: Arbitrary<ReadonlyArray<Level>> = fc.oneof(
  { arbitrary: tree.map((require) => [{ require }]), weight: 2 },
  { arbitrary: fc.array(level, { minLength: 1, maxLength: 4 }).map(numbered), weight: 1 },
)

/** The trees of levels. */
export const treesOf = (of: ReadonlyArray<Level>): ReadonlyArray<Tree> =>
  of.flatMap((one) => (typeof one === 'string' ? [] : 'require' in one ? [one.require] : [one.also]))

// --- real authenticators

const answers: Readonly<Record<Outcome, (leaf: Leaf) => unknown>> = {
  pass: ({ id, principal }) => principal ?? id,
  absent: () => E.left(AuthError.absent),
  malformed: () => E.left(AuthError.malformed),
  invalid: ({ id }) => [false, O.none, E.left(AuthError.invalid), []][id.length % 4],
  expired: () => E.left(AuthError.expired),
  // A valid cookie in a request that another site caused
  forged: ({ id }) => O.some(id),
  insufficient: ({ scope }) => E.left(AuthError.insufficient(scope)),
  notFound: () => E.left(AuthError.notFound),
  throttled: () => E.left(AuthError.throttled(8)),
  unavailable: () => E.left(AuthError.unavailable(7)),
  raised: ({ id }) => {
    throw new Error(id)
  },
}

/** Makes the authenticator of a leaf. `now` gives the outcome of its hook at the present request. */
export const buildLeaf = (leaf: Leaf, calls: string[], now: () => Leaf = () => leaf): Authenticator<unknown> =>
  authenticator({
    challenge: (error) =>
      Challenge.make(leaf.scheme, {
        error: error._tag,
        ...(error._tag === 'insufficient' && error.scope !== undefined && { scope: error.scope.join(' ') }),
      }),
    ambient: leaf.outcome === 'forged' || leaf.ambient === true,
    extract: fromHeader(`x-${leaf.id}`),
    authenticate: () => {
      calls.push(leaf.id)
      const present = now()
      const answer = () => answers[present.outcome](present)
      if (present.late === 'never') return new Promise(() => {})
      return present.late ? Promise.resolve().then(answer) : answer()
    },
  })

const groups = { anyOf, firstPresent, allOf }

type Build = (tree: Tree) => Authenticator<unknown>

const buildGroup = ({ node, keys, members }: Group, below: Build): Authenticator<unknown> => {
  const built = members.map(below)
  if (node === 'alt') return altW(() => built[1]!)(built[0]!)
  const group: unknown = keys === undefined ? built : Object.fromEntries(keys.map((key, at) => [key, built[at]!]))
  // Safe: each of the three accepts lists, too, and the arbitraries make no empty ones
  return (groups[node] as (group: unknown) => Authenticator<unknown>)(group)
}

/** Makes the authenticator. Each hook writes its identifier into `calls`. */
export const build = (of: Tree, calls: string[] = []): Authenticator<unknown> =>
  of.node === 'leaf' ? buildLeaf(of, calls) : buildNode(of, (tree) => build(tree, calls))

/** Makes a node from what `below` makes of its members. */
export const buildNode = (of: Exclude<Tree, Leaf>, below: Build): Authenticator<unknown> => {
  switch (of.node) {
    case 'optional':
      return optional(below(of.member))
    case 'lenient':
      return lenient(below(of.member))
    case 'authorize':
      return authorize(() => (of.late ? Promise.resolve(of.allowed) : of.allowed))(below(of.member))
    case 'requireScopes':
      // Safe: the arbitraries make no empty list
      return requireScopes(of.scopes as [string], { granted: () => of.granted })(below(of.member))
    case 'alt':
    case 'anyOf':
    case 'firstPresent':
    case 'allOf':
      return buildGroup(of, below)
    default:
      throw new Error(`${of.node} is made elsewhere`)
  }
}

/** The argument of `withAuth` for a level. */
export const decisionOf = (of: Level, calls: string[]) =>
  of === 'inherit' || of === 'public' ? null : 'also' in of ? also(build(of.also, calls)) : build(of.require, calls)

/** The requirement of a level. */
export const requirementOf = (of: Level, calls: string[]): Requirement.Requirement => {
  if (of === 'inherit') return Requirement.inherit
  if (of === 'public') return Requirement.open
  return 'also' in of ? also(build(of.also, calls)) : Requirement.guardedBy(build(of.require, calls))
}

/** The request of the client: a write that another site made a browser send, with a field for each credential. */
export const fieldsOf = (
  trees: ReadonlyArray<Tree>,
  crossSite = true,
): ReadonlyArray<readonly [name: string, value: string]> => [
  ['Host', 'api.example'],
  ['Sec-Fetch-Site', crossSite ? 'cross-site' : 'same-origin'],
  ...trees.flatMap(leavesOf).flatMap(({ id, sent, value = 'sent' }): ReadonlyArray<readonly [string, string]> => {
    if (sent === 'nothing') return []
    const field = [`x-${id}`, sent === 'empty' ? '' : value] as const
    return sent === 'twice' ? [field, field] : [field]
  }),
]
