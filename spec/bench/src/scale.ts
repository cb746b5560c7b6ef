/**
 * `npm run bench:scale -- processes`: the costs of many processes.
 */
import { cpus } from 'node:os'
import { processes } from './processes.js'

const [what, ...rest] = process.argv.slice(2)
console.log(`${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}\n`)
if (what === 'processes') await processes(rest.length > 0 ? rest.map(Number) : [1, 2, 4, 8])
else throw new Error('npm run bench:scale -- processes [count...]')
process.exit(0)
