/**
 * The guesses that a request has made so far: a mark on the request, written where a guess stays counted.
 *
 * In a list several kinds may read one credential, such as two that read Basic. It is one guess, whichever of them are asked,
 * and none where one of them knows it: without that, whoever only the second one knows would use up the limit by signing in.
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

/** Keeps a guess counted until the same credential turns out to be known. */
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

/** Those of the counts that this credential has not been counted under. */
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

/** Gives back what was counted for a credential: one of the kinds knows it. */
export const release = (request: Guessing, sent: unknown): void => {
  const before = request[guessedMark]
  if (before === undefined) return
  request[guessedMark] = before.filter((one) => one.sent !== sent)
  for (const { sent: other, counted } of before) if (other === sent) takeBack(counted)
}
