/**
 * How old something is in this process, by two clocks. The greater age counts, so nothing is kept for too long.
 *
 * Somebody can set the system clock back. The monotonic clock (`performance.now()`) can stop while a machine sleeps, or while a
 * function that a cloud runs is frozen.
 */

/** A moment by both clocks, in milliseconds. */
export interface Moment {
  readonly monotonic: number
  readonly system: number
}

/** This moment. */
export const thisMoment = (): Moment => ({ monotonic: performance.now(), system: Date.now() })

/** How long ago a moment was, in milliseconds. */
export const ageOf = ({ monotonic, system }: Moment): number =>
  Math.max(performance.now() - monotonic, Date.now() - system)
