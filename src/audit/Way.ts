/** A way in: the credentials that a caller must send together, and the rights that they need. */
import { challengesOf, children, distinctScopes, schemeOf } from '../core/Description.js'
import type { Description, Leaf, ObjectRule, Scoped, SecurityScheme } from '../core/Description.js'
import { alternativesOf, type CredentialDemand } from '../core/Alternative.js'

/** A description in words, such as `bearer, or API key in header X-API-Key`: different trees have different words. */
export const descriptionInWords = (whole: Description): string => {
  const description = demandIn(whole)
  switch (description._tag) {
    case 'Leaf':
      return leafInWords(description)
    case 'AnyOf': {
      const members = description.members.map(unit).join(', or ')
      return description.firstPresent ? `first sent of (${members})` : members
    }
    case 'AllOf':
      return `all of (${description.members.map(unit).join(', and ')})`
    case 'Optional':
      return `${description.lenient ? 'lenient' : 'optional'} ${unit(description.member)}`
    case 'Scoped':
      if (description.object !== undefined)
        return `${objectOwner(description.member)}; ${objectInWords(description.object)}`
      return `${unit(description.member)} ${conditionInWords(description)}`
  }
}

const conditionInWords = ({ scopes, decidedBy, authentication, isQuota, wrappers = [] }: Scoped): string =>
  isQuota === true
    ? `with ${wrappers.join(', ')}`
    : scopes.length > 0
      ? `with scopes ${scopes.join(', ')}`
      : `authorized by ${decidedBy ?? (authentication === undefined ? 'a function' : 'an authentication')}`

export const objectInWords = ({ name, param }: ObjectRule): string => `${name} by :${param}`

// Objects follow the credentials; alternatives are a unit
const objectOwner = (description: Description): string =>
  isAlternatives(demandIn(description)) ? parenthesized(description) : descriptionInWords(description)

// `unchecked` demands nothing
const demandIn = (description: Description): Description =>
  description._tag === 'Scoped' && description.unchecked !== undefined ? demandIn(description.member) : description

const parenthesized = (description: Description): string => `(${descriptionInWords(description)})`

// As a part of something else: in parentheses if it has conditions of its own, or commas
const unit = (whole: Description): string => {
  const description = demandIn(whole)
  return isAlternatives(description) || description._tag === 'Scoped'
    ? parenthesized(description)
    : descriptionInWords(description)
}

const isAlternatives = (description: Description): boolean =>
  description._tag === 'AnyOf' && !description.firstPresent && description.members.length > 1

const leafInWords = (leaf: Leaf): string => {
  const scheme = schemeOf(leaf)
  const also = leaf.alsoFor?.()
  const words = [
    scheme === undefined ? undescribed(leaf) : schemeLabel(scheme, leaf),
    ...(also === undefined ? [] : [schemeLabel(also, leaf)]),
  ].join(' or ')
  const named = leaf.schemeName === undefined ? words : `${words} "${leaf.schemeName}"`
  return leaf.demands === undefined ? named : `${named} of ${leaf.demands}`
}

const schemeLabel = (scheme: SecurityScheme, leaf: Leaf): string => {
  switch (scheme.type) {
    case 'apiKey': {
      const what = challengeName(leaf) === 'Session' ? 'session' : 'API key'
      return `${what} in ${scheme.in === 'query' ? 'query parameter' : scheme.in} ${scheme.name}`
    }
    case 'http':
      return `${scheme.scheme.toLowerCase()}${scheme.bearerFormat === 'session' ? ' session' : ''}`
    case 'oauth2':
    case 'openIdConnect':
    case 'mutualTLS':
      return schemeNames[scheme.type]
  }
}

export const schemeNames = {
  oauth2: 'OAuth 2.0',
  openIdConnect: 'OpenID Connect',
  mutualTLS: 'client certificate',
}

// A plain function, or a kind of which only the challenge is known
const undescribed = (leaf: Leaf): string => {
  if (leaf.fields !== undefined) return `form (${leaf.fields.join(', ')})`
  const name = challengeName(leaf)
  return name === undefined || name === 'Custom' ? 'custom' : `custom ${name}`
}

const challengeName = (leaf: Leaf): string | undefined => challengesOf(leaf)[0]?.scheme

const credentialInWords = ({ leaf, wrappers }: Pick<CredentialDemand, 'leaf' | 'wrappers'>): string =>
  [leafInWords(leaf), ...(leaf.decidedBy === undefined ? [] : [leaf.decidedBy]), ...wrappers].join(' ')

export interface Demanded {
  /** The credential, and the functions that decide about it: `bearer`, `basic throttled 5/900 s`. */
  readonly credential: string
  readonly scopes: ReadonlyArray<string>
  /** The names of the functions (`authorize`) that must allow it, too. */
  readonly authorizations: ReadonlyArray<string>
  /** The objects that must be for it, with digests of the functions that decide: `note by :id find 0123456789ab`. */
  readonly objects: ReadonlyArray<string>
}

export interface AccessPath {
  /** The credentials that are sent together, in the order of `allOf`. Empty for anonymous callers. */
  readonly demands: ReadonlyArray<Demanded>
  /** Whether bad credentials count as none (`lenient`), so that no caller is refused. */
  readonly takesAnything: boolean
}

export const publicAccess: AccessPath = { demands: [], takesAnything: true }

/** The ways in, each once. */
export const waysOf = (description: Description): ReadonlyArray<AccessPath> => {
  const ways = alternativesOf(description).map(({ demands, admitsAnything }) => ({
    demands: demands.map((demand) => ({
      credential: credentialInWords(demand),
      scopes: distinctScopes(demand.scopes),
      authorizations: demand.authorizations,
      objects: demand.objects,
    })),
    takesAnything: admitsAnything,
  }))
  return [...new Map(ways.map((way) => [JSON.stringify(way), way])).values()]
}

