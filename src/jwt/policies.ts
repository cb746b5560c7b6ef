/**
 * How long things are good: the options `keys`, `verified` and `cache`, with their defaults, in milliseconds.
 */
import { checkOptions, checkPositive } from '../core/misuse.js'

/** How the keys of a provider are kept. All in milliseconds. */
export interface KeyOptions {
  /** How long fetched keys are good without asking again. Default 600 000. */
  readonly maxAge?: number
  /** How often at most tokens with unknown keys cost a fetch. Default 30 000. */
  readonly cooldown?: number
  /** How long a fetch may take, discovery included. Default 5000. */
  readonly timeout?: number
  /** How long keys that are older than `maxAge` serve while the provider is down. Default 3 600 000. */
  readonly staleIfError?: number
  /** How long nothing is fetched after a fetch that failed. Default 10 000. */
  readonly retry?: number
  /** Whether keys are fetched anew before they are too old, while the old ones serve. Default `true`. */
  readonly refreshAhead?: boolean
}

/** The same, settled. */
export type KeyPolicy = Required<KeyOptions>

/** How verified tokens are kept. */
export interface CacheOptions {
  /** How many. Default 1000. */
  readonly size?: number
  /** How long, in milliseconds; never beyond the token's `exp`. */
  readonly maxAge?: number
}

const defaultKeys: KeyPolicy = {
  maxAge: 600_000,
  cooldown: 30_000,
  timeout: 5000,
  staleIfError: 3_600_000,
  retry: 10_000,
  refreshAhead: true,
}

const given = <A extends object>(options: A): Partial<A> =>
  // Safe: nothing but members that are undefined is left out
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<A>

// 0 means never
const checkDuration = (place: string, value: unknown): void => {
  if (value !== 0) checkPositive(place, value)
}

/** Settles how keys are kept. */
export const keyPolicyOf = (place: string, options: KeyOptions = {}): KeyPolicy => {
  checkOptions(place, options, Object.keys(defaultKeys))
  const policy = { ...defaultKeys, ...given(options) }
  const { refreshAhead, maxAge, timeout, retry, ...mayBeZero } = policy
  for (const [name, value] of Object.entries({ maxAge, timeout, retry })) checkPositive(`${place}.${name}`, value)
  for (const [name, value] of Object.entries(mayBeZero)) checkDuration(`${place}.${name}`, value)
  if (typeof refreshAhead !== 'boolean') throw new TypeError(`${place}.refreshAhead must be true or false`)
  return policy
}

/** Settles how verified tokens are kept; `undefined`: not at all. */
export const cachePolicyOf = (
  place: string,
  options: false | CacheOptions | undefined,
  maxAge: number,
): Required<CacheOptions> | undefined => {
  if (options === false) return undefined
  checkOptions(place, options ?? {}, ['size', 'maxAge'])
  const policy = { size: 1000, maxAge, ...given(options ?? {}) }
  for (const [name, value] of Object.entries(policy)) checkPositive(`${place}.${name}`, value)
  return policy
}
