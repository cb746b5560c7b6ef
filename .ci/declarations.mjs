// Completes the declarations that tsc has built. Those that no entry point needs are removed, and CommonJS gets the
// same ones. One set for both is not possible, because @koa/router and koa-session declare their classes once for each
// module system. Headers of files go, except those of entry points: no editor shows them. The JSON Schema of records is
// copied.
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
const entries = Object.values(exports).flatMap((entry) => entry.import?.types.slice(2) ?? [])
const needed = new Set(entries)
for (const file of needed) {
  for (const { fileName } of ts.preProcessFile(readFileSync(file, 'utf8')).importedFiles) {
    if (fileName.startsWith('.')) needed.add(join(file, '..', fileName).replace(/\.js$/, '.d.ts'))
  }
}
const built = readdirSync('dist', { recursive: true }).filter(
  (file) => file.endsWith('.d.ts') && !file.startsWith('cjs'),
)
const header = /^\/\*\*(?:[^*]|\*(?!\/))*\*\/\n(?=import )/
for (const file of built) {
  const path = join('dist', file)
  if (!needed.has(path)) {
    rmSync(path)
    continue
  }
  if (!entries.includes(path)) writeFileSync(path, readFileSync(path, 'utf8').replace(header, ''))
  cpSync(path, join('dist/cjs', file))
}

cpSync('src/events/events.schema.json', 'dist/events.schema.json')
