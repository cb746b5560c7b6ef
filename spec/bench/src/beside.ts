/** Times two applications with the same answers in one process, the check by hand twice, and compares them over several processes. */
import type { RequestListener } from 'node:http'
import { race, type Contestant, type Pace } from './paired.js'
import type { Question } from './alike.js'
import { row, type Row } from './Section.js'
import { median, ofProcesses, type Estimate } from './statistics.js'
import { ask } from './stub.js'

/** What one kind measured in one process. */
export interface Measured {
  readonly name: string
  /** Nanoseconds of a request by hand. */
  readonly cost: number
  readonly ours: ReadonlyArray<number>
  readonly control: ReadonlyArray<number>
}

const roles = ['by hand', 'by hand, again', 'ours'] as const

/** The times of each question. */
export const measured = async (
  questions: ReadonlyArray<Question>,
  apps: { readonly 'by hand': RequestListener; readonly ours: RequestListener },
  pace: Pace,
): Promise<ReadonlyArray<Measured>> => {
  const contestants = questions.flatMap(({ name, url, headers, ...asked }): Contestant[] =>
    roles.map((role) => {
      const listener = role === 'ours' ? apps.ours : apps['by hand']
      return { name: `${name}: ${role}`, run: () => ask(listener, url, headers, asked) }
    }),
  )
  const times = await race(contestants, pace)
  return questions.map(({ name }) => {
    const [first = [], again = [], mine = []] = roles.map((role) => times.get(`${name}: ${role}`))
    const beside = (some: ReadonlyArray<number>) => some.map((time, round) => time / (first[round] ?? Number.NaN))
    return { name, cost: median(first), ours: beside(mine), control: beside(again) }
  })
}

/** The rows of what several processes measured. */
export const rowsOf = (
  questions: ReadonlyArray<Question & { readonly target?: number }>,
  runs: ReadonlyArray<ReadonlyArray<Measured>>,
): ReadonlyArray<Row> => {
  const of = (kind: string, figures: (one: Measured) => ReadonlyArray<number>): Estimate =>
    ofProcesses(runs.map((run) => run.filter(({ name }) => name === kind).flatMap(figures)))
  return questions.map(({ name, target }) => {
    const cost = of(name, (one) => [one.cost / 1000])
    const ours = of(name, (one) => one.ours)
    return row(name, ours, 'times', {
      control: of(name, (one) => one.control),
      note: `by hand ${cost.value.toFixed(1)} us`,
      ...(target !== undefined && { target }),
    })
  })
}
