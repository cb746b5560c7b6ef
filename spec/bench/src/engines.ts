/** The databases of the benches: each with a store of this library, and a store of koa-session by hand over the same client. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient as createSqlite } from '@libsql/client'
import { postgresStore, redisStore, sqliteStore, type Store } from '../../../dist/stores.js'
import { startPostgres } from './postgres.js'
import { startRedis } from './redis.js'
import { inPostgres, inRedis, inSqlite, type KoaStore } from './sessionApps.js'

export interface Engine {
  readonly name: 'SQLite' | 'Redis' | 'PostgreSQL'
  readonly mine: Store
  readonly hand: KoaStore
}

/** Starts them, runs a bench, and ends them. */
export const withEngines = async <A>(use: (engines: ReadonlyArray<Engine>) => Promise<A>): Promise<A> => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-bench-'))
  const url = `file:${join(folder, 'bench.db')}`
  const [redis, { pool, close }] = await Promise.all([startRedis(), startPostgres()])
  const client = createSqlite({ url, concurrency: 1 })
  const sqlite = sqliteStore({ url })
  try {
    return await use([
      { name: 'SQLite', mine: sqlite, hand: await inSqlite(client) },
      { name: 'Redis', mine: redisStore({ command: redis.command }), hand: inRedis(redis.command) },
      {
        name: 'PostgreSQL',
        mine: postgresStore({ query: (sql, values) => pool.query(sql, values) }),
        hand: await inPostgres(pool),
      },
    ])
  } finally {
    sqlite.close()
    client.close()
    redis.close()
    await close()
    rmSync(folder, { recursive: true, force: true })
  }
}
