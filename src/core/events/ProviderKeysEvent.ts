/**
 * One fetch of the keys with which a provider signs its tokens. The record contains no key and no part of the response.
 */

interface Fetched {
  /** The issuer whose keys they are. */
  readonly issuer: string
  /** How long the fetch took, in milliseconds; discovery is part of it. */
  readonly durationMs: number
}

/** A fetch of a provider's keys; frozen. */
export type ProviderKeysEvent =
  | (Fetched & {
      readonly event: 'refreshed'
      /** Whether the keys differ from those before, such as after a rotation. `true` for the first ones. */
      readonly changed: boolean
    })
  | (Fetched & {
      readonly event: 'failed'
      /** What went wrong, such as `answered 502`. */
      readonly problem: string
      /** For how long the known keys can still be used, in milliseconds. 0: requests are answered 503. */
      readonly servesForMs: number
    })
