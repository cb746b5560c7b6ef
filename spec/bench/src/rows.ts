/**
 * `npm run bench:scale -- rows`: a look-up, a write, and a write with its part of the sweep, in PostgreSQL and in an SQLite file that have
 * so many rows. Half of the rows have expired, in random order. Each call waits for the one before it.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient as createSqlite } from '@libsql/client'
import { postgresStore, sqliteStore, type Store } from '../../../dist/stores.js'
import { startPostgres } from './postgres.js'
import { quantile } from './statistics.js'

const HOUR = 3_600_000
const TEXT = 300
const CALLS = 1000

/** A store with so many rows. */
interface Filled {
  readonly store: Store
  readonly bytes: () => Promise<number>
  /** How long each statement of the sweep took that was not part of a write, in milliseconds. */
  readonly sweeps: ReadonlyArray<number>
  readonly close: () => Promise<void>
}

// Spreads numbers over the whole range, so that neighbors in time are none in the tree; 2 ** 32 / 1.618
const SPREAD = 2_654_435_761n
const RANGE = 4_294_967_296n
const PREFIX = 'koa-with-auth/session/'
const REST = 'x'.repeat(35)
const keyOf = (number: number): string =>
  `${PREFIX}${((BigInt(number) * SPREAD) % RANGE).toString(16).padStart(8, '0')}${REST}`

const inPostgres = async (count: number): Promise<Filled> => {
  // `minimal`: what fills a table that is emptied in the same transaction is not written twice
  const server = await startPostgres({
    synchronous_commit: 'on',
    max_wal_size: '4GB',
    wal_level: 'minimal',
    max_wal_senders: '0',
    maintenance_work_mem: '1GB',
  })
  const run = (sql: string) => server.pool.query(sql)
  const sweeps: number[] = []
  const store = postgresStore({
    query: async (sql, values) => {
      const begun = performance.now()
      const answer = await server.pool.query(sql, values)
      if (sql.includes('skip locked')) sweeps.push(performance.now() - begun)
      return answer
    },
  })
  await store.get(['makes the tables'])
  await run('alter table auth_texts drop constraint auth_texts_pkey; drop index auth_texts_until')
  await run(`begin; truncate auth_texts;
    insert into auth_texts select '${PREFIX}' || lpad(to_hex((n * ${SPREAD}) % ${RANGE}), 8, '0') || '${REST}',
    repeat('x', ${TEXT}), extract(epoch from now()) * 1000 + (case when n % 2 = 0 then ${HOUR} else -${HOUR} end) * (1 + random())
    from generate_series(1, ${count}::bigint) n; commit`)
  await run('alter table auth_texts add primary key (id); create index auth_texts_until on auth_texts (until)')
  await run('vacuum analyze auth_texts')
  return {
    store,
    sweeps,
    bytes: async () => Number((await run("select pg_total_relation_size('auth_texts') as bytes")).rows[0]?.bytes),
    close: server.close,
  }
}

const inSqlite = async (count: number): Promise<Filled> => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-bench-'))
  const url = `file:${join(folder, 'rows.db')}`
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  const store = sqliteStore({ url })
  await store.insert('makes the tables', '', 1)
  const client = createSqlite({ url, concurrency: 1 })
  await client.executeMultiple(`pragma synchronous = off; drop index auth_texts_until;
    insert into auth_texts with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${count})
    select '${PREFIX}' || printf('%08x', (n * ${SPREAD}) % ${RANGE}) || '${REST}', hex(zeroblob(${TEXT / 2})),
    cast(${Date.now()} + (case when n % 2 = 0 then ${HOUR} else -${HOUR} end) * (1 + abs(random() % 1000) / 1000.0) as integer)
    from numbers order by 1; create index auth_texts_until on auth_texts (until); pragma wal_checkpoint(truncate)`)
  client.close()
  return {
    store,
    sweeps: [],
    bytes: async () => statSync(url.slice('file:'.length)).size,
    close: async () => {
      store.close()
      process.off('exit', remove)
      remove()
    },
  }
}

const figures = (times: ReadonlyArray<number>): string =>
  [0.5, 0.99, 1].map((part) => Number(quantile(times, part).toPrecision(2))).join(', ')

const timed = async (run: (call: number) => Promise<unknown> | unknown): Promise<string> => {
  const times: number[] = []
  for (let call = 0; call < CALLS; call++) {
    const begun = performance.now()
    await run(call)
    times.push(performance.now() - begun)
  }
  return figures(times)
}

const measure = async (name: string, count: number, { store, bytes, sweeps, close }: Filled): Promise<void> => {
  // the even ones are live
  const live = (call: number): string => keyOf(2 + 2 * Math.floor(((call * 0.618034) % 1) * (count / 2 - 1)))
  const text = 'y'.repeat(TEXT)
  const size = (await bytes()) / count
  const wanted = async (keys: ReadonlyArray<string>): Promise<void> => {
    if ((await store.get(keys))[0] === undefined) throw new Error(`${name}: a row was not found`)
  }
  await timed((call) => wanted([live(CALLS + call), 'none']))
  const lookUp = await timed((call) => wanted([live(call), 'none']))
  const write = await timed(async (call) => {
    if (!(await store.update(live(call), text, HOUR))) throw new Error(`${name}: a row was not found`)
  })
  const insert = await timed((call) => store.insert(`${PREFIX}new ${call}`, text, HOUR))
  const swept = sweeps.length > 0 ? `; a sweep beside it ${figures(sweeps)}` : ''
  console.log(`| ${count.toLocaleString('en')} | ${size.toFixed(0)} bytes | ${lookUp} | ${write} | ${insert}${swept} |`)
  await close()
}

const fillers = new Map([
  ['PostgreSQL', inPostgres],
  ['SQLite', inSqlite],
])

export const engines: ReadonlyArray<string> = [...fillers.keys()]

/** Prints a table for each of these databases. */
export const rows = async (names: ReadonlyArray<string>, counts: ReadonlyArray<number>): Promise<void> => {
  for (const [name, fill] of fillers) {
    if (!names.includes(name)) continue
    console.log(`${name}; milliseconds: median, 99 %, longest of ${CALLS.toLocaleString('en')}\n`)
    console.log('| Rows | A row | `get` of two keys | `update` | `insert` |\n| --- | --- | --- | --- | --- |')
    for (const count of counts) {
      const begun = performance.now()
      const filled = await fill(count)
      console.error(`${name}: ${count} rows after ${((performance.now() - begun) / 1000).toFixed(0)} s`)
      await measure(name, count, filled)
    }
    console.log()
  }
}
