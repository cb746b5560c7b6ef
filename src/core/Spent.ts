/** One-time ids: what may happen once is spent before it happens. */

/** One-time ids: `spend` resolves to `true` for one caller only, however many processes race. It rejects in an outage. */
export interface Spent {
  /** Spends an id for `lifetime`, in milliseconds. */
  readonly spend: (id: string, lifetime: number) => Promise<boolean>
}
