/**
 * A hundred thousand sessions in an SQLite file: no statement reads all of them, and old ones are deleted a few at a
 * time.
 */
import { createClient, type Client } from '@libsql/client'
import { sqliteStore, type SqliteStore } from 'koa-with-auth/sessions/sqlite'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { check, statements } from '../../src/sessions/sqliteStore.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

const LONG = 600_000
const MANY = 100_000

afterEach(() => void vi.useRealTimers())

describe('among 100,000 sessions, half of them over', () => {
  const url = sqliteFile()()
  let store: SqliteStore
  let looking: Client
  const counted = async (where: string): Promise<number> =>
    Number((await looking.execute(`select count(*) from ${where}`)).rows[0]?.[0])
  const planOf = async (sql: string): Promise<string[]> => {
    // With its own connection: after an explanation a connection would see the file as it was then
    const explaining = createClient({ url })
    const { rows } = await explaining.execute(`explain query plan ${sql.replaceAll('?', '1')}`)
    explaining.close()
    return rows.flatMap(({ detail }) => (typeof detail === 'string' && /SCAN|SEARCH/.test(detail) ? [detail] : []))
  }
  const made = (table: string, columns: string) =>
    `insert into ${table} select ${columns}, ${Date.now()} + case when n % 2 = 0 then -1000 else 100 * ${LONG} end from (
      with recursive s (n) as (select 1 union all select n + 1 from s limit ${MANY}) select n from s)`
  beforeAll(async () => {
    store = sqliteStore({ url })
    await store.insert('mine', 'text', 100 * LONG)
    looking = createClient({ url })
    await looking.executeMultiple(
      `${made('auth_sessions', "lower(hex(randomblob(21))), '{}'")}; ${made('auth_marks', "'user ' || n, 'mark'")}`,
    )
  }, 30_000)
  afterAll(() => {
    looking?.close()
    store?.close()
  })

  it.each(Object.entries(statements).filter(([, sql]) => !sql.startsWith('insert')))(
    '%s finds its rows by a key or an index',
    async (_name, sql) => {
      const plan = await planOf(sql)
      expect(plan.length).toBeGreaterThan(0)
      for (const step of plan) expect(step).toMatch(/^SEARCH auth_\w+ USING (?:PRIMARY KEY|(?:COVERING )?INDEX)/)
    },
  )

  it('the plan of a statement without an index is a scan, so the test would see it', async () => {
    expect(await planOf("select id from auth_sessions where text = '{}'")).toEqual(['SCAN auth_sessions'])
  })

  it('the check of the tables reads one row of each', () => {
    for (const one of check.split(';')) expect(one).toMatch(/limit 1$/)
  })

  it('each write deletes eight sessions and eight marks that are over, and no others', async () => {
    const over = [`auth_sessions where until < ${Date.now()}`, `auth_marks where until < ${Date.now()}`]
    const left = async () => [await counted(over[0]!), await counted(over[1]!)]
    const before = await left()
    expect(before).toEqual([MANY / 2, MANY / 2])
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + LONG })
    let slowest = 0
    for (let write = 1; write <= 50; write++) {
      const begun = performance.now()
      expect(await store.update('mine', `text ${write}`, 100 * LONG)).toBe(true)
      slowest = Math.max(slowest, performance.now() - begun)
      expect(await left()).toEqual(before.map((count) => count - 8 * write))
    }
    expect(await counted('auth_sessions')).toBe(MANY + 1 - 400)
    expect(await counted(`auth_sessions where until > ${Date.now()}`)).toBe(MANY / 2 + 1)
    expect(await store.read('mine')).toBe('text 50')
    // A limit a hundred times the expected time, for a busy machine
    expect(slowest).toBeLessThan(2000)
  })
})
