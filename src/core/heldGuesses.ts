/**
 * The guesses of a request that stay counted, as a mark on the request.
 *
 * In a list, several kinds may read one credential, such as two that read Basic. It counts as one guess. If one of them
 * knows the credential, it does not count. Otherwise users whom only the second kind knows would use up the limit by
 * signing in.
 */
import type { Request } from 'koa'
import type { Count } from './Guess.js'
import { takeBack, type Counted } from './Limiter.js'
import { guessedMark } from './marks.js'

interface Held {
  readonly sent: unknown
  readonly count: Count
  readonly counted: Counted
}

type Guessing = Request & { [guessedMark]?: ReadonlyArray<Held> | undefined }

/** Keeps a guess counted, unless a kind later knows the same credential. */
export const hold = (
  request: Guessing,
  sent: unknown,
  counts: ReadonlyArray<Count>,
  all: ReadonlyArray<Counted>,
): void => {
  const held = counts.flatMap((count, at) => {
    const counted = all[at]
    return counted?._tag === 'Counted' ? [{ sent, count, counted }] : []
  })
  request[guessedMark] = [...(request[guessedMark] ?? []), ...held]
}

/** The counts that do not contain this credential yet. */
export const notHeld = (request: Guessing, sent: unknown, counts: ReadonlyArray<Count>): ReadonlyArray<Count> => {
  const before = request[guessedMark]
  if (before === undefined) return counts
  return counts.filter(
    ({ limiter, key }) =>
      !before.some((one) => one.sent === sent && one.count.limiter === limiter && one.count.key === key),
  )
}

/** Whether any guess is counted. */
export const isHolding = (request: Guessing): boolean => request[guessedMark] !== undefined

/** Takes back what was counted for a credential, because one of the kinds knows it. */
export const release = (request: Guessing, sent: unknown): void => {
  const before = request[guessedMark]
  if (before === undefined) return
  request[guessedMark] = before.filter((one) => one.sent !== sent)
  for (const { sent: other, counted } of before) if (other === sent) takeBack(counted)
}
