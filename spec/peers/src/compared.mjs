/** `npm run compare`: asks each library of features.mjs the same, and writes the table into the guide "Guards, compared". */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { libraries } from './features.mjs'
import { portOf } from './frameworks.mjs'
import { here, runOn, silence, tableOf, versionsOf, writeTable } from './guide.mjs'
import { typeOf } from './types.mjs'

const modules = here('../node_modules')

silence()

// --- weight

// The framework itself is there without the library
const frameworks = ['koa', '@koa/router', 'express', 'fastify']

/** The packages that are installed with these, as npm finds them. */
const closureOf = (names, all = modules, found = new Map(), from = all) => {
  for (const name of names) {
    const nested = join(from, 'node_modules', name)
    const folder = statSync(nested, { throwIfNoEntry: false }) ? nested : join(all, name)
    if (frameworks.includes(name) || found.has(folder) || !statSync(folder, { throwIfNoEntry: false })) continue
    found.set(folder, true)
    const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    closureOf(Object.keys(dependencies), all, found, folder)
  }
  return [...found.keys()]
}
const sizeOf = (folder) =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !path.slice(folder.length).includes('/node_modules/'))
    .reduce((sum, path) => sum + statSync(path).size, 0)
// Rounded, so that a line more in a package is no other figure
const sizeText = (bytes) => (bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`)

const weightOf = ({ packages }) => {
  const root = here('../../..')
  const isOurs = packages.length === 0
  // by the same rule: what it depends on, and the peers that are no framework
  const own = () => Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).dependencies)
  const closure = isOurs ? closureOf(['fp-ts', 'io-ts', ...own()], join(root, 'node_modules')) : closureOf(packages)
  const bytes = closure.reduce((sum, folder) => sum + sizeOf(folder), 0)
  if (!isOurs) return `${closure.length}, ${sizeText(bytes)}`
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts']
  const packed = execFileSync('npm', args, { cwd: root, encoding: 'utf8' })
  return `${closure.length + 1}, ${sizeText(bytes + JSON.parse(packed)[0].unpackedSize)}`
}

// --- rows

const challengesOf = (response) => {
  const given = response.headers.get('www-authenticate')
  return given === null
    ? 'no challenge'
    : [...given.matchAll(/(?:^|, )([A-Z]\w+)(?= |,|$)/gi)].map(([, name]) => name).join(', ')
}
const none = 'has none'
const form = {
  'Content-Type': 'application/x-www-form-urlencoded',
  Origin: 'https://evil.example',
  'Sec-Fetch-Site': 'cross-site',
}

const rows = [
  ['no credential', async ({ ask }) => ask('me').then((it) => `${it.status}, ${challengesOf(it)}`)],
  [
    'two kinds accepted: the second',
    async ({ ask, right }) => right.either && `${(await ask('either', right.either)).status}`,
  ],
  [
    'two kinds accepted: challenges of the 401',
    async ({ ask, right }) => right.either && ask('either').then((it) => `${it.status}, ${challengesOf(it)}`),
  ],
  [
    'a role that the user lacks, declared at the route',
    async ({ ask, right, hasRoles }) => hasRoles && `${(await ask('admin', right.admin)).status}`,
  ],
  [
    'the look-up throws, because the database is down',
    async ({ ask, right }) => {
      const it = await ask('down', right.down)
      return `${it.status}${it.headers.has('retry-after') ? ', Retry-After' : ''}`
    },
  ],
  [
    'a cross-site form post with Basic (better-auth: the cookie)',
    async ({ ask, right }) => right.write && `${(await ask('write', { ...right.write, ...form }, 'POST')).status}`,
  ],
  [
    '`Cache-Control` of a response for one user',
    async ({ ask, right }) => (await ask('me', right.me)).headers.get('cache-control') ?? 'not set',
  ],
  ['a list of all routes with their guards', async ({ lists }) => lists],
  ['the OpenAPI security of the routes, made of their guards', async ({ documents }) => documents],
  ['the type of the user in the handler', async ({ library }) => typeOf(library.name)],
  ['packages beside the framework, unpacked', async ({ library }) => weightOf(library)],
]

const columns = []
for (const library of libraries) {
  const { server, right, lists, documents } = await library.make()
  const port = await portOf(server)
  const ask = (route, headers = {}, method = 'GET') =>
    fetch(`http://localhost:${port}/${route}`, { method, headers, ...(method === 'POST' && { body: 'a=1' }) })
  const hasRoles = (await ask('admin', right.admin)).status !== 404
  const cells = []
  for (const [, run] of rows) cells.push((await run({ ask, right, lists, documents, hasRoles, library })) || none)
  columns.push({ name: library.name, packages: library.packages, cells })
  process.stdout.write(`${library.name}: ${cells.join(' · ')}\n`)
}

const text = [
  `${runOn()}:`,
  '',
  ...tableOf(
    ['', ...columns.map(({ name }) => name)],
    rows.map(([name], at) => [name, ...columns.map(({ cells }) => cells[at].replaceAll('|', '\\|'))]),
  ),
  '',
  ...columns.map(({ name, packages }) => `- ${name}: ${versionsOf(packages)}`),
].join('\n')

writeTable('compared.md', text)
process.exit(0)
