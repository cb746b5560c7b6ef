/**
 * A document of a provider that is fetched at first use, and kept: when it is fetched again, and what happens while the
 * provider is down. The rules are those of `jwt/keySet.ts`.
 *
 * | the known document is    | and                             | so                                                     |
 * |--------------------------|---------------------------------|--------------------------------------------------------|
 * | younger than `maxAge`    |                                 | it is used                                             |
 * | older, or there is none  | the last fetch went well        | every caller waits for one fetch                       |
 * | older                    | the last fetch failed           | it is used for `staleIfError`; a fetch each `retry`    |
 * | none, or too old         | it failed less than `retry` ago | unavailable, without a fetch                           |
 */
import * as E from 'fp-ts/lib/Either.js'
import { unavailable, type AuthError } from '../../core/AuthError.js'
import { ageOf, thisMoment, type Moment } from '../../core/data.js'
import { providerKeys, report } from '../../core/events.js'
import { Outage } from '../../jwt/fetching.js'
import type { KeyPolicy } from '../../jwt/keySet.js'

/** A document that is kept. */
export interface Kept<A> {
  /** The document; unavailable if there is none that can be used. Never rejects. */
  readonly current: () => Promise<E.Either<AuthError, A>>
  /** A newer document than this one, which lacked something; the same one if the provider has no newer. Never rejects. */
  readonly newer: (than: A) => Promise<E.Either<AuthError, A>>
}

interface Known<A> {
  readonly value: A
  readonly text: string
  readonly loadedAt: Moment
}

const isWithin = (since: Moment | undefined, ms: number): boolean => since !== undefined && ageOf(since) < ms

/**
 * Keeps what `fetch` resolves to, which must be JSON. `fetch` rejects with an `Outage` for anything that cannot be used.
 * `issuer` is whose document it is, for records.
 */
export const kept = <A extends object>(issuer: string, fetch: () => Promise<A>, policy: KeyPolicy): Kept<A> => {
  const { maxAge, cooldown, staleIfError, retry } = policy
  let known: Known<A> | undefined
  let failedAt: Moment | undefined
  let missedAt: Moment | undefined
  let loading: Promise<boolean> | undefined

  const load = async (): Promise<boolean> => {
    const loadedAt = thisMoment()
    const took = () => performance.now() - loadedAt.monotonic
    try {
      const fetched = await fetch()
      const text = JSON.stringify(fetched)
      const changed = known?.text !== text
      // the same object for the same document, so that `newer` recognizes it
      known = { value: known === undefined || changed ? fetched : known.value, text, loadedAt }
      failedAt = undefined
      report(providerKeys)(() => ({ event: 'refreshed', issuer, changed, durationMs: took() }))
      return true
    } catch (error) {
      failedAt = thisMoment()
      const problem = error instanceof Outage ? error.message : 'answered what openid-client does not take'
      const servesForMs = known === undefined ? 0 : Math.max(0, maxAge + staleIfError - ageOf(known.loadedAt))
      report(providerKeys)(() => ({ event: 'failed', issuer, problem, servesForMs, durationMs: took() }))
      return false
    }
  }
  const refresh = (): Promise<boolean> =>
    (loading ??= load().finally(() => {
      loading = undefined
    }))

  const isPaused = (): boolean => isWithin(failedAt, retry)
  const outage = (): E.Either<AuthError, never> => {
    const next = retry - (failedAt === undefined ? 0 : ageOf(failedAt))
    return E.left(unavailable(Math.max(1, Math.ceil(next / 1000))))
  }
  const stillGood = (): E.Either<AuthError, A> =>
    known !== undefined && isWithin(known.loadedAt, maxAge + staleIfError) ? E.right(known.value) : outage()

  const current = async (): Promise<E.Either<AuthError, A>> => {
    if (known !== undefined && isWithin(known.loadedAt, maxAge)) return E.right(known.value)
    if (isPaused()) return stillGood()
    const isDown = failedAt !== undefined
    const loaded = refresh()
    // in an outage, no caller waits for an answer that may not come
    const good = isDown ? stillGood() : undefined
    if (good !== undefined && E.isRight(good)) return good
    await loaded
    return stillGood()
  }

  const newer = async (than: A): Promise<E.Either<AuthError, A>> => {
    if (known !== undefined && known.value !== than) return E.right(known.value)
    if (isPaused()) return outage()
    if (failedAt === undefined && isWithin(missedAt, cooldown)) return E.right(than)
    if (!(await refresh())) return outage()
    missedAt = thisMoment()
    return stillGood()
  }
  return { current, newer }
}
