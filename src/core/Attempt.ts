/**
 * One decision about one request: the guard makes it, the tree of the authenticator hands it down, and it is gone with the decision.
 *
 * So what a part of the tree notes for another part never has to be removed. Without an attempt, `evaluate` makes one.
 */
import type { Request } from 'koa'
import type { Leaf } from './Description.js'
import type { Decode, Decoded } from './Result.js'

/** What is known of one decision. */
export interface Attempt {
  /** The request that it is about. */
  readonly request: Request
  /** @internal The kinds that let in, in order; only if a record of the decision needs them. */
  passed: Leaf[] | undefined
  /** @internal The guesses that stay counted, see `guesses/throttled.ts`. */
  guesses: ReadonlyArray<PendingGuess> | undefined
  /** @internal The credentials that were decoded before their kind was asked. */
  decoded: DecodedAhead | undefined
  /** @internal Whether a remembered verification answered. */
  isRecalled: boolean
  /** @internal Whether no guess is counted, nor refused by a count: `expectGuarded` sends wrong credentials on purpose. */
  isUncounted: boolean
  /** @internal Whether something else than a credential decided (`recoverUnavailable`). */
  isRecovered: boolean
  /** @internal The access token that was accepted. A part of the tree that goes on without it restores the one before. */
  token: unknown
}

/** @internal A guess that is counted, unless a kind later knows its credential. */
export interface PendingGuess {
  readonly sent: unknown
  readonly limiter: object
  readonly key: string
  readonly takeBack: () => void
}

/** @internal What one `decode` made of one value. */
export interface DecodedAhead {
  readonly decode: Decode
  readonly sent: unknown
  readonly credentials: Decoded
}

/** Begins a decision about a request. */
export const newAttempt = (request: Request): Attempt => ({
  request,
  passed: undefined,
  guesses: undefined,
  decoded: undefined,
  isRecalled: false,
  isUncounted: false,
  isRecovered: false,
  token: undefined,
})
