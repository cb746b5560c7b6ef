/** `npm run mcp` without an address: asks each of the servers, and writes the table into the guide. */
import { rules, runMcpRules, startIssuer } from '../../data/mcp.mjs'
import { runOn, silence, tableOf, versionsOf, writeTable } from './guide.mjs'
import { READ, served, servers, WRITE } from './mcpServers.mjs'

silence()

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
  seen.push({ name: server.name, versions: versionsOf(server.packages), results })
}

const cell = ({ ok, what }) =>
  ok === true ? 'yes' : ok === undefined ? '' : `no: ${/^\d{3}/.exec(what)?.[0] ?? what.slice(0, 40)}`
const table = tableOf(
  ['Rule', 'Where', ...seen.map(({ name }) => name)],
  rules.map(({ rule, source }, at) => [rule, source, ...seen.map(({ results }) => cell(results[at]))]),
)
const text = [`${runOn()}:`, '', ...seen.map(({ name, versions }) => `- ${name}: ${versions}`), '', ...table].join('\n')

writeTable('mcp-servers.md', text)
// a rule that this package does not keep is a fault
process.exit(seen[0].results.some(({ ok }) => ok !== true) ? 1 : 0)
