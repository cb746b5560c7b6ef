/** The report of the benchmark: rows with a figure and its bounds, their targets, and whether these are met. */
import type { Estimate } from './statistics.js'

export type Unit = 'times' | 'us' | 'KB' | 'bytes' | 'ms' | 'req/s' | 't' | 'modules' | 'calls' | 'promises'

/** One line of the report. */
export interface Row {
  readonly name: string
  readonly value: Estimate
  readonly unit: Unit
  /** The upper limit of the figure, if that is the target. */
  readonly target?: number
  /** The lower limit of the figure, if that is the target. */
  readonly atLeast?: number
  /** The same contestant measured twice under the same conditions: about 1 in `times`, about 0 in other units. */
  readonly control?: Estimate
  /** A remark, which is not compared. */
  readonly note?: string
}

/** A row. `more`: its target, control or remark. */
export const row = (
  name: string,
  value: Estimate,
  unit: Unit,
  more: Omit<Row, 'name' | 'value' | 'unit'> = {},
): Row => ({
  name,
  value,
  unit,
  ...more,
})

export interface Section {
  readonly title: string
  readonly rows: ReadonlyArray<Row>
  /** The control of all rows in `times` without their own control. */
  readonly control?: Estimate
}

/** `undefined` for a row without a target. */
export type Verdict = 'met' | 'not met' | 'not decided' | undefined

const targetOf = ({ target, atLeast }: Row): number | undefined => target ?? atLeast

/** The control of a row. */
export const controlOf = (row: Row, section: Section): Estimate | undefined =>
  row.control ?? (targetOf(row) !== undefined && row.unit === 'times' ? section.control : undefined)

// A row can be wrong by as much as its control differs from itself
const widened = ({ value: { low, high }, unit }: Row, control: Estimate | undefined) => {
  if (control === undefined) return [low, high] as const
  if (unit !== 'times') return [low - Math.abs(control.value), high + Math.abs(control.value)] as const
  const by = Math.max(control.value, 1 / control.value)
  return [low / by, high * by] as const
}

const isKnown = (of: Estimate | undefined): boolean => of === undefined || Object.values(of).every(Number.isFinite)

/**
 * Met if the whole interval is on the right side, not met if the whole interval is on the wrong side. The interval is
 * first widened by what the control differs from itself.
 */
export const verdict = (row: Row, section: Section): Verdict => {
  const { target, atLeast } = row
  if (target === undefined && atLeast === undefined) return undefined
  const isRight = (figure: number) => figure <= (target ?? Infinity) && figure >= (atLeast ?? -Infinity)
  const control = controlOf(row, section)
  // a part of nothing has no figure, and in JSON it is null
  if (![row.value, control].every(isKnown)) return 'not decided'
  const [low, high] = widened(row, control).map(isRight)
  return low === high ? (low ? 'met' : 'not met') : 'not decided'
}
