/**
 * `npm run corpus` without an address: the hostile requests of spec/data/bad-inputs.json against each of the guards, and
 * the table in the guide.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { corpus, runContract } from '../../data/runner.mjs'
import { guards } from './guards.mjs'
import { here, runOn, tableOf, versionsOf, writeTable } from './guide.mjs'

const seen = []
for (const { name, on, packages } of guards) {
  const child = fork(here('./guards.mjs'), [name], { stdio: 'ignore' })
  const [{ port }] = await once(child, 'message')
  const { offered, results } = await runContract(`http://127.0.0.1:${port}`)
  child.kill()
  seen.push({ name, on, versions: versionsOf(packages), offered, results })
  const right = results.filter((one) => one.faults.length === 0).length
  console.log(`${name}: ${right} of ${results.length}`)
}

const routes = Object.keys(corpus.contract.routes)
const decisions = ['let in', 'refused', 'failed']
const faults = [...decisions, '401 without a challenge', 'repeats a credential']
const isFault = (fault) => (result) => result.faults.some((one) => one.startsWith(fault))
const isDecided = (result) => !decisions.some((fault) => isFault(fault)(result))
const share = (results, route) => {
  const its = results.filter((one) => one.route === route)
  return its.length === 0 ? '' : `${its.filter(isDecided).length} of ${its.length}`
}

const first = tableOf(
  ['', ...routes.map((route) => `\`${route}\``)],
  seen.map(({ name, on, results }) => [`${name}, ${on}`, ...routes.map((route) => share(results, route))]),
)
const second = tableOf(
  ['', 'cases', ...faults],
  seen.map(({ name, results }) => [
    name,
    results.length,
    ...faults.map((fault) => results.filter(isFault(fault)).length),
  ]),
)

/** The ids of a fault, of which many that are alike are counted. */
const listed = (results, fault) => {
  const its = results.filter(isFault(fault))
  if (its.length === 0) return []
  const named = its.length > 12 ? `${its.length} cases` : its.map(({ id }) => `\`${id}\``).join(', ')
  return `${fault}: ${named}`
}
const ids = seen
  .filter(({ results }) => results.some((one) => one.faults.length > 0))
  .map(({ name, results }) => `- ${name}: ${faults.flatMap((fault) => listed(results, fault)).join('; ')}`)
const differing = corpus.cases.filter(({ id }) =>
  seen.some(({ results }) => results.some((one) => one.id === id && !isDecided(one))),
)
const why = tableOf(
  ['Case', 'What it is', 'Where', 'must', 'Otherwise at'],
  differing.map(({ id, why: text, rule, must }) => {
    const at = seen.flatMap(({ name, results }) => {
      const one = results.find((given) => given.id === id)
      const found = one?.faults.find((fault) => !/^(?:401|repeats)/.test(fault))
      return found === undefined ? [] : `${name}: ${one.status}`
    })
    return [`\`${id}\``, text.replaceAll('|', '\\|'), rule, must, at.join(', ')]
  }),
)

const counted = corpus.cases.filter(({ route }) => route !== undefined).length
const text = [
  `${runOn()}, the ${counted} cases of the contract, of ${corpus.cases.length}:`,
  '',
  ...seen.map(({ name, versions }) => `- ${name}: ${versions}`),
  '',
  'Let in or refused as the case says, by route:',
  '',
  ...first,
  '',
  'Differences of decisions and of responses:',
  '',
  ...second,
  '',
  ...ids,
  '',
  'The cases that were decided otherwise:',
  '',
  ...why,
].join('\n')

writeTable('hostile-requests.md', text)
// another result of this package than the corpus says is a fault
process.exit(seen[0].results.some((one) => one.faults.length > 0) ? 1 : 0)
