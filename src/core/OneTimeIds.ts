/** One-time ids: an id is used before the change that may happen once. */
import type { IncomingMessage } from 'node:http'
import * as E from 'fp-ts/lib/Either.js'
import { unavailable, type AuthError } from './AuthError.js'

/** One-time ids, such as those of webhook deliveries, proofs and links. `oneTimeIds` of `koa-with-auth/stores` makes them. */
export interface OneTimeIds {
  /**
   * Uses an id, and keeps that for `lifetime` milliseconds. Resolves to `true` for one caller only, however many processes race, and
   * to `false` for all others. Rejects in an outage, and with a TypeError for an id that is no string.
   */
  readonly use: (id: string, lifetime: number) => Promise<boolean>
  /**
   * Lets a used id be used again: at once, or after `lifetime` milliseconds, which may be longer or shorter than before. Does nothing
   * for an id that is not used. Rejects like `use`.
   */
  readonly release: (id: string, lifetime?: number) => Promise<void>
}

/** For code that uses ids and never releases them. */
export type UsedOnce = Pick<OneTimeIds, 'use'>

interface Use {
  readonly ids: UsedOnce
  readonly id: string
  readonly isFirst: Promise<E.Either<AuthError, true> | undefined>
}

// Levels and lists may ask about one request several times
const uses = new WeakMap<IncomingMessage, Use[]>()

/** @internal Uses an id for a request. The promise never rejects; it resolves to `undefined` if another request has used the id. */
export const usedFor = (request: IncomingMessage, ids: UsedOnce, id: string, lifetime: number): Use['isFirst'] => {
  const before = uses.get(request) ?? []
  const previous = before.find((one) => one.ids === ids && one.id === id)
  if (previous !== undefined) return previous.isFirst
  const isFirst = firstUse(ids, id, lifetime)
  uses.set(request, [...before, { ids, id, isFirst }])
  return isFirst
}

const firstUse = async (ids: UsedOnce, id: string, lifetime: number): Use['isFirst'] => {
  try {
    return (await ids.use(id, lifetime)) === true ? E.right(true) : undefined
  } catch {
    return E.left(unavailable())
  }
}
