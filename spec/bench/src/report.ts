/** The report as text for a terminal, and as the tables of README.md. */
import { reasons } from './reasons.js'
import { controlOf, verdict, type Row, type Section, type Unit } from './Section.js'
import type { Estimate } from './statistics.js'

/** The result of a run. `figures.json` has the last one that was stored. */
export interface Figures {
  readonly machine: string
  /** The day, as `2026-01-31`. */
  readonly date: string
  readonly quick: boolean
  readonly sections: ReadonlyArray<Section>
}

const digits: Readonly<Record<Unit, number>> = {
  times: 3,
  us: 2,
  KB: 2,
  bytes: 0,
  ms: 0,
  'req/s': 0,
  t: 1,
  modules: 0,
  calls: 0,
  promises: 0,
}

/** A figure in its unit, without the unit. A part of nothing has none: in JSON it is null. */
export const inDigits = (figure: number, unit: Unit): string =>
  !Number.isFinite(figure)
    ? 'unknown'
    : unit === 'times' && Math.abs(figure) < 0.1
      ? figure.toPrecision(2)
      : figure.toFixed(digits[unit])

const bounded = ({ value, low, high }: Estimate, unit: Unit): string => {
  const [median, from, to] = [value, low, high].map((figure) => inDigits(figure, unit))
  return from === to && median === from ? `${median}` : `${median} (${from} to ${to})`
}
const targetIn = ({ target, atLeast, unit }: Row): string =>
  target !== undefined
    ? `at most ${inDigits(target, unit)}`
    : atLeast !== undefined
      ? `at least ${inDigits(atLeast, unit)}`
      : ''
const controlIn = (row: Row, section: Section): string => {
  const control = controlOf(row, section)
  return control === undefined ? '' : bounded(control, row.unit)
}

const columns = ['', 'median (95 % bounds)', 'unit', 'target', 'met?', 'control']
const cells = (row: Row, section: Section): ReadonlyArray<string> => [
  row.note === undefined ? row.name : `${row.name} (${row.note})`,
  bounded(row.value, row.unit),
  row.unit,
  targetIn(row),
  verdict(row, section) ?? '',
  controlIn(row, section),
]

const aligned = (lines: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> => {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)))
}

/** A section, for a terminal. */
export const asText = (section: Section): string => {
  const lines = aligned([columns, ...section.rows.map((row) => cells(row, section))])
  return `${section.title}\n\n${lines.map((line) => `  ${line.join('  ').trimEnd()}`).join('\n')}\n`
}

const targetsOf = (sections: ReadonlyArray<Section>) => {
  const rows = sections.flatMap((section) =>
    section.rows.filter((row) => verdict(row, section) !== undefined).map((row) => [row, section] as const),
  )
  const count = (wanted: string) => rows.filter(([row, section]) => verdict(row, section) === wanted).length
  return {
    /** The numbers of rows that are met, not met, and not decided. */
    sum: `${count('met')} met, ${count('not met')} not met, ${count('not decided')} not decided`,
    lines: rows.map(([row, section]) => [
      verdict(row, section) ?? '',
      targetIn(row),
      `${bounded(row.value, row.unit)} ${row.unit}`,
      `${section.title}: ${row.name}`,
    ]),
  }
}

/** All rows with a target: the target, the figure, and whether it is met. */
export const targets = (sections: ReadonlyArray<Section>): string => {
  const { sum, lines } = targetsOf(sections)
  return `Targets: ${sum}\n\n${aligned(lines)
    .map((line) => `  ${line.join('  ').trimEnd()}`)
    .join('\n')}\n`
}

// --- README.md

const tableOf = (lines: ReadonlyArray<ReadonlyArray<string>>): string => {
  const [head = [], ...rest] = aligned(lines)
  const rule = head.map((cell) => '-'.repeat(cell.length))
  return [head, rule, ...rest].map((line) => `| ${line.join(' | ')} |`).join('\n')
}

const upper = (cell: string): string => `${cell.charAt(0).toUpperCase()}${cell.slice(1)}`

const markdownTable = (section: Section): string => {
  const hasTargets = section.rows.some((row) => verdict(row, section) !== undefined)
  const head = columns.map((cell, at) => (at === 0 ? 'Measured' : upper(cell)))
  const lines = [head, ...section.rows.map((row) => cells(row, section))]
  return tableOf(lines.map((line) => (hasTargets ? line : line.slice(0, 3))))
}

const targetTable = (sections: ReadonlyArray<Section>): string => {
  const { sum, lines } = targetsOf(sections)
  const table = tableOf([
    ['Measured', 'Target', 'Median (95 % bounds)', 'Met?'],
    ...lines.map(([met = '', target = '', figure = '', name = '']) => [name, target, figure, met]),
  ])
  return `### Targets\n\n${sum}.\n\n${table}`
}

const isMet = (row: Row, section: Section): boolean => [undefined, 'met'].includes(verdict(row, section))

// Each row that is not met, and those not decided whose reason is known
const missed = (sections: ReadonlyArray<Section>): string => {
  const lines = sections.flatMap((section) =>
    section.rows.flatMap((row) => {
      const reason = reasons[row.name]
      if (isMet(row, section) || (reason === undefined && verdict(row, section) !== 'not met')) return []
      const figure = `${inDigits(row.value.value, row.unit)} ${row.unit}`
      return `- **${section.title}: ${row.name}**: ${figure}, target ${targetIn(row)}, ${verdict(row, section)}. ${reason ?? ''}`.trimEnd()
    }),
  )
  return ['### What is not met, and why', lines.join('\n')].join('\n\n')
}

/** The figures as README.md has them. */
export const asMarkdown = ({ machine, date, quick, sections }: Figures): string =>
  [
    `From ${machine}, ${date}${quick ? ', by a quick run: the bounds are wide' : ''}.`,
    targetTable(sections),
    missed(sections),
    ...sections.map((section) => `### ${section.title}\n\n${markdownTable(section)}`),
  ].join('\n\n')

const [BEGIN, END] = ['<!-- figures: npm run bench -- --markdown writes them -->', '<!-- end of figures -->']

/** A README with its figures replaced. Throws where it has no place for them. */
export const withFigures = (text: string, figures: Figures): string => {
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`README.md has no lines ${BEGIN} and ${END}`)
  return `${text.slice(0, begin)}${BEGIN}\n\n${asMarkdown(figures)}\n\n${text.slice(end)}`
}
