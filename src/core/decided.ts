/**
 * Writes a result into a record: outcome, failure, branches, and the schemes that let in. What does not depend on the
 * request is computed once for each description, and only if there is a subscriber.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from 'koa'
import { branchesOf, type AuthError } from './AuthError.js'
import { decideOf, make, mapLeaves, type Authenticator } from './Authenticator.js'
import { alternativesOf, leaves, schemeNameOf, type Description, type Leaf } from './Description.js'
import { andThen, isAnonymous } from './Result.js'
import type { Decision, DecisionBranch, Outcome } from './events.js'

/** A record that is not published yet, so it can be written to: one object a request. */
export type Draft = { -readonly [K in keyof Decision]: Decision[K] }

/** Writes what was decided into a draft; `passed` are the kinds that let in, in order. */
export type Decided = (
  draft: Draft,
  result: E.Either<AuthError, unknown>,
  passed: ReadonlyArray<Leaf>,
  request: Request,
) => void

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

/** How results of an authenticator with this description are written into records. */
export const decidedBy = (description: Description): Decided => {
  const all = leaves(description)
  const only = all.length === 1 ? all[0] : undefined
  const schemes = new Map(all.map((leaf) => [leaf, schemeNamerOf(leaf)]))
  const nameOf: Named = (leaf, request) => schemes.get(leaf)?.(request) ?? 'custom'
  const sentTogether = alternativeThatPassed(description)

  const schemeOf = (passed: ReadonlyArray<Leaf>, request: Request): string | undefined => {
    if (only !== undefined) return nameOf(only, request)
    const sent = sentTogether(passed)
    return sent.length === 0 ? undefined : sent.map((leaf) => nameOf(leaf, request)).join(' + ')
  }
  const accepted: Decided = (draft, result, passed, request) => {
    if (E.isLeft(result)) return
    draft.outcome = 'accepted'
    const scheme = schemeOf(passed, request)
    if (scheme !== undefined) draft.scheme = scheme
    const via = description._tag === 'AnyOf' ? viaOf(result.right) : undefined
    if (via !== undefined) draft.via = via
  }
  const failed = (draft: Draft, error: AuthError, request: Request): void => {
    draft.outcome = outcomes[error._tag]
    draft.failure = error._tag
    if (only !== undefined) draft.scheme = nameOf(only, request)
    else {
      const branches = named(branchesOf(error), all, (leaf) => nameOf(leaf, request))
      if (branches.length > 0) draft.branches = Object.freeze(branches)
    }
    if ('retryAfter' in error && error.retryAfter !== undefined) draft.retryAfter = error.retryAfter
  }
  return (draft, result, passed, request) => {
    if (E.isLeft(result)) failed(draft, result.left, request)
    else if (isAnonymous(result)) draft.outcome = 'anonymous'
    else accepted(draft, result, passed, request)
  }
}

type Named = (leaf: Leaf, request: Request) => string

// A name that no request changes is made once
const schemeNamerOf = (leaf: Leaf): ((request: Request) => string | undefined) => {
  if (leaf.schemeFor !== undefined) return (request) => schemeNameOf(leaf, request)
  const name = schemeNameOf(leaf)
  return () => name
}

// In `[allOf([a, b]), c]`, `a` can pass although `c` let in. The alternative that is complete is reported
const alternativeThatPassed = (description: Description) => {
  const alternatives = alternativesOf(description).map(({ demands }) => demands.map(({ leaf }) => leaf))
  // one credential each: the last that passed is the one that let in
  if (alternatives.every(({ length }) => length <= 1)) return (passed: ReadonlyArray<Leaf>) => passed.slice(-1)
  return (passed: ReadonlyArray<Leaf>): ReadonlyArray<Leaf> => {
    const last = passed.at(-1)
    if (last === undefined) return []
    const whole = alternatives.find((each) => each.includes(last) && each.every((leaf) => passed.includes(leaf)))
    return whole ?? [last]
  }
}

// Relies on `alt`, `allOf` and `firstPresent`: they collect branches in the order of the leaves
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

// An object of alternatives reports which one let in
const viaOf = (principal: unknown): string | undefined => {
  if (typeof principal !== 'object' || principal === null) return undefined
  if (!('via' in principal) || !('principal' in principal)) return undefined
  return typeof principal.via === 'string' ? principal.via : undefined
}

/**
 * An authenticator that decides as this one does, and notes in the attempt which of its kinds let in. The record of a decision needs
 * that, so it is made only if there is a subscriber. One with a single kind needs no notes.
 */
export const recordingLeaves = (self: Authenticator<unknown>): Authenticator<unknown> =>
  leaves(self.description).length === 1 ? self : mapLeaves(self, recordingLeaf)

const recordingLeaf = (self: Authenticator<unknown>): Authenticator<unknown> => {
  const { description } = self
  if (description._tag !== 'Leaf') return self
  const decide = decideOf(self)
  return make(description, (attempt) =>
    andThen(decide(attempt), (result) => {
      if (E.isRight(result)) (attempt.passed ??= []).push(description)
      return result
    }),
  )
}
