/**
 * An outage of a store, which the requests to it showed. Nothing asks a store only to make this record.
 */

/** What a store keeps. */
export type StoreContent = 'api-keys' | 'sessions'

interface Outage {
  /** What the store keeps. */
  readonly store: StoreContent
}

/** An outage of a store that begins, or that is over; frozen. */
export type StoreOutageEvent =
  | (Outage & {
      readonly event: 'begun'
      /** Whether it failed, or did not answer in time. */
      readonly reason: 'failed' | 'silent'
    })
  | (Outage & {
      readonly event: 'over'
      /** How long it lasted, from the first failure to the first answer, in milliseconds. */
      readonly durationMs: number
    })
