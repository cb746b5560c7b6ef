/** Random trees of authenticators, the real authenticator for each, and the request that its client sends. */
import { either as E, option as O } from 'fp-ts'
import fc, { type Arbitrary } from 'fast-check'
import {
  allOf,
  altW,
  also,
  anyOf,
  AuthError,
  authenticator,
  authorize,
  Challenge,
  firstPresent,
  fromHeader,
  lenient,
  optional,
  requireScopes,
  type Authenticator,
  type AuthenticatorLike,
} from 'koa-with-auth'
import * as Requirement from '../../src/core/Requirement.js'
import { leavesOf, welcomes, type Group, type Leaf, type Level, type Outcome, type Tree } from './evaluator.js'

// -------------------------------------------------------------------------------------
// arbitraries
// -------------------------------------------------------------------------------------

export const outcomes = [
  'pass',
  'absent',
  'malformed',
  'invalid',
  'expired',
  'forged',
  'insufficient',
  'throttled',
  'unavailable',
  'raised',
] as const satisfies ReadonlyArray<Outcome>

const scopes = fc.subarray(['read', 'write'])

// A pass is half of all, because all-of seldom passes else
const outcome: Arbitrary<Outcome> = fc.oneof(
  { arbitrary: fc.constant('pass' as const), weight: 8 },
  { arbitrary: fc.constant('absent' as const), weight: 3 },
  ...outcomes.slice(2).map((one) => ({ arbitrary: fc.constant(one), weight: 1 })),
)

// What can have been sent for an outcome; the identifier is given by `numbered`
const leaf: Arbitrary<Leaf> = outcome.chain((made) =>
  fc.record({
    node: fc.constant('leaf' as const),
    id: fc.constant(''),
    scheme: fc.constantFrom('Alpha', 'Beta', 'Gamma'),
    outcome: fc.constant(made),
    sent:
      made === 'absent'
        ? fc.constantFrom('nothing' as const, 'nothing' as const, 'value' as const)
        : made === 'malformed'
          ? fc.constantFrom('empty' as const, 'twice' as const, 'value' as const)
          : fc.constant('value' as const),
    ...(made === 'insufficient' && { scope: fc.constant(['admin']) }),
    late: fc.boolean(),
  }),
)

const treeOf = (depth: number): Arbitrary<Tree> => {
  if (depth === 0) return leaf
  const below = treeOf(depth - 1)
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
  return fc.oneof(
    { arbitrary: leaf, weight: 2 },
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
  )
}

// Every leaf its own identifier
const numbered = <A extends object>(of: A): A => {
  let next = 0
  const walk = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(walk)
    if (typeof value !== 'object' || value === null) return value
    const copy = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, walk(one)]))
    return 'outcome' in copy ? { ...copy, id: `l${next++}` } : copy
  }
  // Safe: nothing but identifiers was changed
  return walk(of) as A
}

// Without what makes a tree a mistake
const demanding = (tree: Tree): Tree => {
  if (!welcomes(tree) || tree.node === 'leaf') return tree
  if (tree.node === 'optional' || tree.node === 'lenient') return demanding(tree.member)
  return 'members' in tree
    ? { ...tree, members: tree.members.map(demanding) }
    : { ...tree, member: demanding(tree.member) }
}
const fixed = (tree: Tree): Tree => {
  if (tree.node === 'leaf') return tree
  if (!('members' in tree)) {
    const member = fixed(tree.member)
    return { ...tree, member: tree.node === 'authorize' || tree.node === 'requireScopes' ? demanding(member) : member }
  }
  const members = tree.members.map(fixed)
  if (tree.node === 'allOf') return { ...tree, members }
  return { ...tree, members: members.map((member, at) => (at === members.length - 1 ? member : demanding(member))) }
}

/** Any tree of a depth up to 4, those that must be refused included. */
export const anyTree: Arbitrary<Tree> = treeOf(4).map(numbered)

/** Those that can be built. */
export const tree: Arbitrary<Tree> = treeOf(4).map((any) => numbered(fixed(any)))

const required = treeOf(3).map(fixed)
const level: Arbitrary<Level> = fc.oneof(
  fc.constantFrom('inherit' as const, 'public' as const),
  required.map((require) => ({ require })),
  required.map((also) => ({ also })),
)

/** From the outermost level to the innermost; most have one tree alone. */
export const levels: Arbitrary<ReadonlyArray<Level>> = fc.oneof(
  { arbitrary: tree.map((require) => [{ require }]), weight: 2 },
  { arbitrary: fc.array(level, { minLength: 1, maxLength: 4 }).map(numbered), weight: 1 },
)

