/**
 * Deliveries count once, in all processes. A delivery is taken before its handler runs. It stays taken after a 2xx; after any other
 * answer it is released, so that the sender can try again.
 *
 * While the handler runs, it is taken for a short time only: a process that ends in the middle loses no delivery. So that a delivery that
 * was handled differs from a delivery that is being handled, a second id is taken before it and released after it: a request that gets
 * this id, and finds the first taken, knows that it was handled. A mistake of the store leaves the second id taken, which is a 409 for a while.
 */
import * as E from 'fp-ts/lib/Either.js'
import { setTimeout as pause } from 'node:timers/promises'
import { ageOf, thisMoment, type Moment } from '../core/data.js'
import type { Request } from '../core/Request.js'
import type { Result } from '../core/Result.js'
import { exchangeOf } from '../core/Exchange.js'
import { usedFor, type OneTimeIds } from '../core/OneTimeIds.js'

// How long a delivery stays taken if its process ends. Senders wait for some seconds
const LEASE = 600_000

// How long a response waits for a store that has to release a delivery
const RELEASE_TIMEOUT = 1000

type Taken = 'first' | 'taken' | 'handled'

/**
 * Takes a delivery by its ids, of which each must be free. `handled`: it had a 2xx; told only if `isTold`, otherwise it is `taken`, as a delivery
 * whose handler runs. It never rejects. `lifetime`: how long it stays taken after a 2xx, in milliseconds.
 */
export const takeOver = async (
  request: Request,
  spent: OneTimeIds,
  ids: ReadonlyArray<string>,
  lifetime: number,
  isTold: boolean,
): Promise<Result<Taken>> => {
  const lease = Math.min(LEASE, lifetime)
  const begun = thisMoment()
  const running = isTold ? ids.map((id) => `${id} running`) : []
  const taken: string[] = []
  for (const id of [...running, ...ids]) {
    const isRunning = running.includes(id)
    // a delivery whose process has ended must not look handled, so its own lease ends first
    const isFirst = await usedFor(request.req, spent, id, isTold && !isRunning ? lease * 0.9 : lease)
    if (isFirst === undefined || E.isLeft(isFirst)) {
      await releaseIds(spent, taken.reverse())
      return isFirst ?? E.right(isTold && !isRunning ? 'handled' : 'taken')
    }
    taken.push(id)
  }
  conclude(request, { spent, ids, running, lifetime, lease: lease * 0.9, begun })
  return E.right('first')
}

// One after the other, and none after a failure: the leases end later
const releaseIds = async (spent: OneTimeIds, ids: ReadonlyArray<string>, lifetime = 0): Promise<boolean> => {
  try {
    for (const id of ids) await spent.release(id, lifetime)
    return true
  } catch {
    return false
  }
}

interface TakenDelivery {
  readonly spent: OneTimeIds
  readonly ids: ReadonlyArray<string>
  readonly running: ReadonlyArray<string>
  readonly lifetime: number
  readonly lease: number
  readonly begun: Moment
}

const conclude = ({ ctx }: Request, { spent, ids, running, lifetime, lease, begun }: TakenDelivery): void => {
  const { res } = ctx
  let isKept: boolean | undefined
  const settle = async (isDone: boolean): Promise<void> => {
    if (isKept === isDone) return
    const wasReleased = isKept === false
    isKept = isDone
    if (wasReleased) await Promise.allSettled(ids.map((id) => spent.use(id, lifetime)))
    else if (isDone) await ((await releaseIds(spent, ids, lifetime)) && releaseIds(spent, running))
    // The client may send it again as soon as it has the answer. After the lease, another process may have taken it
    else if (ageOf(begun) < lease)
      await Promise.race([releaseIds(spent, [...ids, ...running]), pause(RELEASE_TIMEOUT, undefined, { ref: false })])
  }
  const exchange = exchangeOf(ctx)
  exchange.outcomes = [...(exchange.outcomes ?? []), settle]
  // The sent response counts: middleware above may have changed it, and a response may break off
  const onClose = (): void => void settle(res.writableFinished && res.statusCode < 300)
  if (res.destroyed || res.writableFinished) onClose()
  else res.once('close', onClose)
}
