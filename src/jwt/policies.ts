/**
 * The options `keys`, `verified` and `cache` with their defaults, in milliseconds.
 */
import { checkOptions, flag, maybe, positive, type Check, type Checks, type Given } from '../core/options.js'

/** How the keys of a provider are kept. All times are in milliseconds. */
export interface KeyOptions {
  /** How long fetched keys are used without a new fetch. Default 600 000. */
  readonly maxAge?: number | undefined
  /** The shortest time between two fetches for tokens with unknown keys. Default 30 000. */
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
export const duration: Check = (place, value) => {
  if (value !== 0) positive(place, value)
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
export const keyPolicyOf = (place: string, options: KeyOptions = {}): KeyPolicy => ({
  ...defaultKeys,
  ...checkOptions(place, options, keyChecks),
})

/** Checks the options of a cache, and adds the defaults; `undefined` for `false`. */
export const cachePolicyOf = (
  place: string,
  options: false | CacheOptions = {},
  maxAge: number,
): Required<Given<CacheOptions>> | undefined =>
  options === false
    ? undefined
    : { size: 1000, maxAge, ...checkOptions(place, options, { size: maybe(positive), maxAge: maybe(positive) }) }
