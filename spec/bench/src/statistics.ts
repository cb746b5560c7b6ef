/**
 * Medians, and 95 % intervals by the bootstrap over rounds: rounds are drawn many times, and the statistic is computed
 * for each drawing.
 */

export const quantile = (values: ReadonlyArray<number>, q: number): number => {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

export const median = (values: ReadonlyArray<number>): number => quantile(values, 0.5)

/** The lower quartile: what other programs delayed is above it. */
export const lowerQuartile = (values: ReadonlyArray<number>): number => quantile(values, 0.25)

export interface Estimate {
  readonly value: number
  readonly low: number
  readonly high: number
}

/** A figure that is known without doubt. */
export const exactly = (value: number): Estimate => ({ value, low: value, high: value })

const DRAWINGS = 1000

// Always the same drawings, so that the figures of a run can be computed again
const random = (seed: number) => (): number => {
  seed = (seed * 1_664_525 + 1_013_904_223) >>> 0
  return seed / 2 ** 32
}

/** A statistic of rounds, with its bounds. */
export const estimate = (rounds: number, statistic: (indices: ReadonlyArray<number>) => number): Estimate => {
  const next = random(42)
  const all = Array.from({ length: rounds }, (_, at) => at)
  const drawn = Array.from({ length: DRAWINGS }, () => statistic(all.map(() => Math.floor(next() * rounds))))
  return { value: statistic(all), low: quantile(drawn, 0.025), high: quantile(drawn, 0.975) }
}

/** The median of one figure of each round, with its bounds. */
export const medianOf = (figures: ReadonlyArray<number>): Estimate =>
  estimate(figures.length, (rounds) => median(rounds.map((round) => figures[round] ?? Number.NaN)))

/**
 * A median of what several processes measured, each in several rounds. Processes are drawn, too: two that run the same
 * code differ, because it is at another place in memory and was compiled at another time.
 */
export const ofProcesses = (processes: ReadonlyArray<ReadonlyArray<number>>): Estimate => {
  const next = random(42)
  const drawnOf = <A>(some: ReadonlyArray<A>): A[] =>
    some.flatMap(() => some.slice(Math.floor(next() * some.length)).slice(0, 1))
  const drawn = Array.from({ length: DRAWINGS }, () => median(drawnOf(processes).flatMap(drawnOf)))
  return { value: median(processes.flat()), low: quantile(drawn, 0.025), high: quantile(drawn, 0.975) }
}
