/** Compares a run with the stored figures: which ones moved beyond the bounds of both. */
import { inDigits, type Figures } from './report.js'
import type { Row, Section } from './Section.js'

/** One row in two runs whose bounds do not meet. */
export interface Move {
  readonly title: string
  readonly before: Row
  readonly now: Row
}

export interface Comparison {
  /** The number of rows that both runs have, in units that can be compared. */
  readonly compared: number
  readonly moved: ReadonlyArray<Move>
}

const rowsOf = (sections: ReadonlyArray<Section>) =>
  sections.flatMap(({ title, rows }) => rows.map((row) => ({ title, row, key: `${title}: ${row.name}` })))

// Times and requests per second of another machine cannot be compared; ratios and sizes can
const ofTheMachine = new Set<Row['unit']>(['us', 'ms', 'req/s'])

/** Which rows moved. */
export const compared = (before: Figures, now: Figures): Comparison => {
  const known = new Map(rowsOf(before.sections).map(({ key, row }) => [key, row]))
  const pairs = rowsOf(now.sections).flatMap(({ key, title, row }) => {
    const kept = known.get(key)
    const isComparable = before.machine === now.machine || !ofTheMachine.has(row.unit)
    return kept === undefined || !isComparable || row.unit === 't' ? [] : [{ title, before: kept, now: row }]
  })
  const moved = pairs.filter(
    (pair) => pair.now.value.low > pair.before.value.high || pair.now.value.high < pair.before.value.low,
  )
  return { compared: pairs.length, moved }
}

/** The comparison as text. */
export const inWords = ({ compared: count, moved }: Comparison, since: string): string => {
  const lines = moved.map(({ title, before, now }) => {
    const text = ({ value: { value, low, high }, unit }: Row) =>
      `${inDigits(value, unit)} (${inDigits(low, unit)} to ${inDigits(high, unit)})`
    const word = now.value.value > before.value.value ? 'more' : 'less'
    return `  ${word}: ${title}: ${now.name}: ${text(before)} before, ${text(now)} ${now.unit} now`
  })
  return [`Since ${since}, ${moved.length} of ${count} rows moved beyond their bounds`, ...lines, ''].join('\n')
}
