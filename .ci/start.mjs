// `npm start`: compiles what changed since the last start, without types and declarations, and serves the examples.
// `npm run shop` does the same for the shop.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { performance } from 'node:perf_hooks'

// `modules.mjs` reads the arguments, too
const [program = 'server.js'] = process.argv.splice(2, 1)

console.log('Compiling koa-with-auth and its examples; after the first time, only what changed ...')

const outputs = { src: 'dist/cjs', examples: 'dist/examples' }
const left = ['examples/create']
const isOlder = (to, from) => !existsSync(to) || statSync(to).mtimeMs < statSync(from).mtimeMs
const changed = (folder) =>
  readdirSync(folder, { recursive: true })
    .map((path) => ({ from: join(folder, path), to: join(outputs[folder], path).replace(/ts$/, 'js') }))
    .filter(({ from }) => from.endsWith('.ts') && !left.some((other) => from.startsWith(other)))
    .filter(({ from, to }) => isOlder(to, from))

const compile = async (folder, configuration) => {
  const files = changed(folder)
  if (files.length === 0) return 0
  const { default: ts } = await import('typescript')
  const { config } = ts.readConfigFile(configuration, ts.sys.readFile)
  const path = resolve(configuration)
  const { options, errors } = ts.parseJsonConfigFileContent(config, ts.sys, dirname(path), {}, path)
  if (errors.length > 0) throw new Error(ts.formatDiagnostics(errors, ts.createCompilerHost({})))
  // One file alone does not say that the package has ES modules
  const module = folder === 'examples' ? ts.ModuleKind.ESNext : options.module
  for (const { from, to } of files) {
    const compilerOptions = { ...options, module }
    const { outputText } = ts.transpileModule(readFileSync(from, 'utf8'), { compilerOptions, fileName: from })
    mkdirSync(dirname(to), { recursive: true })
    writeFileSync(to, outputText)
  }
  return files.length
}

const sources = await compile('src', '.ci/tsconfig.cjs.json')
// The build puts these files into a module
const pageFiles = ['page.css', 'page.js'].some((file) =>
  isOlder('dist/cjs/openapi/pageFiles.js', `src/openapi/assets/${file}`),
)
// An interrupted start leaves modules without their entry points
const entry = 'dist/index.js'
if (sources > 0 || pageFiles || !existsSync(entry)) {
  rmSync(entry, { force: true })
  await import('./modules.mjs')
}
const examples = await compile('examples', 'examples/tsconfig.json')
console.log(`Compiled ${sources + examples} files in ${(performance.now() / 1000).toFixed(1)} s.\n`)
await import(`../dist/examples/${program}`)
