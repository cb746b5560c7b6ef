/**
 * OWASP ASVS 5.0.0, V6 to V10, for an application. The requirements are read from the guide "ASVS 5.0": a line for each, with its level,
 * how the library stands to it, the requirement in a few words, and the parts that matter.
 */
import { readFileSync } from 'node:fs'
import { visible } from '../audit/Audit.js'

/** By the words of the guide. */
const howTo: Readonly<Record<string, string>> = {
  'by default': 'show that the application uses',
  'by an option': 'show that the application has',
  yours: 'the application says how',
  not: 'the library does not do it',
  'does not apply': 'only for an application that does this itself',
}

interface AsvsRequirement {
  readonly id: string
  readonly level: number
  readonly text: string
  /** How to show it: the parts of this package, with names of exports and options in backticks. */
  readonly how: string
}

// The build puts the text of the guide here (`.ci/bundle.mjs`)
const guide = readFileSync(new URL('../../examples/guides/asvs.md', import.meta.url), 'utf8')

const requirements: ReadonlyArray<AsvsRequirement> = [
  ...guide.matchAll(/^\| (\d[^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|([^|]*)\|/gm),
].map(([, ...cells]) => {
  const [id = '', level, text = '', standing = '', where = ''] = cells.map((cell) => cell.trim())
  const how = [howTo[standing] ?? standing, where].filter((part) => part !== '').join(': ')
  return { id, level: Number(level), text, how }
})

export interface AsvsVerdict {
  readonly verdict: 'holds' | 'fails' | 'not known'
  readonly why: string
}

export type Verdicts = Readonly<Record<string, AsvsVerdict>>

type Row = Omit<AsvsRequirement, 'how'> & AsvsVerdict

/** The rows up to a level, for an application. `holds` is said only of facts that were read. */
export const rowsFor = (seen: Verdicts, level: number): ReadonlyArray<Row> =>
  requirements
    .filter((one) => one.level <= level)
    .map(({ how, ...one }) => ({ ...one, ...(seen[one.id] ?? { verdict: 'not known', why: how }) }))

export const asvsTable = (rows: ReadonlyArray<Row>): string => {
  const cell = (text: string): string => visible(text).replaceAll('|', '\\|')
  return [
    '| ASVS 5.0.0 | Level | Requirement | Verdict |',
    '| -- | -- | -- | -- |',
    ...rows.map(
      ({ id, level, text, verdict, why }) => `| ${id} | ${level} | ${cell(text)} | ${verdict}: ${cell(why)} |`,
    ),
  ].join('\n')
}
