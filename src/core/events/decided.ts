/**
 * What a result says in a record: outcome, failure, branches, and which schemes let in. It is called where somebody listens.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { alternativesOf } from '../alternatives.js'
import { isAnonymous } from '../Evaluation.js'
import { branchesOf, type AuthError } from '../AuthError.js'
import { leaves, type Description, type Leaf } from '../Description.js'
import { schemeNameOf } from '../schemeName.js'
import type { Decision, DecisionBranch, Outcome } from './Decision.js'

type Decided = Pick<Decision, 'outcome' | 'failure' | 'branches' | 'scheme' | 'via' | 'retryAfter'>

const outcomes: Readonly<Record<AuthError['_tag'], Outcome>> = {
  absent: 'refused',
  malformed: 'refused',
  invalid: 'refused',
  expired: 'refused',
  forged: 'forbidden',
  insufficient: 'forbidden',
  throttled: 'throttled',
  unavailable: 'unavailable',
  raised: 'raised',
}

/** What a result is in a record; `passed` are the kinds that let in, in order. */
export const decided = (
  description: Description,
  result: E.Either<AuthError, unknown>,
  passed: ReadonlyArray<Leaf>,
  request: Request,
): Decided => {
  const nameOf = (leaf: Leaf): string => schemeNameOf(leaf, request) ?? 'custom'
  if (E.isRight(result)) {
    if (isAnonymous(result)) return { outcome: 'anonymous' }
    const via = viaOf(description, result.right)
    const names = sentTogether(description, passed).map(nameOf)
    return {
      outcome: 'accepted',
      ...(names.length > 0 && { scheme: names.join(' + ') }),
      ...(via !== undefined && { via }),
    }
  }
  const error = result.left
  const all = leaves(description)
  const [only] = all
  const branches = all.length === 1 ? [] : named(branchesOf(error), all, nameOf)
  return {
    outcome: outcomes[error._tag],
    failure: error._tag,
    ...(branches.length > 0 && { branches: Object.freeze(branches) }),
    ...(all.length === 1 && only !== undefined && { scheme: nameOf(only) }),
    ...('retryAfter' in error && error.retryAfter !== undefined && { retryAfter: error.retryAfter }),
  }
}

// Kinds that passed and did not let in are parts of an alternative that failed
const sentTogether = (description: Description, passed: ReadonlyArray<Leaf>): ReadonlyArray<Leaf> => {
  if (description._tag === 'Leaf') return [description]
  const last = passed.at(-1)
  if (last === undefined) return []
  const whole = alternativesOf(description)
    .map((alternative) => alternative.map(({ leaf }) => leaf))
    .find((each) => each.includes(last) && each.every((leaf) => passed.includes(leaf)))
  return whole ?? [last]
}

// Branches come in the order of their kinds, and each carries the challenge of its own
const named = (
  branches: ReadonlyArray<AuthError>,
  all: ReadonlyArray<Leaf>,
  nameOf: (leaf: Leaf) => string,
): DecisionBranch[] => {
  let at = 0
  return branches.map((branch) => {
    const found = all.findIndex((leaf, index) => index >= at && challengesWith(leaf, branch))
    if (found >= 0) at = found + 1
    const leaf = all[found]
    return Object.freeze<DecisionBranch>({
      scheme: leaf === undefined ? 'custom' : nameOf(leaf),
      failure: branch._tag,
      ...(branch.skipped === true && { skipped: true }),
    })
  })
}

const challengesWith = ({ challenge }: Leaf, error: AuthError): boolean => {
  if (error.challenge === undefined) return false
  try {
    return (typeof challenge === 'function' ? challenge(error) : challenge).scheme === error.challenge.scheme
  } catch {
    return false
  }
}

// A record of alternatives says which one let in
const viaOf = (description: Description, principal: unknown): string | undefined => {
  if (description._tag !== 'AnyOf' || typeof principal !== 'object' || principal === null) return undefined
  if (!('via' in principal) || !('principal' in principal)) return undefined
  return typeof principal.via === 'string' ? principal.via : undefined
}
