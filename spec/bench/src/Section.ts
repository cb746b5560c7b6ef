/** The report of the benchmark: rows with a figure and its bounds, their targets, and whether these are met. */
import type { Estimate } from './statistics.js'

export type Unit = 'times' | 'us' | 'KB' | 'bytes' | 'ms' | 'req/s' | 't' | 'modules'

/** One line of the report. */
export interface Row {
  readonly name: string
  readonly value: Estimate
  readonly unit: Unit
  /** What it should be at most. */
  readonly target?: number
  /** What it should be at least. */
  readonly atLeast?: number
  /** The same contestant beside itself, under the same weather: in `times` about 1, in other units about 0. */
  readonly control?: Estimate
  /** What else is worth knowing: not compared. */
  readonly note?: string
}

export interface Section {
  readonly title: string
  readonly rows: ReadonlyArray<Row>
  /** The control of all its rows in `times` that have none of their own. */
  readonly control?: Estimate
}

/** `undefined` for a row without a target. */
export type Verdict = 'met' | 'not met' | 'not decided' | undefined

const targetOf = ({ target, atLeast }: Row): number | undefined => target ?? atLeast

/** The control that a row is held against. */
export const controlOf = (row: Row, section: Section): Estimate | undefined =>
  row.control ?? (targetOf(row) !== undefined && row.unit === 'times' ? section.control : undefined)

// What a contestant differs from itself by, a row may be wrong by
const widened = ({ value: { low, high }, unit }: Row, control: Estimate | undefined) => {
  if (control === undefined) return [low, high] as const
  if (unit !== 'times') return [low - Math.abs(control.value), high + Math.abs(control.value)] as const
  const by = Math.max(control.value, 1 / control.value)
  return [low / by, high * by] as const
}

/**
 * Met where the whole of the bounds is on the right side, not met where the whole is on the wrong one. Before that the bounds are
 * widened by what the control differs from itself.
 */
export const verdict = (row: Row, section: Section): Verdict => {
  const { target, atLeast } = row
  if (target === undefined && atLeast === undefined) return undefined
  const isRight = (figure: number) => figure <= (target ?? Infinity) && figure >= (atLeast ?? -Infinity)
  const [low, high] = widened(row, controlOf(row, section)).map(isRight)
  return low === high ? (low ? 'met' : 'not met') : 'not decided'
}
