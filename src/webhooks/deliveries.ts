/**
 * Deliveries count once, in all processes. A delivery is taken before its handler runs. It stays taken after a 2xx; after any other
 * answer it is released, so that the sender can try again.
 *
 * While the handler runs, it is taken for a short time only: a process that ends in the middle loses no delivery.
 */
import * as E from 'fp-ts/lib/Either.js'
import { setTimeout as pause } from 'node:timers/promises'
import type { Request } from '../core/Request.js'
import type { AuthError } from '../core/AuthError.js'
import { exchangeOf } from '../core/Exchange.js'
import { usedFor, type OneTimeIds } from '../core/OneTimeIds.js'

// How long a delivery stays taken if its process ends. Senders wait for some seconds
const LEASE = 600_000

// How long a response waits for a store that has to release a delivery
const PATIENCE = 1000

/**
 * Takes a delivery by its ids, of which each must be free. Resolves to `false` if it was taken before. It never rejects. `lifetime`: how
 * long it stays taken after a 2xx, in milliseconds.
 */
export const takeOver = async (
  request: Request,
  spent: OneTimeIds,
  ids: ReadonlyArray<string>,
  lifetime: number,
): Promise<E.Either<AuthError, boolean>> => {
  const taken: string[] = []
  for (const id of ids) {
    const isFirst = await usedFor(request.req, spent, id, Math.min(LEASE, lifetime))
    if (isFirst === undefined || E.isLeft(isFirst)) {
      await release(spent, taken)
      return isFirst ?? E.right(false)
    }
    taken.push(id)
  }
  conclude(request, spent, ids, lifetime)
  return E.right(true)
}

const release = async (spent: OneTimeIds, ids: ReadonlyArray<string>, lifetime = 0): Promise<void> => {
  // A store that fails ends the lease later
  await Promise.allSettled(ids.map((id) => spent.release(id, lifetime)))
}

const conclude = ({ ctx }: Request, spent: OneTimeIds, ids: ReadonlyArray<string>, lifetime: number): void => {
  const { res } = ctx
  let isKept: boolean | undefined
  const settle = async (isDone: boolean): Promise<void> => {
    if (isKept === isDone) return
    const wasReleased = isKept === false
    isKept = isDone
    if (wasReleased) await Promise.allSettled(ids.map((id) => spent.use(id, lifetime)))
    else if (isDone) await release(spent, ids, lifetime)
    // The client may send it again as soon as it has the answer
    else await Promise.race([release(spent, ids), pause(PATIENCE, undefined, { ref: false })])
  }
  const exchange = exchangeOf(ctx)
  exchange.outcomes = [...(exchange.outcomes ?? []), settle]
  // What was sent in the end counts: middleware above may have changed it, and a response may break off
  const onClose = (): void => void settle(res.writableFinished && res.statusCode >= 200 && res.statusCode < 300)
  if (res.destroyed || res.writableFinished) onClose()
  else res.once('close', onClose)
}
