/** Runs trees, or what is made from them, with the request of their client. */
import { either as E } from 'fp-ts'
import type { Request } from 'koa'
import { AuthError, type Authenticator } from 'koa-with-auth'
import { observe } from './arbitraries.js'
import { type Leaf, type Tree } from './evaluator.js'
import { mockRequest } from 'koa-with-auth/testing'
import { build, fieldsOf, withMembers } from './trees.js'

/** What the client of these trees sends. */
export const requestOf = (trees: ReadonlyArray<Tree>, method = 'POST'): Request =>
  mockRequest({ method, fields: fieldsOf(trees) })

/** The verdict, the calls of hooks, and the description of what `make` makes of the authenticators of these trees. */
export const run = (
  trees: ReadonlyArray<Tree>,
  make: (...of: Authenticator<unknown>[]) => Authenticator<unknown>,
  method = 'POST',
) => observe((calls) => make(...trees.map((tree) => build(tree, calls))), requestOf(trees, method))

/** The part of a result that does not depend on how its failures are nested. */
export const essence = (result: E.Either<AuthError, unknown>) =>
  E.isRight(result)
    ? { principal: result.right }
    : {
        tag: result.left._tag,
        branches: AuthError.branchesOf(result.left).map(({ _tag, challenge }) => ({ _tag, challenge })),
      }

/** A leaf with the default properties. */
export const leaf = (id: string, of: Partial<Leaf> = {}): Leaf => ({
  node: 'leaf',
  id,
  scheme: id,
  outcome: 'pass',
  sent: 'value',
  late: false,
  ...of,
})

/** Trees with different identifiers, so that they can be combined. */
export const apart = <L extends ReadonlyArray<Tree>>(...trees: L): L =>
  // Safe: as many, and of the same form
  trees.map((tree, at) => withLeaves(tree, (one) => ({ ...one, id: `t${at}${one.id}` }))) as unknown as L

/** The same tree with other leaves. */
export const withLeaves = (tree: Tree, change: (leaf: Leaf) => Leaf): Tree =>
  tree.node === 'leaf' ? change(tree) : withMembers(tree, (member) => withLeaves(member, change))
