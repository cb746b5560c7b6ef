// `npm run size`: what the package weighs, and what it costs to start. It fails if a limit is passed.
// `npm run size -- --save` also writes the table of the guide "What it was tested with". It needs a build.
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const guide = join(root, 'examples/guides/tested-with.md')
const require = createRequire(import.meta.url)
const run = (command, args, options) => execFileSync(command, args, { cwd: root, encoding: 'utf8', ...options })

// Processor time in milliseconds that a process needs to import these, as the least of several: other work on the machine only adds
const STARTS = 9
const program = (names) =>
  `await Promise.all(${JSON.stringify(names)}.map((name) => import(name)));` +
  'const { user, system } = process.cpuUsage(); console.log((user + system) / 1000)'
const startOf = (names) =>
  Math.min(
    ...Array.from({ length: STARTS }, () =>
      Number(run(process.execPath, ['--input-type=module', '--eval', program(names)])),
    ),
  )

const [packed] = JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts']))
const bare = ['koa', '@koa/router']
const { exports: entries } = require('../package.json')
const node = startOf([])
const frameworks = startOf(bare) - node
const start = startOf([...bare, 'koa-with-auth']) - frameworks - node

/** What is measured, its unit, and its limit. That of the start is slower on a slow machine. */
const rows = [
  ['packed', packed.size / 1000, 'kB', 412],
  ['unpacked', packed.unpackedSize / 1000, 'kB', 2200],
  ['files', packed.entryCount, '', 620],
  [
    'entry points, without schema and manifest',
    Object.keys(entries).filter((path) => !path.endsWith('.json')).length,
    '',
    19,
  ],
  ['values of the root', Object.keys(require('../dist/cjs/index.js')).length, '', 45],
  ['start, beside koa and @koa/router', start, 'ms', 1.25 * frameworks],
]
const shown = (value, unit) => `${Math.round(value).toLocaleString('en')}${unit && ` ${unit}`}`
for (const [what, value, unit, limit] of rows) {
  console.log(`${what}: ${shown(value, unit)} of ${shown(limit, unit)}${value > limit ? ': TOO MUCH' : ''}`)
}

if (process.argv.includes('--save')) {
  const table = [
    `On ${new Date().toISOString().slice(0, 10)} with Node.js ${process.versions.node}:`,
    '',
    '| What | Here | Limit |',
    '| -- | -- | -- |',
    ...rows.map(([what, value, unit, limit]) => `| ${what} | ${shown(value, unit)} | ${shown(limit, unit)} |`),
  ].join('\n')
  const [before, rest] = readFileSync(guide, 'utf8').split('<!-- size -->')
  const [, after] = rest.split('<!-- end of size -->')
  writeFileSync(guide, `${before}<!-- size -->\n\n${table}\n\n<!-- end of size -->${after}`)
  run('npx', ['prettier', '--write', '--log-level', 'warn', guide])
}
process.exitCode = rows.every(([, value, , limit]) => value <= limit) ? 0 : 1
