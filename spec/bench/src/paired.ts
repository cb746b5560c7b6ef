/**
 * Runs contestants in one process, in short batches and in changing order, so that each round compares them under the
 * same conditions.
 */
import { row, type Row } from './Section.js'
import { estimate, median, type Estimate } from './statistics.js'

export interface Contestant {
  readonly name: string
  /** Answers one request. */
  readonly run: () => Promise<unknown>
  /** Requests in one round, instead of `batch`, for a contestant that takes a thousandth of the others' time. */
  readonly batch?: number
}

/** Nanoseconds per request, by contestant and round. */
export type Times = ReadonlyMap<string, ReadonlyArray<number>>

export interface Pace {
  readonly rounds: number
  /** Requests of one contestant in one round. */
  readonly batch: number
  /** Requests of each contestant before the first round. Default: 4000, fewer with short batches. */
  readonly warmUp?: number
  /**
   * What is measured. Processor time does not include other processes, so it fits code on one thread. Default: `time`.
   */
  readonly clock?: 'time' | 'processor'
}

const clocks = {
  time: () => Number(process.hrtime.bigint()),
  processor: () => {
    const { user, system } = process.cpuUsage()
    return (user + system) * 1000
  },
}

const batchOf = async ({ run, batch: own }: Contestant, common: number, clock: () => number): Promise<number> => {
  const batch = own ?? common
  const begun = clock()
  for (let at = 0; at < batch; at++) await run()
  return (clock() - begun) / batch
}

// Warms each contestant up, so that compiled code is measured
const WARM_UP = 4000

// A different order in each round, but the same orders in each run, so that no contestant always follows the same one
export const shuffled = <A>(all: ReadonlyArray<A>, round: number): ReadonlyArray<A> => {
  let seed = round * 2_654_435_761 + 1
  const order = all.map((one) => {
    seed = (seed * 1_664_525 + 1_013_904_223) >>> 0
    return { one, at: seed }
  })
  return order.sort((a, b) => a.at - b.at).map(({ one }) => one)
}

export const race = async (
  contestants: ReadonlyArray<Contestant>,
  { rounds, batch, warmUp, clock = 'time' }: Pace,
): Promise<Times> => {
  const read = clocks[clock]
  const times = new Map(contestants.map(({ name }) => [name, [] as number[]]))
  for (let warm = 0; warm < (warmUp ?? WARM_UP * Math.min(1, batch / 40)); warm += batch) {
    for (const contestant of contestants) await batchOf(contestant, batch, read)
  }
  for (let round = 0; round < rounds; round++) {
    for (const contestant of shuffled(contestants, round)) {
      times.get(contestant.name)?.push(await batchOf(contestant, batch, read))
    }
  }
  return times
}

const of = (times: Times, name: string): ReadonlyArray<number> => {
  const found = times.get(name)
  if (found === undefined) throw new Error(`no contestant is called ${name}`)
  return found
}

const at = (values: ReadonlyArray<number>, index: number): number => values[index] ?? Number.NaN

/** Microseconds per request. */
export const microseconds = (times: Times, name: string): number => median(of(times, name)) / 1000

/** The ratio of one contestant to another, in the median round. */
export const ratio = (times: Times, name: string, to: string): Estimate => {
  const [a, b] = [of(times, name), of(times, to)]
  return estimate(a.length, (rounds) => median(rounds.map((round) => at(a, round) / at(b, round))))
}

/** What a contestant adds to its bare framework, in microseconds. */
export const added = (times: Times, name: string, bare: string): Estimate => {
  const [a, b] = [of(times, name), of(times, bare)]
  return estimate(a.length, (rounds) => median(rounds.map((round) => (at(a, round) - at(b, round)) / 1000)))
}

/** What a contestant adds to its bare framework, as a ratio to what another adds to its own. */
export const addedRatio = (
  times: Times,
  [name, bare]: readonly [string, string],
  [other, otherBare]: readonly [string, string],
): Estimate => {
  const [a, b, c, d] = [of(times, name), of(times, bare), of(times, other), of(times, otherBare)]
  return estimate(
    a.length,
    (rounds) =>
      median(rounds.map((round) => at(a, round) - at(b, round))) /
      median(rounds.map((round) => at(c, round) - at(d, round))),
  )
}

/** The same work by hand and by this library. */
export interface Pair {
  readonly name: string
  readonly hand: Contestant['run']
  readonly mine: Contestant['run']
  readonly target: number
}

/** A row for each pair. The one by hand runs twice, as the control. */
export const besideByHand = async (pairs: ReadonlyArray<Pair>, pace: Pace): Promise<ReadonlyArray<Row>> => {
  const times = await race(
    pairs.flatMap(({ name, hand, mine }) => [
      { name: `${name} by hand`, run: hand },
      { name: `${name} by hand, again`, run: hand },
      { name, run: mine },
    ]),
    pace,
  )
  return pairs.map(({ name, target }) =>
    row(name, ratio(times, name, `${name} by hand`), 'times', {
      target,
      control: ratio(times, `${name} by hand, again`, `${name} by hand`),
      note: `by hand ${microseconds(times, `${name} by hand`).toFixed(1)} us`,
    }),
  )
}
