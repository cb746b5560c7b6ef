/**
 * Changes the code in many places, one at a time, and counts the changes that the specs notice: spec/README.md, "Tests
 * of the tests".
 *
 * `npm run mutate` takes everything, in hours. `npm run mutate -- core/lists koa` takes files or folders of src with the
 * specs that concern them, and keeps the modules loaded: mutants/plugin.mjs. A mutant that some specs notice is noticed
 * by all specs together, so the score of a part is a lower bound.
 *
 * Environment: MUTATE_SPECS (`spec/core/lists spec/koa/answers`) names other specs. MUTATE_AT (`src/core/lists.ts:40-52`) names
 * some lines. MUTATE_SAMPLE=300 takes about 300 mutants of each part, in windows of ten lines that a seed draws (MUTATE_SEED, 1
 * if not given). MUTATE_STATIC=0 leaves out mutants that matter only while a module loads, which are slow. MUTATE_PATIENCE
 * is how many seconds the specs of such a mutant may take.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

// The beginnings of the specs that concern a folder of src, if these are not those of its room. The first match counts.
const overHttp = ['csrf', 'outage.http'].map((name) => `core/${name}`)
const concerned = {
  'core/events': ['core/', 'events/'],
  core: ['core/', 'kinds/', 'mistakes/'],
  kinds: ['kinds/', 'core/', 'mistakes/'],
  guesses: ['guesses/', 'core/', 'mistakes/'],
  mcp: ['jwt/'],
  ends: ['ends/', 'koa/authSignal'],
  koa: ['koa/', 'requests/', 'mistakes/', ...overHttp],
}
const concernedBy = (part) => {
  const folder = Object.keys(concerned).find((one) => part === one || part.startsWith(`${one}/`))
  return folder === undefined ? [`${part.split('/')[0]}/`] : concerned[folder]
}
const sourcesOf = (part) => [`src/${part}.ts`, `src/${part}`].find((path) => existsSync(path))

const parts = process.argv.slice(2)
const stryker = (config, env) => {
  const { status } = spawnSync(process.execPath, ['.ci/mutants/node_modules/.bin/stryker', 'run', ...config], {
    stdio: 'inherit',
    env,
  })
  process.exit(status ?? 1)
}
if (parts.length === 0) stryker(['.ci/stryker.json'], process.env)

const unknown = parts.filter((part) => sourcesOf(part) === undefined)
if (unknown.length > 0) {
  console.error(`not in src: ${unknown.join(', ')}; write core/lists, or koa`)
  process.exit(2)
}

// Windows of the files of a part, in the order of a digest: the same seed draws the same windows of the same files
const windowLines = 10
const mutantsPerLine = 0.7
const filesOf = (path) =>
  path.endsWith('.ts')
    ? [path]
    : readdirSync(path, { recursive: true }).flatMap((name) => (name.endsWith('.ts') ? [`${path}/${name}`] : []))
const windowsOf = (path) =>
  Array.from({ length: Math.ceil(readFileSync(path, 'utf8').split('\n').length / windowLines) }, (_, at) => {
    return `${path}:${at * windowLines + 1}-${(at + 1) * windowLines}`
  })
const drawn = (path) => {
  const order = (window) =>
    createHash('sha256')
      .update(`${process.env.MUTATE_SEED ?? 1} ${window}`)
      .digest('hex')
  const sorted = filesOf(path)
    .flatMap(windowsOf)
    .map((window) => [order(window), window])
    .sort()
  return sorted
    .slice(0, Math.ceil(Number(process.env.MUTATE_SAMPLE) / mutantsPerLine / windowLines))
    .map(([, window]) => window)
}

const beginnings = new Set(parts.flatMap(concernedBy))
const specs = process.env.MUTATE_SPECS ?? [...beginnings].map((beginning) => `spec/${beginning}`).join(' ')
const whole = JSON.parse(readFileSync('.ci/stryker.json', 'utf8'))
const settings = {
  ...whole,
  testRunner: 'warm',
  plugins: ['@stryker-mutator/*', './.ci/mutants/plugin.mjs'],
  mutate:
    process.env.MUTATE_AT?.split(',') ??
    parts
      .map(sourcesOf)
      .flatMap((path) => (process.env.MUTATE_SAMPLE ? drawn(path) : path.endsWith('.ts') ? path : `${path}/**/*.ts`)),
  ignoreStatic: process.env.MUTATE_STATIC === '0',
  thresholds: { ...whole.thresholds, break: null },
  dryRunTimeoutMinutes: 30,
  timeoutMS: 30_000,
}
mkdirSync('coverage', { recursive: true })
writeFileSync('coverage/stryker.config.json', JSON.stringify(settings, undefined, 2))
stryker(['coverage/stryker.config.json'], { ...process.env, MUTATE_SPECS: specs })
