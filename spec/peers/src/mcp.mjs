/** `npm run mcp` without an address: asks each of the servers, and writes the table into the guide. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { rules, runMcpRules, startIssuer } from '../../data/mcp.mjs'
import { READ, served, servers, WRITE } from './mcpServers.mjs'

// What libraries report about the requests
for (const name of ['error', 'warn', 'info', 'debug']) console[name] = () => {}

const here = (path) => fileURLToPath(new URL(path, import.meta.url))
const versionOf = (name) => JSON.parse(readFileSync(here(`../node_modules/${name}/package.json`), 'utf8')).version
const own = createRequire(import.meta.url)('../../../package.json').version

const seen = []
for (const server of servers) {
  const issuer = await startIssuer()
  const { url, close } = await served(server, issuer)
  const results = await runMcpRules(
    { url, issuer, scopes: READ, tool: 'save_note', needs: WRITE },
    ({ id, ok, what }) => {
      if (ok !== true) process.stdout.write(`${server.name}: ${id}: ${what}\n`)
    },
  )
  close()
  issuer.stop()
  const versions = server.packages.map((one) => `${one} ${versionOf(one)}`).join(', ')
  seen.push({ name: server.name, versions: versions === '' ? own : versions, results })
}

const line = (cells) => `| ${cells.join(' | ')} |`
const cell = ({ ok, what }) =>
  ok === true ? 'yes' : ok === undefined ? '' : `no: ${/^\d{3}/.exec(what)?.[0] ?? what.slice(0, 40)}`
const table = [
  line(['What must hold', 'Where', ...seen.map(({ name }) => name)]),
  line(['--', '--', ...seen.map(() => '--')]),
  ...rules.map(({ rule, source }, at) => line([rule, source, ...seen.map(({ results }) => cell(results[at]))])),
]
const text = [
  `Run on ${new Date().toISOString().slice(0, 10)} with Node.js ${process.versions.node}:`,
  '',
  ...seen.map(({ name, versions }) => `- ${name}: ${versions}`),
  '',
  ...table,
].join('\n')

if (process.argv.includes('--dry')) process.stdout.write(`${text}\n`)
else {
  const guide = here('../../../examples/guides/mcp-servers.md')
  const [before, rest] = readFileSync(guide, 'utf8').split('<!-- matrix -->')
  const [, after] = rest.split('<!-- end of matrix -->')
  writeFileSync(guide, `${before}<!-- matrix -->\n\n${text}\n\n<!-- end of matrix -->${after}`)
}
// a rule that this package does not keep is a fault
process.exit(seen[0].results.some(({ ok }) => ok !== true) ? 1 : 0)
