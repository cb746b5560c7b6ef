/**
 * The keys of a provider that are fetched by HTTP: when they are fetched, how long they can be used, and what happens
 * while the provider is down: there is stale-if-error, and a pause after a failed fetch.
 *
 * | the known keys are       | and                             | so                                                  |
 * |--------------------------|---------------------------------|-----------------------------------------------------|
 * | younger than `maxAge`    |                                 | they are used; near the end they are fetched ahead  |
 * | older, or there are none | the last fetch went well        | every request waits for one fetch                   |
 * | older                    | the last fetch failed           | they are used for `staleIfError`; a fetch each `retry` |
 * | none, or too old         | it failed less than `retry` ago | 503, without a fetch                                |
 * | without a token's key    | fetched within `cooldown`       | 503, without a fetch: the key may be new            |
 */
import * as E from 'fp-ts/lib/Either.js'
import { unavailable, type AuthError } from '../core/AuthError.js'
import type { Evaluation } from '../core/Result.js'
import { ageOf, isYounger, thisMoment, type Moment } from '../core/data.js'
import { providerKeys, report } from '../core/events.js'
import { singleFlight } from '../core/memory.js'
import { checkOptions, flag, maybe, positive, type Check, type Checks, type Given } from '../core/options.js'
import { Outage } from './fetching.js'
import { parseJwks, type Keys, type SigningKeySet } from './signature.js'

/*
 * The options `keys`, `verified` and `cache` with their defaults, in milliseconds.
 */

/** How the keys of a provider are kept. All times are in milliseconds. */
export interface KeyOptions {
  /** How long fetched keys are used without a new fetch. Default 600 000. */
  readonly maxAge?: number | undefined
  /** The shortest time between two fetches for tokens with unknown keys; until then another unknown key is a 503. Default 30 000. */
  readonly cooldown?: number | undefined
  /** How long a fetch may take, discovery included. Default 5000. */
  readonly timeout?: number | undefined
  /** How long keys older than `maxAge` are used while the provider is down. Default 3 600 000. */
  readonly staleIfError?: number | undefined
  /** The pause after a failed fetch. Default 10 000. */
  readonly retry?: number | undefined
  /** Whether new keys are fetched before the old ones are too old. Default `true`. */
  readonly refreshAhead?: boolean | undefined
}

/** The options with their defaults. */
export type KeyPolicy = Required<Given<KeyOptions>>

/** How verified tokens are kept. */
export interface CacheOptions {
  /** How many. Default 1000. */
  readonly size?: number | undefined
  /** How long, in milliseconds; never beyond the token's `exp`. */
  readonly maxAge?: number | undefined
}

const defaultKeys: KeyPolicy = {
  maxAge: 600_000,
  cooldown: 30_000,
  timeout: 5000,
  staleIfError: 3_600_000,
  retry: 10_000,
  refreshAhead: true,
}

/** A number of seconds or milliseconds; 0 is allowed. */
export const duration: Check = (where, value) => {
  if (value !== 0) positive(where, value)
}

const keyChecks: Checks<KeyOptions> = {
  maxAge: maybe(positive),
  cooldown: maybe(duration),
  timeout: maybe(positive),
  staleIfError: maybe(duration),
  retry: maybe(positive),
  refreshAhead: maybe(flag),
}

/** Checks the options, and adds the defaults. */
export const keyPolicyOf = (where: string, options: KeyOptions = {}): KeyPolicy => ({
  ...defaultKeys,
  ...checkOptions(where, options, keyChecks),
})

/** Checks the options of a cache, and adds the defaults; `undefined` for `false`. */
export const cachePolicyOf = (
  where: string,
  options: false | CacheOptions = {},
  maxAge: number,
): Required<Given<CacheOptions>> | undefined =>
  options === false
    ? undefined
    : { size: 1000, maxAge, ...checkOptions(where, options, { size: maybe(positive), maxAge: maybe(positive) }) }

/** Where the keys of an issuer come from. */
export interface KeySource {
  /** The current keys; a promise if they must be fetched first. */
  readonly current: () => Evaluation<Keys>
  /** How many fetches have begun. */
  readonly begun: () => number
  /**
   * Other keys to try if `than` has none for a token. `began` is what `begun` returned when the request came. `wanted` names the key.
   */
  readonly afterMiss: (than: Keys, began: number, wanted: string) => Promise<E.Either<AuthError, Keys | undefined>>
  /** Fetches missing keys. Never rejects. */
  readonly ready: () => Promise<void>
}

/** Given keys, which never change. */
export const staticKeys = (keys: Keys): KeySource => {
  const right = E.right(keys)
  const none = Promise.resolve(E.right(undefined))
  return { current: () => right, begun: () => 0, afterMiss: () => none, ready: () => Promise.resolve() }
}

// From this part of `maxAge` on, new keys are fetched while the old ones are used
const AHEAD = 0.8

// How many names of missing keys are kept: anybody can send new ones
const MAX_MISSING = 1000

interface Known {
  readonly keys: Keys
  readonly right: E.Either<never, Keys>
  readonly text: string
  readonly loadedAt: Moment
  /** The number of the fetch. */
  readonly fetch: number
}