/** Ways in words: `bearer with scopes read write, or anonymous`. Of several credentials, each with conditions is in parentheses. */
export const waysInWords = (ways: ReadonlyArray<AccessPath>): string =>
  ways
    .map(({ demands, takesAnything }) => {
      const words = demands.length === 0 ? 'anonymous' : demands.map(demandInWords(demands.length > 1)).join(', and ')
      return takesAnything ? `${words} with any credentials` : words
    })
    .join(', or ')

const demandInWords =
  (isOneOfSeveral: boolean) =>
  ({ credential, scopes, authorizations, objects }: Demanded): string => {
    const conditions = [
      ...(scopes.length > 0 ? [`with scopes ${scopes.join(' ')}`] : []),
      ...authorizations.map((name) => `authorized by ${name}`),
      ...objects.map((object) => `for ${object}`),
    ]
    const words = [credential, ...conditions].join(' ')
    return isOneOfSeveral && conditions.length > 0 ? `(${words})` : words
  }

/** Whether every caller who gets in by the first also gets in by the second: it demands no more. */
const demandsNoMore = (first: AccessPath, second: AccessPath): boolean =>
  areMet(second.demands, first.demands) && (second.takesAnything || !first.takesAnything)

// Each by another credential, because two bearer tokens are more than one
const areMet = ([next, ...others]: ReadonlyArray<Demanded>, offered: ReadonlyArray<Demanded>): boolean =>
  next === undefined ||
  offered.some(
    (one, at) => demandsLess(next, one) && areMet(others, [...offered.slice(0, at), ...offered.slice(at + 1)]),
  )

const demandsLess = (less: Demanded, more: Demanded): boolean =>
  less.credential === more.credential &&
  less.scopes.every((scope) => more.scopes.includes(scope)) &&
  withoutThose(less.authorizations, more.authorizations).length === 0 &&
  withoutThose(less.objects, more.objects).length === 0

/** A demand of a credential without further conditions, except scopes. */
export const demandOf = (credential: string, scopes: ReadonlyArray<string> = []): Demanded => ({
  credential,
  scopes,
  authorizations: [],
  objects: [],
})

export const groupedBy = <A>(all: ReadonlyArray<A>, nameOf: (one: A) => string): ReadonlyMap<string, readonly A[]> => {
  const groups = new Map<string, A[]>()
  for (const one of all) {
    const name = nameOf(one)
    const same = groups.get(name)
    if (same === undefined) groups.set(name, [one])
    else same.push(one)
  }
  return groups
}

/** Those whose texts are not among the others. As multisets, because two operations, or two functions, may have one name. */
export const withoutThose = <A extends B, B = A>(
  some: ReadonlyArray<A>,
  others: ReadonlyArray<B>,
  text: (one: B) => string = String,
): ReadonlyArray<A> => {
  const left = new Map<string, number>()
  for (const one of others.map(text)) left.set(one, (left.get(one) ?? 0) + 1)
  return some.filter((one) => {
    const count = left.get(text(one)) ?? 0
    if (count > 0) left.set(text(one), count - 1)
    return count === 0
  })
}

/** How two lists of ways differ: more callers get in, fewer, the same, or others. */
export type Comparison = 'opened' | 'closed' | 'same' | 'other'

export const compareAccess = (before: ReadonlyArray<AccessPath>, after: ReadonlyArray<AccessPath>): Comparison => {
  const covers = (all: ReadonlyArray<AccessPath>, some: ReadonlyArray<AccessPath>): boolean =>
    some.every((way) => all.some((other) => demandsNoMore(way, other)))
  const [opensNothing, closesNothing] = [covers(before, after), covers(after, before)]
  if (opensNothing) return closesNothing ? 'same' : 'closed'
  return closesNothing ? 'opened' : 'other'
}

/** A function or an authenticator that decides, and its label in a policy file. */
export interface NamedDecider {
  readonly words: string
  /** The identity of the decider: the same in everything that combinators make of an authenticator. */
  readonly by: unknown
  readonly fix: string
}

export const namedIn = (description: Description): ReadonlyArray<NamedDecider> => {
  const { functions = [] } = description
  const isObject = description._tag === 'Scoped' && description.object !== undefined
  const fix = isObject
    ? 'give the objects different names'
    : "give the functions different names: authorize(f, { name }), or named('a name', f)"
  return [
    ...(description._tag === 'Leaf' ? kindIn(description) : children(description).flatMap(namedIn)),
    ...scopesReaderIn(description),
    ...functions.map(([words, by]) => ({
      words: description._tag === 'Leaf' && words === description.decidedBy ? `custom ${words}` : words,
      by,
      fix,
    })),
  ]
}

// A plain function is among the functions
const kindIn = (leaf: Leaf): ReadonlyArray<NamedDecider> => {
  if (leaf.isSent === undefined) return []
  const words = credentialInWords({ leaf, wrappers: leaf.wrappers ?? [] })
  return [{ words, by: leaf.by ?? leaf.isSent, fix: 'give each its own schemeName, or use one of them for both' }]
}

// The words do not say how scopes are found
const scopesReaderIn = (description: Description): ReadonlyArray<NamedDecider> => {
  if (description._tag !== 'Scoped' || description.by === undefined) return []
  const fix = 'use one function granted for both, or give the authenticators their own schemeName'
  return [{ words: descriptionInWords(description), by: description.by, fix }]
}