/** The trees of levels. */
export const treesOf = (of: ReadonlyArray<Level>): ReadonlyArray<Tree> =>
  of.flatMap((one) => (typeof one === 'string' ? [] : 'require' in one ? [one.require] : [one.also]))

// -------------------------------------------------------------------------------------
// the real thing
// -------------------------------------------------------------------------------------

const answers: Readonly<Record<Outcome, (leaf: Leaf) => unknown>> = {
  pass: ({ id }) => id,
  absent: () => E.left(AuthError.absent),
  malformed: () => E.left(AuthError.malformed),
  invalid: ({ id }) => [false, O.none, E.left(AuthError.invalid), []][id.length % 4],
  expired: () => E.left(AuthError.expired),
  // a good cookie that another site made a browser send
  forged: ({ id }) => O.some(id),
  insufficient: ({ scope }) => E.left(AuthError.insufficient(scope)),
  throttled: () => E.left(AuthError.throttled(8)),
  unavailable: () => E.left(AuthError.unavailable(7)),
  raised: ({ id }) => {
    throw new Error(id)
  },
}

const buildLeaf = (leaf: Leaf, calls: string[]): Authenticator<unknown> =>
  authenticator({
    challenge: (error) =>
      Challenge.make(leaf.scheme, {
        error: error._tag,
        ...(error._tag === 'insufficient' && error.scope !== undefined && { scope: error.scope.join(' ') }),
      }),
    ambient: leaf.outcome === 'forged',
    extract: fromHeader(`x-${leaf.id}`),
    authenticate: () => {
      calls.push(leaf.id)
      return leaf.late ? Promise.resolve().then(() => answers[leaf.outcome](leaf)) : answers[leaf.outcome](leaf)
    },
  })

const groups: Readonly<Record<string, (group: Readonly<Record<string, AuthenticatorLike>>) => Authenticator<unknown>>> =
  {
    anyOf,
    firstPresent,
    allOf,
  }

const buildGroup = ({ node, keys, members }: Group, calls: string[]): Authenticator<unknown> => {
  const built = members.map((member) => build(member, calls))
  if (node === 'alt') return altW(() => built[1]!)(built[0]!)
  const group: unknown = keys === undefined ? built : Object.fromEntries(keys.map((key, at) => [key, built[at]!]))
  // Safe: each of the three takes lists, too, and the arbitraries make no empty ones
  return groups[node]!(group as Readonly<Record<string, AuthenticatorLike>>)
}

/** Makes the authenticator; each hook that is asked writes its identifier into `calls`. */
export const build = (of: Tree, calls: string[] = []): Authenticator<unknown> => {
  switch (of.node) {
    case 'leaf':
      return buildLeaf(of, calls)
    case 'optional':
      return optional(build(of.member, calls))
    case 'lenient':
      return lenient(build(of.member, calls))
    case 'authorize':
      return authorize(() => (of.late ? Promise.resolve(of.allowed) : of.allowed))(build(of.member, calls))
    case 'requireScopes':
      // Safe: the arbitraries make no empty list
      return requireScopes(of.scopes as [string], { granted: () => of.granted })(build(of.member, calls))
    case 'own':
      throw new Error('levels make it, no combinator')
    default:
      return buildGroup(of, calls)
  }
}

/** What `withAuth` takes for a level. */
export const decisionOf = (of: Level, calls: string[]) =>
  of === 'inherit' || of === 'public' ? null : 'also' in of ? also(build(of.also, calls)) : build(of.require, calls)

/** The requirement of a level. */
export const requirementOf = (of: Level, calls: string[]): Requirement.Requirement => {
  if (of === 'inherit') return Requirement.inherit
  if (of === 'public') return Requirement.open
  return 'also' in of ? also(build(of.also, calls)) : Requirement.guardedBy(build(of.require, calls))
}

/** What the client sends: a write that another site made a browser send, with a field for each credential. */
export const fieldsOf = (trees: ReadonlyArray<Tree>): ReadonlyArray<readonly [name: string, value: string]> => [
  ['Host', 'api.example'],
  ['Sec-Fetch-Site', 'cross-site'],
  ...trees.flatMap(leavesOf).flatMap(({ id, sent }): ReadonlyArray<readonly [string, string]> => {
    if (sent === 'nothing') return []
    const field = [`x-${id}`, sent === 'empty' ? '' : 'sent'] as const
    return sent === 'twice' ? [field, field] : [field]
  }),
]
