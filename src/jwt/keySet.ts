/**
 * The keys of a provider that are fetched by HTTP, and its other documents: when they are fetched, how long they can be
 * used, and outages of the provider: there is stale-if-error, and a pause after a failed fetch.
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
import { unavailable } from '../core/AuthError.js'
import type { Evaluation, Result } from '../core/Result.js'
import { ageOf, isYounger, thisMoment, type Moment } from '../core/data.js'
import { report } from '../core/events.js'
import { singleFlight } from '../core/memory.js'
import * as is from '../core/checks.js'
import { checkOptions, type Checks, type Given } from '../core/options.js'
import { fetchJson, Outage, withinTime } from './fetching.js'
import { parseJwks, usableKeys, type Keys, type SigningKeySet } from './signature.js'

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
  /** Whether new keys are fetched before the old keys are too old. Default `true`. */
  readonly refreshAhead?: boolean | undefined
}

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

const keyChecks: Checks<KeyOptions> = {
  maxAge: is.maybe(is.positive),
  cooldown: is.maybe(is.except(0, is.positive)),
  timeout: is.maybe(is.positive),
  staleIfError: is.maybe(is.except(0, is.positive)),
  retry: is.maybe(is.positive),
  refreshAhead: is.maybe(is.flag),
}

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
    : {
        size: 1000,
        maxAge,
        ...checkOptions(where, options, { size: is.maybe(is.positive), maxAge: is.maybe(is.positive) }),
      }

export interface SigningKeySource {
  /** The current keys; a promise if they must be fetched first. */
  readonly current: () => Evaluation<Keys>
  readonly begun: () => number
  /** Other keys to try if `than` has none for a token. `began` is the result of `begun` when the request came. `wanted` names the key. */
  readonly afterMiss: (than: Keys, began: number, wanted: string) => Promise<Result<Keys | undefined>>
  /** Fetches missing keys. Never rejects. */
  readonly ready: () => Promise<void>
}

// From this part of `maxAge` on, new keys are fetched while the old keys are used
const REFRESH_AHEAD = 0.8

// How many names of missing keys are stored: anybody can send new names
const MAX_MISSING = 1000

export interface KeyEvents {
  readonly issuer: string
  readonly failed: (problem: string) => void
}

const outageFor = (ms: number): Result<never> => E.left(unavailable(Math.max(1, Math.ceil(ms / 1000))))

interface DocumentOptions<J, A> {
  readonly fetch: (signal: AbortSignal) => Promise<J>
  readonly read: (json: J) => A
  /** The problem if `fetch` or `read` throws anything but an `Outage`. */
  readonly unreadable: string
  readonly issuer: string
  readonly failed: (problem: string) => void
}

/**
 * A document of a provider, such as its keys: fetched at first use, and kept by the rules above. A fetch that is not over after `timeout`
 * is forgotten, so the next request fetches again. The same document is the same value.
 */
export class FetchedDocument<J, A> {
  /** The document that was fetched last, however old it is. */
  latest:
    | {
        readonly value: A
        readonly right: E.Either<never, A>
        readonly text: string
        readonly loadedAt: Moment
        readonly fetch: number
      }
    | undefined
  begun = 0
  /** Fetches it; whether that went well. Never rejects. */
  readonly refresh: () => Promise<boolean>
  // when the last fetch failed; `undefined` if it succeeded
  #failedAt: Moment | undefined
  readonly #options: DocumentOptions<J, A>
  readonly #policy: KeyPolicy

  constructor(options: DocumentOptions<J, A>, policy: KeyPolicy) {
    this.#options = options
    this.#policy = policy
    this.refresh = singleFlight(() => this.#load())
  }

  async #load(): Promise<boolean> {
    const { issuer, fetch, read } = this.#options
    const fetchNumber = ++this.begun
    const loadedAt = thisMoment()
    const took = () => performance.now() - loadedAt.monotonic
    try {
      const json = await withinTime(this.#policy.timeout, fetch)
      const text = JSON.stringify(json)
      const before = this.latest
      const changed = before?.text !== text
      // the same object for the same keys, so that verified tokens stay verified
      const value = before === undefined || changed ? read(json) : before.value
      this.latest = { value, right: E.right(value), text, loadedAt, fetch: fetchNumber }
      this.#failedAt = undefined
      report('provider-keys')(() => ({ event: 'refreshed', issuer, changed, durationMs: took() }))
      return true
    } catch (error) {
      this.#fail(error instanceof Outage ? error.message : this.#options.unreadable, took)
      return false
    }
  }

  #fail(problem: string, took: () => number): void {
    const { issuer, failed } = this.#options
    const { maxAge, staleIfError } = this.#policy
    const isNew = this.#failedAt === undefined
    this.#failedAt = thisMoment()
    if (isNew) failed(problem)
    const servesForMs = this.latest === undefined ? 0 : Math.max(0, maxAge + staleIfError - ageOf(this.latest.loadedAt))
    report('provider-keys')(() => ({ event: 'failed', issuer, problem, servesForMs, durationMs: took() }))
  }

