/**
 * One fetch of the keys with which a provider signs its tokens. No key is in it, and nothing of what was answered.
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
      /** Whether they are other keys than before, as after a rotation. The first ones are. */
      readonly changed: boolean
    })
  | (Fetched & {
      readonly event: 'failed'
      /** What went wrong, as `answered 502`. */
      readonly problem: string
      /** For how long the keys that are known still serve, in milliseconds. 0: requests are answered 503. */
      readonly servesForMs: number
    })
