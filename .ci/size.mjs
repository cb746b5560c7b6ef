// `npm run size`: what the package weighs, what each entry point does in a bundle, and what a start costs. It fails if a limit is
// passed. `npm run size -- --save` also writes the tables of the guide "What it was tested with". It needs a build.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { entries } from './bundle.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const guide = join(root, 'examples/guides/tested-with.md')
const require = createRequire(import.meta.url)
const run = (command, args, options) => execFileSync(command, args, { cwd: root, encoding: 'utf8', ...options })

// -------------------------------------------------------------------------------------
// bundles
// -------------------------------------------------------------------------------------

// In kB, minified and gzipped, without other packages: what was measured, and 5 %
const limits = {
  '{ constantTimeEqual }': [1.2, 0.7],
  '{ withAuth, httpBearer }': [79, 31],
  'koa-with-auth': [180, 69],
  'koa-with-auth/audit': [82, 32],
  'koa-with-auth/events': [2.5, 1.3],
  'koa-with-auth/fp': [38, 15],
  'koa-with-auth/openapi': [108, 41],
  'koa-with-auth/testing': [105, 41],
  'koa-with-auth/testing/laws': [72, 27],
  'koa-with-auth/sessions': [142, 52],
  'koa-with-auth/sign-in': [118, 44],
  'koa-with-auth/sign-in/oidc': [139, 53],
  'koa-with-auth/keys': [35, 14],
  'koa-with-auth/passwords': [41, 28],
  'koa-with-auth/sign-in/passkeys': [54, 20],
  'koa-with-auth/jwt': [93, 35],
  'koa-with-auth/upgrades': [71, 27],
  'koa-with-auth/signatures': [56, 21],
  'koa-with-auth/webhooks': [39, 16],
  'koa-with-auth/stores': [33, 13],
}

const bundled = async (name, { file }, names = '*') => {
  const own = JSON.stringify(join(root, `dist/${file}.js`))
  const { outputFiles } = await build({
    stdin: { contents: `export ${names} from ${own}`, resolveDir: root },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    legalComments: 'none',
    write: false,
    logLevel: 'error',
  })
  const code = outputFiles[0].contents
  return {
    name,
    sizes: [code.length / 1000, gzipSync(code, { level: 9 }).length / 1000],
    limit: limits[name] ?? [0, 0],
  }
}
const index = entries.find(({ file }) => file === 'index')
const bundles = await Promise.all([
  ...['{ constantTimeEqual }', '{ withAuth, httpBearer }'].map((names) => bundled(names, index, names)),
  ...entries.map((entry) => bundled(entry.name, entry)),
])

// -------------------------------------------------------------------------------------
// a start
// -------------------------------------------------------------------------------------

// Processor time that koa and @koa/router need, and what comes after them beside that. The least of several: other work on the
// machine only adds. Nothing is optimized: V8 optimizes Node's reader of CommonJS in another thread, which takes 20 ms at any time.
// Without that koa takes a tenth longer, so the limits are a tenth lower than 0.45 and 0.9
const STARTS = 9
const program = (load, names) => `
  const begun = process.cpuUsage()
  const since = () => { const { user, system } = process.cpuUsage(begun); return user + system }
  ${['koa', '@koa/router'].map(load).join(';')}
  const bare = since()
  ${names.map(load).join(';')}
  console.log(JSON.stringify([bare, since() - bare]))`
const load = { module: (name) => `await import('${name}')`, commonjs: (name) => `require('${name}')` }
const startOf = (type, names) => {
  const times = Array.from({ length: STARTS }, () =>
    JSON.parse(run(process.execPath, ['--no-opt', `--input-type=${type}`, '--eval', program(load[type], names)])),
  )
  const least = (at) => Math.min(...times.map((one) => one[at]))
  return least(1) / least(0)
}
const signedIn = ['koa-with-auth', 'koa-with-auth/sessions', 'koa-with-auth/sign-in']

const [packed] = JSON.parse(run('npm', ['pack', '--dry-run', '--json', '--ignore-scripts']))

const largest = Math.max(
  ...readdirSync(join(root, 'dist/cjs'), { recursive: true })
    .filter((file) => file.endsWith('.js'))
    .map((file) => statSync(join(root, 'dist/cjs', file)).size),
)

/** What is measured, its unit, and its limit. */
const rows = [
  ['packed', packed.size / 1000, 'kB', 375],
  // what is larger is compressed twice: make two of it, see inputs of bundle.mjs
  ['the largest module that both module systems have', largest / 1000, 'kB', 32],
  ['unpacked', packed.unpackedSize / 1000, 'kB', 2000],
  ['files', packed.entryCount, '', 220],
  ['entry points, without schema and manifest', entries.length, '', 20],
  ['values of the root', Object.keys(require('../dist/cjs/index.js')).length, '', 45],
  ...['module', 'commonjs'].flatMap((type) => {
    const how = type === 'module' ? 'import' : 'require'
    return [
      [`start of the root by ${how}, beside koa and @koa/router`, startOf(type, ['koa-with-auth']), 'times', 0.4],
      [`start of the root, sessions and sign-in by ${how}`, startOf(type, signedIn), 'times', 0.8],
    ]
  }),
]
const shown = (value, unit) =>
  unit === 'times' ? value.toFixed(2) : `${Math.round(value).toLocaleString('en')}${unit && ` ${unit}`}`
const kB = (value) => (value < 10 ? value.toFixed(1) : String(Math.round(value)))
const all = [
  ...rows.map(([what, value, unit, limit]) => [what, shown(value, unit), shown(limit, unit), value > limit]),
  ...bundles.map(({ name, sizes, limit }) => [
    `a bundle of ${name}, minified and gzipped`,
    sizes.map(kB).join(' and ') + ' kB',
    limit.map(kB).join(' and ') + ' kB',
    sizes.some((size, at) => size > limit[at]),
  ]),
]
for (const [what, value, limit, isTooMuch] of all)
  console.log(`${what}: ${value} of ${limit}${isTooMuch ? ': TOO MUCH' : ''}`)

if (process.argv.includes('--save')) {
  const table = [
    `On ${new Date().toISOString().slice(0, 10)} with Node.js ${process.versions.node}:`,
    '',
    '| What | Here | Limit |',
    '| -- | -- | -- |',
    ...rows.map(([what, value, unit, limit]) => `| ${what} | ${shown(value, unit)} | ${shown(limit, unit)} |`),
    '',
    'In a bundle by esbuild, without other packages, in kB:',
    '',
    '| Import | Minified | Gzipped | Limit |',
    '| -- | -- | -- | -- |',
    ...bundles.map(
      ({ name, sizes, limit }) => `| \`${name}\` | ${sizes.map(kB).join(' | ')} | ${limit.map(kB).join(', ')} |`,
    ),
  ].join('\n')
  const [before, rest] = readFileSync(guide, 'utf8').split('<!-- size -->')
  const [, after] = rest.split('<!-- end of size -->')
  writeFileSync(guide, `${before}<!-- size -->\n\n${table}\n\n<!-- end of size -->${after}`)
  run('npx', ['prettier', '--write', '--log-level', 'warn', guide])
}
process.exitCode = all.some(([, , , isTooMuch]) => isTooMuch) ? 1 : 0
