/**
 * A way in: what a caller must send together, and what must have been granted. An operation with alternatives has
 * several. If anonymous callers get in, one has no credentials.
 *
 * It says less than a description, but enough to compare which callers two policies let in.
 */
import type { Description } from '../core/Description.js'
import { leafInWords } from './words.js'

/** One way into an operation. */
export interface Way {
  /** What is sent, in words: `bearer`, `API key in header X-API-Key`. Empty for anonymous callers. */
  readonly credentials: ReadonlyArray<string>
  /** The scopes that must have been granted. */
  readonly scopes: ReadonlyArray<string>
  /** How many functions (`authorize`) must allow it, too. */
  readonly authorizations: number
  /** Whether bad credentials count as none (`lenient`), so that no caller is refused. */
  readonly takesAnything: boolean
}

const anonymous: Way = { credentials: [], scopes: [], authorizations: 0, takesAnything: false }

/** The way into a public operation. */
export const anyone: Way = { ...anonymous, takesAnything: true }

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

/** The ways that an authenticator leaves open, in the order tried. */
export const waysOf = (description: Description): ReadonlyArray<Way> => {
  switch (description._tag) {
    case 'Leaf':
      return [{ ...anonymous, credentials: [leafInWords(description)] }]
    case 'AnyOf':
      return distinct(description.members.flatMap(waysOf))
    case 'AllOf':
      return distinct(description.members.map(waysOf).reduce(product, [anonymous]))
    case 'Optional':
      return distinct([...waysOf(description.member), description.lenient ? anyone : anonymous])
    case 'Scoped':
      return distinct(waysOf(description.member).map((way) => scoped(way, description.scopes)))
  }
}

const product = (some: ReadonlyArray<Way>, others: ReadonlyArray<Way>): ReadonlyArray<Way> =>
  some.flatMap((one) =>
    others.map((other) => ({
      credentials: [...one.credentials, ...other.credentials],
      scopes: union(one.scopes, other.scopes),
      authorizations: one.authorizations + other.authorizations,
      takesAnything: one.takesAnything || other.takesAnything,
    })),
  )

const scoped = (way: Way, scopes: ReadonlyArray<string>): Way =>
  scopes.length > 0 ? { ...way, scopes: union(way.scopes, scopes) } : { ...way, authorizations: way.authorizations + 1 }

const union = (some: ReadonlyArray<string>, others: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set([...some, ...others]),
]

const distinct = (ways: ReadonlyArray<Way>): ReadonlyArray<Way> => [
  ...new Map(ways.map((way) => [JSON.stringify(way), way])).values(),
]

// -------------------------------------------------------------------------------------
// order
// -------------------------------------------------------------------------------------

/** Whether every caller who gets in by the first also gets in by the second: it demands no more. */
export const demandsNoMore = (first: Way, second: Way): boolean =>
  isWithin(second.credentials, first.credentials) &&
  second.scopes.every((scope) => first.scopes.includes(scope)) &&
  second.authorizations <= first.authorizations &&
  (second.takesAnything || !first.takesAnything)

// As multisets, because two bearer tokens are more than one
const isWithin = (some: ReadonlyArray<string>, all: ReadonlyArray<string>): boolean => {
  const left = [...all]
  return some.every((one) => {
    const at = left.indexOf(one)
    return at >= 0 && left.splice(at, 1).length === 1
  })
}

/** How two lists of ways differ: more callers get in, fewer, the same ones, or others. */
export const change = (
  before: ReadonlyArray<Way>,
  after: ReadonlyArray<Way>,
): 'opened' | 'closed' | 'same' | 'other' => {
  const covers = (all: ReadonlyArray<Way>, some: ReadonlyArray<Way>): boolean =>
    some.every((way) => all.some((other) => demandsNoMore(way, other)))
  const [opensNothing, closesNothing] = [covers(before, after), covers(after, before)]
  if (opensNothing) return closesNothing ? 'same' : 'closed'
  return closesNothing ? 'opened' : 'other'
}
