/**
 * `npm run bench:scale -- sqlite [sessions] [folder]`: fills a file with sessions, half of them expired. It measures
 * how long a look-up and a write with its part of the sweep take, and how long they block the event loop. It removes
 * the file afterwards.
 */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync, statfsSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { createClient } from '@libsql/client'
import { sqliteStore } from '../../../dist/stores.js'
import { median, quantile } from './statistics.js'

const DAY = 86_400_000
const BATCH = 200_000
const ASKED = 3000
const TOLD_EVERY = 10_000_000

// The number of rows that are sorted together
const SORTED_KB = 262_144

// A row and its index entry take 300 bytes. While the index is made, it is also in the log, and in a file for sorting.
const BYTES_A_SESSION = 450

const expectRoom = (folder: string, count: number): void => {
  const { bavail, bsize } = statfsSync(folder)
  const [needed, free] = [(count * BYTES_A_SESSION) / 1e9, (bavail * bsize) / 1e9]
  if (free > needed) return
  throw new Error(
    `${count} sessions need ${needed.toFixed(1)} GB while the file is made; ${folder} has ${free.toFixed(1)} GB free. Name another folder: npm run bench:scale -- sqlite ${count} /folder`,
  )
}

// In the order of their ids, which are as random as digests after their first digits; any other order would take hours
const fill = async (file: string, url: string, count: number): Promise<void> => {
  const client = createClient({ url })
  const step = Math.floor(2 ** 48 / count)
  // The index is sorted in files, because this build of SQLite would need 90 bytes of memory for each session
  await client.executeMultiple(
    `pragma synchronous = off; pragma temp_store = file; pragma cache_size = -${SORTED_KB}; drop index auth_sessions_until`,
  )
  for (let from = 0; from < count; from += BATCH) {
    if (from > 0 && from % TOLD_EVERY === 0) console.log(`  ${from} made`)
    // A signal is handled between two batches
    await turn()
    await client.executeMultiple(
      `insert into auth_sessions
       with recursive s (n) as (select ${from} union all select n + 1 from s limit ${Math.min(BATCH, count - from)})
       select printf('%012x', n * ${step}) || lower(hex(randomblob(15))) || 'x',
         '{"auth":{"id":"user-' || n || '","at":1795303625000,"mark":"","mac":"' || hex(randomblob(22)) ||
           '"},"_expire":1795390025000,"_maxAge":${DAY}}',
         ${Date.now()} + abs(random()) % ${2 * DAY} - ${DAY} from s`,
    )
  }
  await client.executeMultiple(
    'create index auth_sessions_until on auth_sessions (until); pragma wal_checkpoint(truncate)',
  )
  client.close()
  // Otherwise the first checkpoint of the measurement would wait for all of it
  const opened = openSync(file, 'r+')
  fsyncSync(opened)
  closeSync(opened)
}

const someIds = async (url: string): Promise<string[]> => {
  const client = createClient({ url })
  const ids: string[] = []
  while (ids.length < ASKED) {
    const from = Math.floor(Math.random() * 2 ** 48)
    const sql = 'select id from auth_sessions where id > ? limit 1'
    const { rows } = await client.execute({ sql, args: [from.toString(16).padStart(12, '0')] })
    const id = rows[0]?.['id']
    if (typeof id === 'string') ids.push(id)
  }
  client.close()
  return ids
}

const ms = (value: number): string => value.toFixed(2).padStart(7)

/** Prints the table. Throws before it writes anything if the disk has too little room. */
export const sqliteScale = async (count: number, parent = tmpdir()): Promise<void> => {
  if (!Number.isSafeInteger(count) || count < ASKED)
    throw new Error(`sqlite takes a number of sessions, ${ASKED} or more`)
  expectRoom(parent, count)
  const folder = mkdtempSync(join(parent, 'koa-with-auth-scale-'))
  const clear = (): void => rmSync(folder, { recursive: true, force: true })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      clear()
      process.exit(1)
    })
  }
  // SQLite sorts in the same folder, not in one that may have less room
  process.env['SQLITE_TMPDIR'] = folder
  const file = join(folder, 'sessions.db')
  const url = `file:${file}`
  try {
    const begun = performance.now()
    const made = sqliteStore({ url })
    await made.read('nothing')
    made.close()
    await fill(file, url, count)
    const took = (performance.now() - begun) / 1000
    console.log(`${count} sessions, ${(statSync(file).size / 1e6).toFixed(0)} MB, made in ${took.toFixed(0)} s\n`)
    const ids = await someIds(url)
    const store = sqliteStore({ url })
    const measure = async (name: string, ask: (id: string) => Promise<unknown>): Promise<void> => {
      const times: number[] = []
      const delay = monitorEventLoopDelay({ resolution: 1 })
      delay.enable()
      for (const id of ids) {
        await turn()
        // The client runs on the event loop, so a query blocks it for its whole time
        const from = performance.now()
        await ask(id)
        times.push(performance.now() - from)
      }
      delay.disable()
      const [middle, late, longest] = [median(times), quantile(times, 0.99), Math.max(...times)]
      console.log(
        `  ${name.padEnd(22)} median ${ms(middle)} ms   99 % ${ms(late)} ms   longest ${ms(longest)} ms   loop held at most ${ms(delay.max / 1e6)} ms`,
      )
    }
    await measure('look-up', (id) => store.read(id))
    await measure('look-up, once more', (id) => store.read(id))
    await measure('write, with its sweep', (id) => store.update(id, '{}', DAY))
    store.close()
  } finally {
    clear()
  }
}
