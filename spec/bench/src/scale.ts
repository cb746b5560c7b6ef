/**
 * `npm run bench:scale -- rows`: a store with many rows, in each engine; `-- PostgreSQL` or `-- SQLite`: in this one alone. `-- processes`
 * and `-- postgres`: many processes on a Redis Cluster, and on one PostgreSQL.
 */
import { cpus } from 'node:os'
import { postgresProcesses, processes } from './processes.js'
import { engines, rows } from './rows.js'

const [what = '', ...rest] = process.argv.slice(2)
const numbers = (usual: ReadonlyArray<number>) => (rest.length > 0 ? rest.map(Number) : usual)
console.log(`${cpus().length} x ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}\n`)
if (what === 'rows') await rows(engines, numbers([1_000_000, 10_000_000]))
else if (engines.some((name) => name === what)) await rows([what], numbers([1_000_000, 10_000_000]))
else if (what === 'processes') await processes(numbers([1, 2, 4, 8]))
else if (what === 'postgres') await postgresProcesses(numbers([1, 2, 4]))
else throw new Error('npm run bench:scale -- rows | processes | postgres | PostgreSQL | SQLite [count...]')
process.exit(0)
