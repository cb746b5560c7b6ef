/** Tables in guides: their lines, which versions were tried, and where they are written. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const here = (path) => fileURLToPath(new URL(path, import.meta.url))

const versionIn = (manifest) => JSON.parse(readFileSync(here(manifest), 'utf8')).version
export const versionOf = (name) => versionIn(`../node_modules/${name}/package.json`)

/** The versions of some packages; without one, that of this package. */
export const versionsOf = (packages) =>
  packages.length === 0
    ? versionIn('../../../package.json')
    : packages.map((one) => `${one} ${versionOf(one)}`).join(', ')

const line = (cells) => `| ${cells.join(' | ')} |`

/** The lines of a table. */
export const tableOf = (head, rows) => [head, head.map(() => '--'), ...rows].map(line)

/** Libraries report the mistakes that a program makes, which belong into no output. */
export const silence = () => {
  for (const name of ['error', 'warn', 'info', 'debug']) console[name] = () => {}
}

/** What a table says about when it was made. */
export const runOn = () => `Run on ${new Date().toISOString().slice(0, 10)} with Node.js ${process.versions.node}`

/** Replaces the table of a guide. With `--dry`, it is printed instead. */
export const writeTable = (name, text) => {
  if (process.argv.includes('--dry')) return void process.stdout.write(`${text}\n`)
  const guide = here(`../../../examples/guides/${name}`)
  const [before, rest] = readFileSync(guide, 'utf8').split('<!-- matrix -->')
  const [, after] = rest.split('<!-- end of matrix -->')
  writeFileSync(guide, `${before}<!-- matrix -->\n\n${text}\n\n<!-- end of matrix -->${after}`)
}