interface State {
  latest: Known | undefined
  /** When the last fetch failed; `undefined` if it succeeded. */
  failedAt: Moment | undefined
  /** When keys were last fetched for a token whose key was not among them. */
  missedAt: Moment | undefined
  /** The keys that the last fetch did not bring, by their names. */
  missing: Set<string>
  begun: number
}

/** Calls for changes of fetched keys. */
export interface KeyEvents {
  /** The issuer of the keys. */
  readonly issuer: string
  /** An outage has begun, with this problem. */
  readonly failed: (problem: string) => void
  /** These keys were replaced. */
  readonly replaced: (keys: Keys) => void
}

/** Keys that are fetched. */
export const remoteKeys = (
  fetch: (signal: AbortSignal) => Promise<SigningKeySet>,
  { maxAge, cooldown, timeout, staleIfError, retry, refreshAhead }: KeyPolicy,
  { issuer, failed, replaced }: KeyEvents,
): KeySource => {
  const state: State = {
    latest: undefined,
    failedAt: undefined,
    missedAt: undefined,
    missing: new Set(),
    begun: 0,
  }

  const load = async (): Promise<boolean> => {
    const fetchNumber = ++state.begun
    state.missing.clear()
    const loadedAt = thisMoment()
    try {
      const jwks = await fetch(AbortSignal.timeout(Math.ceil(timeout)))
      const text = JSON.stringify(jwks)
      // the same object for the same keys, so that verified tokens stay verified
      const before = state.latest
      const keys = before?.text === text ? before.keys : parseJwks(jwks)
      state.latest = { keys, right: E.right(keys), text, loadedAt, fetch: fetchNumber }
      state.failedAt = undefined
      const changed = before?.keys !== keys
      if (before !== undefined && changed) replaced(before.keys)
      report(providerKeys)(() => ({
        event: 'refreshed',
        issuer,
        changed,
        durationMs: performance.now() - loadedAt.monotonic,
      }))
      return true
    } catch (error) {
      const isNew = state.failedAt === undefined
      state.failedAt = thisMoment()
      const problem = error instanceof Outage ? error.message : 'answered keys that cannot be read'
      if (isNew) failed(problem)
      const servesForMs =
        state.latest === undefined ? 0 : Math.max(0, maxAge + staleIfError - ageOf(state.latest.loadedAt))
      const durationMs = performance.now() - loadedAt.monotonic
      report(providerKeys)(() => ({ event: 'failed', issuer, problem, servesForMs, durationMs }))
      return false
    }
  }
  const refresh = singleFlight(load)

  const isPaused = (): boolean => isYounger(state.failedAt, retry)
  const outageFor = (ms: number): E.Either<AuthError, never> => E.left(unavailable(Math.max(1, Math.ceil(ms / 1000))))
  const outage = (): E.Either<AuthError, never> =>
    outageFor(retry - (state.failedAt === undefined ? 0 : ageOf(state.failedAt)))
  const isStillValid = (): E.Either<AuthError, Keys> =>
    state.latest !== undefined && isYounger(state.latest.loadedAt, maxAge + staleIfError)
      ? state.latest.right
      : outage()

  const current = (): Evaluation<Keys> => {
    const { latest: latest } = state
    if (latest !== undefined && isYounger(latest.loadedAt, maxAge)) {
      if (refreshAhead && !isYounger(latest.loadedAt, maxAge * AHEAD) && !isPaused()) void refresh()
      return latest.right
    }
    if (isPaused()) return isStillValid()
    const isDown = state.failedAt !== undefined
    const loading = refresh()
    // in an outage, no request waits for an answer that may not come
    const good = isDown ? isStillValid() : undefined
    return good !== undefined && E.isRight(good) ? good : loading.then(isStillValid)
  }

  const unknown = E.right(undefined)
  const noteMissing = (wanted: string) => {
    if (state.missing.size < MAX_MISSING) state.missing.add(wanted)
    return unknown
  }
  const afterMiss = async (
    than: Keys,
    began: number,
    wanted: string,
  ): Promise<E.Either<AuthError, Keys | undefined>> => {
    const { latest: latest } = state
    if (latest !== undefined && latest.keys !== than) return latest.right
    if (isPaused()) return outage()
    // the keys were fetched after this request came, so the provider does not have the key
    if (latest !== undefined && latest.fetch > began) {
      state.missedAt = thisMoment()
      return noteMissing(wanted)
    }
    // a new key may have signed it, and it is not known before the next fetch
    if (state.failedAt === undefined && state.missedAt !== undefined && isYounger(state.missedAt, cooldown)) {
      return state.missing.has(wanted) ? unknown : outageFor(cooldown - ageOf(state.missedAt))
    }
    if (!(await refresh())) return outage()
    state.missedAt = thisMoment()
    return state.latest === undefined || state.latest.keys === than ? noteMissing(wanted) : state.latest.right
  }

  const ready = async (): Promise<void> => {
    if (!isYounger(state.latest?.loadedAt, maxAge) && !isPaused()) await refresh()
  }
  return { current, begun: () => state.begun, afterMiss, ready }
}
