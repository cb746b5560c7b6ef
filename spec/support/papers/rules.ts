/** The rules of `spec/requirements.md`, and where sources and specs cite them. */
import { readdirSync, readFileSync } from 'node:fs'
import { repository } from '../projects/typecheck.js'

const requirements = readFileSync(`${repository}spec/requirements.md`, 'utf8')

/** The ids in the order of the page: `5.6.4`, `A-39`, `D-R10`, `R03`. */
export const ruleIds: ReadonlyArray<string> = [
  ...requirements.matchAll(
    /^(?:#{3,4} (\d(?:\.\d)?) |- \*\*(\d\.\d(?:\.\d)?)\*\* |\| ((?:A|B|C|D|R|K|P|M|O|T|W)-?[SRK]?\d+) \|)/gm,
  ),
].map(([, section, rule, row]) => section ?? rule ?? row ?? '')

/** The questions of the table of decisions, and the headings, without Markdown. */
export const decisions: ReadonlyArray<string> = [
  ...requirements.slice(requirements.indexOf('## Decisions')).matchAll(/^(?:\| ([^|]+) \| |### (.+)$)/gm),
].map(([, question, heading]) => (question ?? heading ?? '').replaceAll('`', ''))

// Specs that run meanwhile write and remove files in `.generated`
const left = ['.generated', 'dist', 'node_modules']

/** The programs of a folder, at any depth. */
const programs = (folder: string): string[] =>
  readdirSync(repository + folder, { withFileTypes: true })
    .filter(({ name }) => !left.includes(name))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`
      return entry.isDirectory() ? programs(path) : path.endsWith('.ts') ? [path] : []
    })
    .sort()

const rowId = /\b(?:[ABCKMOPTW]-\d{2}|D-[SRK]\d{1,2}|R(?:0[1-9]|[12]\d|30))\b/g
// `spec 5.6`, and a title that begins with a rule of three numbers or with a section of section 5
const behaviorId = /(?:\bspec |(?<=['"`]))(\d(?:\.\d)?(?:\.\d)?)(?![\d.]*\d)(?=[ ,:)])/g
// `5.6.2 to 5.6.5`, `5.1.5, 7.1`, `5.4, 5.5`
const more = /(?:\bspec |['"`])\d(?:\.\d)+(?: to |, | and )(\d(?:\.\d){1,2})(?=[ ,:)])/g

// What the lines of some folders cite, each with its file and line
const citedBy = (idsOf: (line: string) => ReadonlyArray<string>, folders: ReadonlyArray<string>) =>
  folders.flatMap(programs).flatMap((file) =>
    readFileSync(repository + file, 'utf8')
      .split('\n')
      .flatMap((line, index) => idsOf(line).map((id) => ({ id, where: `${file}:${index + 1}`, file }))),
  )

/** Every citation of a rule by number. */
export const citations = (...folders: ReadonlyArray<string>) =>
  citedBy((line) => {
    const behavior = [...line.matchAll(behaviorId), ...line.matchAll(more)]
      .filter(([whole, id = '']) => whole.startsWith('spec') || /^[57]\./.test(id))
      .map(([, id = '']) => id)
    return [...[...line.matchAll(rowId)].map(([id]) => id), ...behavior]
  }, folders)

/** Every citation of a decision by its question. */
export const decisionsCited = (...folders: ReadonlyArray<string>) =>
  citedBy((line) => [...line.matchAll(/\bdecisions? "([^"]+)"/g)].map(([, id = '']) => id), folders)

const isSpec = (file: string) => file.endsWith('.spec.ts')

/** Up to four specs for each rule: those that cite it most often come first. */
export const specsOf = (): ReadonlyMap<string, ReadonlyArray<string>> => {
  const counts = new Map<string, Map<string, number>>()
  for (const { id, file } of citations('spec')) {
    if (!isSpec(file)) continue
    const files = counts.get(id) ?? new Map<string, number>()
    files.set(file, (files.get(file) ?? 0) + 1)
    counts.set(id, files)
  }
  const first = (files: ReadonlyMap<string, number>) =>
    [...files]
      .sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))
      .slice(0, 4)
      .map(([file]) => file.replace(/^spec\//, ''))
  return new Map(
    ruleIds.flatMap((id) => {
      const files = counts.get(id)
      return files === undefined ? [] : [[id, first(files)] as const]
    }),
  )
}

/** The rows of the table in `spec/rules.md`. */
export const rulesTable = (): string => {
  const found = specsOf()
  const rows = [...found].map(([id, files]) => `| ${id} | ${files.map((file) => `[${file}](${file})`).join(', ')} |`)
  return ['| Rule | Specs |', '| --- | --- |', ...rows].join('\n')
}
