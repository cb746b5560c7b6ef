/** The alternatives of a description: its disjunctive normal form, which OpenAPI, the audit, the policy file and debugging list. */
import { distinctScopes, leaves, type Description, type Leaf, type Optional, type Scoped } from './Description.js'

export interface CredentialDemand {
  readonly leaf: Leaf
  readonly scopes: ReadonlyArray<string>
  /** Further conditions, in words: the notes of the leaf and of the nodes around it, the innermost first. */
  readonly wrappers: ReadonlyArray<string>
  /** The names of the functions that must allow the principal, too (`authorize`), the innermost first. */
  readonly authorizations: ReadonlyArray<string>
  /** The objects that must be for it, in words, the innermost first: `note by :id find 0123456789ab`. */
  readonly objects: ReadonlyArray<string>
}

/** An alternative: credentials that are sent together, and their further conditions. */
interface Alternative {
  /** Empty if anonymous callers pass. */
  readonly demands: ReadonlyArray<CredentialDemand>
  /** The conditions about objects and parameters of the path, the innermost first. */
  readonly objects: ReadonlyArray<Scoped>
  /** Whether bad credentials count as none (`lenient`), so that no caller is refused. */
  readonly admitsAnything: boolean
  /** Whether a plain function may refuse it, itself or before it in a list. Such a function is never absent. */
  readonly mayBeRefused: boolean
}

const noDemands: Alternative = { demands: [], objects: [], admitsAnything: false, mayBeRefused: false }

export const alternativesOf = (description: Description): ReadonlyArray<Alternative> => {
  const { _tag, wrappers } = description
  if (_tag === 'Leaf') {
    return [
      {
        ...noDemands,
        demands: [{ leaf: description, scopes: [], wrappers: wrappers ?? [], authorizations: [], objects: [] }],
      },
    ]
  }
  const alternatives = combinedAlternatives(description)
  return wrappers === undefined ? alternatives : alternatives.map((alternative) => withWrappers(alternative, wrappers))
}

const combinedAlternatives = (description: Exclude<Description, Leaf>): ReadonlyArray<Alternative> => {
  switch (description._tag) {
    case 'AnyOf':
      return description.members.flatMap((member, at, members) =>
        members.slice(0, at).some(hasFunction) ? alternativesOf(member).map(refusable) : alternativesOf(member),
      )
    case 'AllOf':
      return description.members.map(alternativesOf).reduce(product, [noDemands])
    case 'Optional':
      return [...alternativesOf(description.member), anonymousAlternative(description)]
    case 'Scoped':
      return alternativesOf(description.member).map((alternative) => withScopedNode(alternative, description))
  }
}

// A condition about several credentials together is noted at each of them, and differs from a condition about each
const noting = (
  alternative: Alternative,
  note: (demand: CredentialDemand, ofAll: (words: string) => string) => Partial<CredentialDemand>,
): Alternative => {
  const { demands } = alternative
  const ofAll = (words: string) => (demands.length > 1 ? `${words} (of all ${demands.length})` : words)
  return { ...alternative, demands: demands.map((demand) => ({ ...demand, ...note(demand, ofAll) })) }
}

const withWrappers = (alternative: Alternative, added: ReadonlyArray<string>): Alternative =>
  noting(alternative, ({ wrappers }, ofAll) => ({ wrappers: [...wrappers, ...added.map(ofAll)] }))

const anonymousAlternative = ({ member, lenient }: Optional): Alternative =>
  lenient ? { ...noDemands, admitsAnything: true } : { ...noDemands, mayBeRefused: hasFunction(member) }

// The credential of a plain function is unknown, so it counts as sent
const hasFunction = (description: Description): boolean => leaves(description).some((leaf) => leaf.isSent === undefined)

const refusable = (one: Alternative): Alternative => (one.demands.length > 0 ? one : { ...one, mayBeRefused: true })

const product = (some: ReadonlyArray<Alternative>, others: ReadonlyArray<Alternative>): ReadonlyArray<Alternative> =>
  some.flatMap((one) =>
    others.map((other) => ({
      demands: [...one.demands, ...other.demands],
      objects: [...one.objects, ...other.objects],
      admitsAnything: one.admitsAnything || other.admitsAnything,
      mayBeRefused: one.mayBeRefused || other.mayBeRefused,
    })),
  )

const withScopedNode = (alternative: Alternative, around: Scoped): Alternative => {
  // its words are a wrapper
  if (around.isQuota === true) return alternative
  if ((around.object ?? around.unchecked) === undefined) return withScopesDemanded(alternative, around)
  const words = around.decidedBy === undefined ? [] : [around.decidedBy]
  return {
    ...noting(alternative, ({ objects }, ofAll) => ({ objects: [...objects, ...words.map(ofAll)] })),
    objects: [...alternative.objects, around],
  }
}

const withScopesDemanded = (alternative: Alternative, { scopes, decidedBy = 'a function' }: Scoped): Alternative =>
  noting(alternative, (demand, ofAll) => ({
    scopes: distinctScopes([...demand.scopes, ...scopes]),
    authorizations: scopes.length > 0 ? demand.authorizations : [...demand.authorizations, ofAll(decidedBy)],
  }))
