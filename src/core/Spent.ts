/** One-time ids: what may happen once is spent before it happens. */
import type { IncomingMessage } from 'node:http'
import * as E from 'fp-ts/lib/Either.js'
import { unavailable, type AuthError } from './AuthError.js'

/** One-time ids: `spend` resolves to `true` for one caller only, however many processes race. It rejects in an outage. */
export interface Spent {
  /** Spends an id for `lifetime`, in milliseconds. */
  readonly spend: (id: string, lifetime: number) => Promise<boolean>
  /**
   * Lets a spent id be spent again: at once, or after `lifetime` milliseconds, which may be longer or shorter than before. Does nothing
   * for an id that is not spent.
   */
  readonly release?: ((id: string, lifetime?: number) => Promise<void>) | undefined
}

/** One-time ids that can be released. Webhooks need them, because a delivery that failed may come again. */
export interface ReleasableSpent extends Spent {
  /** Lets a spent id be spent again: at once, or after `lifetime` milliseconds. */
  readonly release: (id: string, lifetime?: number) => Promise<void>
}

interface Spending {
  readonly spent: Spent
  readonly id: string
  readonly isSpent: Promise<E.Either<AuthError, true> | undefined>
}

// Levels and lists may ask about one request several times
const spendings = new WeakMap<IncomingMessage, Spending[]>()

/** @internal Spends an id for a request. The promise never rejects; it resolves to `undefined` if another request has spent the id. */
export const spentFor = (request: IncomingMessage, spent: Spent, id: string, lifetime: number): Spending['isSpent'] => {
  const before = spendings.get(request) ?? []
  const previous = before.find((one) => one.spent === spent && one.id === id)
  if (previous !== undefined) return previous.isSpent
  const isSpent = spend(spent, id, lifetime)
  spendings.set(request, [...before, { spent, id, isSpent }])
  return isSpent
}

const spend = async (spent: Spent, id: string, lifetime: number): Spending['isSpent'] => {
  try {
    return (await spent.spend(id, lifetime)) === true ? E.right(true) : undefined
  } catch {
    return E.left(unavailable())
  }
}
