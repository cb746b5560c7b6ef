// `npm start`: compiles what changed since the last start, without types and declarations, and serves the examples.
// `npm run shop` does the same for the shop.
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'

const [program = 'server.js'] = process.argv.slice(2)

console.log('Compiling koa-with-auth and its examples; after the first time, only what changed ...')

const isOlder = (to, from) => !existsSync(to) || statSync(to).mtimeMs < statSync(from).mtimeMs
const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile() && !one.parentPath.includes('node_modules'))
    .map(({ parentPath, name }) => join(parentPath, name))

let isBundled = false
// Written last
const built = 'dist/cjs/package.json'
const sources = [...filesOf('src'), ...filesOf('.ci'), 'package.json']
if (sources.some((from) => isOlder(built, from))) {
  const { bundle } = await import('./bundle.mjs')
  await bundle('.')
  isBundled = true
}
const examples = filesOf('examples')
  .filter((from) => from.endsWith('.ts') && !from.startsWith(join('examples', 'create')))
  .map((from) => ({ from, to: join('dist', from).replace(/ts$/, 'js') }))
  .filter(({ from, to }) => isOlder(to, from))
if (examples.length > 0) {
  const { transformSync } = await import('rolldown/utils')
  for (const { from, to } of examples) {
    const { code, errors } = transformSync(from, readFileSync(from, 'utf8'))
    if (errors.length > 0) throw new Error(`${from}: ${errors[0].message}`)
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, code)
  }
}
console.log(
  `Compiled ${isBundled ? 'the package and ' : ''}${examples.length} files of examples in ${(performance.now() / 1000).toFixed(1)} s.\n`,
)
await import(`../dist/examples/${program}`)
