/** Runs every row against every site, and writes the table into the guide. */
import { runOn, silence, tableOf, versionOf, versionsOf, writeTable } from './guide.mjs'
import { reserve } from './frameworks.mjs'
import { startProvider } from './provider.mjs'
import { actionsOf, rows } from './rows.mjs'
import { sites } from './sites.mjs'

const TIME_LIMIT = 20_000

silence()
process.on('unhandledRejection', () => {})

const places = await Promise.all(sites.map(async (site) => ({ ...site, place: await reserve() })))
// better-auth has had both of its paths
const redirectUris = places.flatMap(({ callback, place: { origin } }) => [
  origin + callback,
  `${origin}/api/auth/callback/provider`,
])
const provider = await startProvider(redirectUris)

const late = () => new Promise((_, reject) => setTimeout(() => reject(new Error('no answer')), TIME_LIMIT).unref())

const columns = []
for (const { name, packages, make, place } of places) {
  const { origin, serve, close } = place
  const restarted = async () => {
    serve((_req, res) => res.destroy())
    const site = await make({ origin, issuer: provider.issuer })
    serve(site.handler)
    return site
  }
  let site = await restarted()
  const cells = []
  for (const { name: row, run } of rows) {
    let cell
    let isOther = false
    const another = () => {
      isOther = true
      return restarted()
    }
    try {
      const actions = actionsOf({ origin, site, provider })
      cell = await Promise.race([run({ ...actions, restarted: another }), late()])
    } catch (error) {
      cell = { ok: false, what: error.message }
    }
    provider.state.wrong = undefined
    // it leaves another application, or none
    if (isOther) site = await restarted()
    cells.push(cell)
    process.stdout.write(`${name}: ${row}: ${cell.ok === false ? 'NO ' : ''}${cell.what}\n`)
  }
  columns.push({ name, versions: versionsOf(packages), cells })
  close()
}
await provider.stop()

const cellOf = ({ ok, what }) => (ok === false ? `**${what}**` : what)
const good = columns.map(({ cells }) => {
  const tried = cells.filter(({ ok }) => ok !== undefined)
  return `${tried.filter(({ ok }) => ok).length} of ${tried.length}`
})
const table = tableOf(
  ['', ...columns.map(({ name }) => name)],
  [
    ...rows.map(({ name }, at) => [name, ...columns.map(({ cells }) => cellOf(cells[at]))]),
    ['rows that hold', ...good],
  ],
)
const versions = columns.map(({ name, versions: given }) => `- ${name}: ${given}`)
const text = [`${runOn()} and oidc-provider ${versionOf('oidc-provider')}:`, '', ...versions, '', ...table].join('\n')

writeTable('providers-compared.md', text)
// some libraries keep connections open
process.exit(columns[0].cells.some(({ ok }) => ok === false) ? 1 : 0)
