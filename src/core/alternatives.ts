/**
 * The credentials that let a client in, as OpenAPI lists them: alternatives. Each alternative is a set of credentials that are sent
 * together.
 *
 * The disjunctive normal form of a description. It says nothing about names; `openapi/` gives them.
 */
import { leaves, type Description, type Leaf, type Optional } from './Description.js'

/** One credential of an alternative, and what must have been granted to it. */
export interface Demand {
  readonly leaf: Leaf
  readonly scopes: ReadonlyArray<string>
}

/** Credentials that are sent together; empty if anonymous callers pass. */
export type Alternative = ReadonlyArray<Demand>

/** The alternatives of a description, in the order tried. */
export const alternativesOf = (description: Description): ReadonlyArray<Alternative> => {
  switch (description._tag) {
    case 'Leaf':
      return [[{ leaf: description, scopes: [] }]]
    case 'AnyOf':
      return description.members.flatMap(alternativesOf)
    case 'AllOf':
      return description.members.map(alternativesOf).reduce(product, [[]])
    case 'Optional':
      return [...alternativesOf(description.member), ...(admitsBareRequest(description) ? [[]] : [])]
    case 'Scoped':
      return alternativesOf(description.member).map((alternative) => scoped(alternative, description.scopes))
  }
}

// A plain function is never absent. So a member that contains one refuses a request without credentials, unless it is
// lenient. OpenAPI must not say that anonymous callers pass
const admitsBareRequest = ({ member, lenient }: Optional): boolean =>
  lenient || leaves(member).every((leaf) => leaf.isSent !== undefined)

const product = (some: ReadonlyArray<Alternative>, others: ReadonlyArray<Alternative>): ReadonlyArray<Alternative> =>
  some.flatMap((one) => others.map((other) => [...one, ...other]))

const scoped = (alternative: Alternative, added: ReadonlyArray<string>): Alternative =>
  alternative.map(({ leaf, scopes }) => ({ leaf, scopes: [...new Set([...scopes, ...added])] }))
