/** `npm run bench`, `npm run bench -- --quick`: runs every comparison, prints the tables, and writes `results.json`. */
import { writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { events } from './events.js'
import { footprint } from './footprint.js'
import { keys } from './keys.js'
import { loopback } from './loopback.js'
import { growth, koa, peers, type Row, type Section } from './measurements.js'
import { secrets } from './secrets.js'
import { tokens } from './tokens.js'

const quick = process.argv.includes('--quick')
const pace = quick ? { rounds: 30, batch: 40 } : { rounds: 300, batch: 200 }

const machine = `${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}, ${process.platform} ${process.arch}`

const digits = { times: 4, us: 2, KB: 2, bytes: 0, ms: 0, 'req/s': 0 }

const cells = ({ name, value: { value, low, high }, unit, target }: Row): ReadonlyArray<string> => {
  const text = (n: number) => n.toFixed(digits[unit])
  const verdict =
    target === undefined ? '' : high <= target ? `at most ${text(target)}: met` : `at most ${text(target)}: not met`
  return [name, text(value), `${text(low)} to ${text(high)}`, unit, verdict]
}

const table = ({ title, rows }: Section): string => {
  const lines = [['', 'median', '95 % bounds', '', 'target'], ...rows.map(cells)]
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? []
  const aligned = lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  )
  return `${title}\n\n${aligned.map((line) => `  ${line}`).join('\n')}\n`
}

const sections: Section[] = []
const report = (...some: ReadonlyArray<Section>): void => {
  sections.push(...some)
  for (const section of some) console.log(table(section))
}

console.log(`${machine}; ${pace.rounds} rounds of ${pace.batch} requests\n`)
report(await koa(pace))
report(await peers(pace))
report(...(await tokens(quick ? pace : { rounds: 150, batch: 50 })))
report(await secrets(pace))
report(await events(quick ? pace : { rounds: 150, batch: 200 }))
report(...(await growth(quick ? pace : { rounds: 100, batch: 100 }, quick ? [10, 100] : [10, 100, 1000, 10_000])))
report(await keys(quick ? pace : { rounds: 100, batch: 100 }, quick ? 20_000 : 1_000_000))
report(footprint(quick ? 1 : 7))
report(await loopback(quick ? 1 : 3, quick ? 1 : 4))

const results = fileURLToPath(new URL('../results.json', import.meta.url))
writeFileSync(
  results,
  `${JSON.stringify({ machine, date: new Date().toISOString(), quick, pace, sections }, null, 2)}\n`,
)
console.log(`written: results.json beside package.json`)
process.exit(0)