  /** The document; a promise if it must be fetched first. Unavailable if there is none that can be used. */
  readonly current = (): Evaluation<A> => {
    const { maxAge, refreshAhead } = this.#policy
    const { latest } = this
    // both clocks are read once for a request
    const age = latest === undefined ? Infinity : ageOf(latest.loadedAt)
    if (latest !== undefined && age < maxAge) {
      if (refreshAhead && age >= maxAge * REFRESH_AHEAD && !this.isPaused()) void this.refresh()
      return latest.right
    }
    if (this.isPaused()) return this.#ifStillValid()
    const { isDown } = this
    const loading = this.refresh()
    // in an outage, no request waits for an answer that may not come
    const good = isDown ? this.#ifStillValid() : undefined
    return good !== undefined && E.isRight(good) ? good : loading.then(() => this.#ifStillValid())
  }

  #ifStillValid(): Result<A> {
    const { maxAge, staleIfError } = this.#policy
    const { latest } = this
    return latest !== undefined && isYounger(latest.loadedAt, maxAge + staleIfError) ? latest.right : this.outage()
  }

  get isDown(): boolean {
    return this.#failedAt !== undefined
  }

  /** Whether nothing is fetched now, because that failed a moment ago. */
  isPaused(): boolean {
    return isYounger(this.#failedAt, this.#policy.retry)
  }

  outage(): Result<never> {
    return outageFor(this.#policy.retry - (this.#failedAt === undefined ? 0 : ageOf(this.#failedAt)))
  }

  /** Fetches it if it is missing or too old. Never rejects. */
  readonly ready = async (): Promise<void> => {
    if (!isYounger(this.latest?.loadedAt, this.#policy.maxAge) && !this.isPaused()) await this.refresh()
  }
}

/** Fetches the keys at an address. Rejects with an `Outage` if there is none that can verify. */
export const fetchJwks = async (url: string, signal: AbortSignal): Promise<SigningKeySet> => {
  const headers = { Accept: 'application/json, application/jwk-set+json' }
  const jwks = usableKeys(await fetchJson(url, { signal, headers }))
  if (jwks === undefined) throw new Outage('answered a key set without a key for signatures', true)
  return jwks
}

interface RemoteKeys {
  readonly document: FetchedDocument<SigningKeySet, Keys>
  readonly cooldown: number
  /** When keys were last fetched for a token whose key was not among them. */
  missedAt: Moment | undefined
  /** The keys that the last fetch did not bring, by their names. */
  readonly missing: Set<string>
}

export const remoteKeys = (
  fetch: (signal: AbortSignal) => Promise<SigningKeySet>,
  policy: KeyPolicy,
  events: KeyEvents,
): SigningKeySource => {
  const missing = new Set<string>()
  const fetching = (signal: AbortSignal): Promise<SigningKeySet> => {
    missing.clear()
    return fetch(signal)
  }
  const document = new FetchedDocument(
    { fetch: fetching, read: parseJwks, unreadable: 'answered keys that cannot be read', ...events },
    policy,
  )
  const self: RemoteKeys = { document, cooldown: policy.cooldown, missedAt: undefined, missing }
  return {
    current: document.current,
    begun: () => document.begun,
    afterMiss: (than, began, wanted) => afterMiss(self, than, began, wanted),
    ready: document.ready,
  }
}

const noOtherKeys = E.right(undefined)

const noteMissing = ({ missing }: RemoteKeys, wanted: string) => {
  if (missing.size < MAX_MISSING) missing.add(wanted)
  return noOtherKeys
}

const afterMiss = async (
  self: RemoteKeys,
  than: Keys,
  began: number,
  wanted: string,
): Promise<Result<Keys | undefined>> => {
  const { document, cooldown, missing } = self
  const known = document.latest
  if (known !== undefined && known.value !== than) return known.right
  if (document.isPaused()) return document.outage()
  // the keys were fetched after this request came, so the provider does not have the key
  if (known !== undefined && known.fetch > began) {
    self.missedAt = thisMoment()
    return noteMissing(self, wanted)
  }
  // a new key may have signed it, and it is not known before the next fetch
  if (!document.isDown && self.missedAt !== undefined && isYounger(self.missedAt, cooldown)) {
    return missing.has(wanted) ? noOtherKeys : outageFor(cooldown - ageOf(self.missedAt))
  }
  if (!(await document.refresh())) return document.outage()
  self.missedAt = thisMoment()
  const newest = document.latest
  return newest === undefined || newest.value === than ? noteMissing(self, wanted) : newest.right
}
