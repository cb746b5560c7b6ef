/**
 * `npm run bench`: runs the comparisons and prints their tables. README.md beside package.json says what each option does.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { against } from './against.js'
import { inProcess, printed } from './inProcess.js'
import { asText, targets, withFigures, type Figures } from './report.js'
import { sectionNames, sections } from './sections.js'
import type { Section } from './Section.js'

const { values: options } = parseArgs({
  options: {
    // A commit, or `release`: the last one of releases.json
    against: { type: 'string' },
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    save: { type: 'boolean', default: false },
    // This module starts itself in a separate process for the sections of one name
    section: { type: 'string' },
  },
})

if (options.section !== undefined) {
  await printed(() => sections[String(options.section)]?.(options.quick) ?? [])
  await new Promise(() => {})
}

const beside = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))
const self = fileURLToPath(import.meta.url)
const [kept, readme] = [beside('figures.json'), beside('README.md')]
// Safe: nothing else writes this file
const keptFigures = (): Figures => JSON.parse(readFileSync(kept, 'utf8')) as Figures
const writeReadme = (figures: Figures): void =>
  writeFileSync(readme, withFigures(readFileSync(readme, 'utf8'), figures))

if (options.markdown && !options.save) {
  writeReadme(keptFigures())
  console.log('written: the tables of README.md, from figures.json')
  process.exit(0)
}

if (options.against !== undefined) {
  // Safe: nothing but people who release write this file, in this form
  const releases = JSON.parse(readFileSync(beside('releases.json'), 'utf8')) as ReadonlyArray<{ commit: string }>
  const ref = options.against === 'release' ? releases.at(-1)?.commit : options.against
  const sections = await against(ref ?? 'HEAD', options.quick ? 4 : 12, {
    rounds: options.quick ? 60 : 150,
    batch: 20,
    clock: 'time',
  })
  console.log(options.json ? JSON.stringify(sections, null, 2) : sections.map(asText).join('\n'))
  process.exit(0)
}

const only = options.only.flatMap((names) => names.split(','))
const unknown = only.find((name) => !sectionNames.includes(name))
if (unknown !== undefined) {
  console.error(`--only ${unknown}: there is no such section; there are ${sectionNames.join(', ')}`)
  process.exit(2)
}
const wanted = sectionNames.filter((name) => only.length === 0 || only.includes(name))

const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}, ${process.platform} ${process.arch}`
const isWhole = only.length === 0
if (options.save && !isWhole && (keptFigures().machine !== machine || keptFigures().quick !== options.quick)) {
  console.error('--save: figures.json is from another machine or another pace; save a whole run, without --only')
  process.exit(2)
}
// With --json, everything except the result goes to stderr
const say = (text: string): void => (options.json ? console.error(text) : console.log(text))

say(`${machine}\n`)
const measured: Section[] = []
for (const name of wanted) {
  const begun = performance.now()
  // Safe: it is what `--section` prints
  const some = (await inProcess(self, ['--section', name, ...(options.quick ? ['--quick'] : [])]).catch(
    (error: unknown) => {
      console.error(String(error))
      process.exit(1)
    },
  )) as ReadonlyArray<Section>
  for (const section of some) {
    measured.push(section)
    if (!options.json) console.log(asText(section))
  }
  say(`  --only ${name}: ${((performance.now() - begun) / 1000).toFixed(0)} s\n`)
}

const date = new Date().toISOString().slice(0, 10)
const now: Figures = { machine, date, quick: options.quick, sections: measured }
if (options.json) console.log(JSON.stringify(now, null, 2))
else console.log(targets(measured))

if (options.save) {
  // A run of some sections replaces only these
  const before = isWhole ? [] : keptFigures().sections
  const merged = before.map((old) => measured.find(({ title }) => title === old.title) ?? old)
  const added = measured.filter(({ title }) => !before.some((old) => old.title === title))
  const figures = { ...now, sections: [...merged, ...added] }
  writeFileSync(kept, `${JSON.stringify(figures, null, 2)}\n`)
  writeReadme(figures)
  say('written: figures.json and the tables of README.md')
}
process.exit(0)
