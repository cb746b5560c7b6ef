/** The store of sessions in SQLite, and how it sweeps what is over. */
import { createClient, type Client } from '@libsql/client'
import { sqliteStore, type SqliteStore } from 'koa-with-auth/sqlite'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { sqliteFile } from '../support/stores/sessionStores.js'
import { check, statements } from '../../src/sessions/sqliteStatements.js'

// What is specific to the SQLite store: it deletes a few old rows at a time, shares its file, and finds it again.
describe('sqliteStore', () => {
  const LONG = 600_000
  const MINUTE = 60_000

  afterEach(() => void vi.useRealTimers())

  describe('old rows', () => {
    const [url, others] = [sqliteFile(), sqliteFile()]

    it('are deleted with a write, at most eight of a table, and no others', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
      const store = sqliteStore({ url: url() })
      await store.insert('live', 'text', 10 * LONG)
      await store.end('ended', 10 * LONG)
      await store.mark('user', 'mark', 10 * LONG)
      const looking = createClient({ url: url() })
      const counted = async (table: string) =>
        Number((await looking.execute(`select count(*) from ${table}`)).rows[0]?.[0])
      const until = Date.now() - 1
      const fill = (table: string, count: number) =>
        looking.batch(
          Array.from({ length: count }, (_, at) => ({
            sql: `insert into ${table} values (?, 'over', ?)`,
            args: [`over ${at}`, until],
          })),
          'write',
        )
      await fill('auth_sessions', 20)
      await fill('auth_marks', 10)
      // Not yet, because it has just deleted some
      await store.update('live', 'text', 10 * LONG)
      expect([await counted('auth_sessions'), await counted('auth_marks')]).toEqual([22, 11])
      vi.setSystemTime(Date.now() + MINUTE)
      const left: number[][] = []
      for (let at = 0; at < 4; at++) {
        await store.update('live', 'text', 10 * LONG)
        left.push([await counted('auth_sessions'), await counted('auth_marks')])
      }
      expect(left).toEqual([
        [14, 3],
        [6, 1],
        [2, 1],
        [2, 1],
      ])
      // Again after a minute
      await fill('auth_sessions', 3)
      await store.update('live', 'text', 10 * LONG)
      expect(await counted('auth_sessions')).toBe(5)
      vi.setSystemTime(Date.now() + MINUTE)
      await store.update('live', 'text', 10 * LONG)
      expect(await counted('auth_sessions')).toBe(2)
      expect([await store.read('live'), await store.read('ended'), await store.markOf('user')]).toEqual([
        'text',
        undefined,
        'mark',
      ])
      await store.insert('ended', 'revived', LONG)
      expect(await store.read('ended')).toBeUndefined()
      looking.close()
      store.close()
    })

    it('that cannot be deleted do not make the write fail', async () => {
      const file = others()
      const store = sqliteStore({ url: file })
      const breaking = createClient({ url: file })
      await store.insert('before', 'text', LONG)
      await breaking.execute(
        "create trigger no_sweep before delete on auth_sessions begin select raise(abort, 'no'); end",
      )
      await breaking.execute({ sql: "insert into auth_sessions values ('over', 'text', ?)", args: [Date.now() - 1] })
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * MINUTE })
      expect(await store.update('before', 'kept', LONG)).toBe(true)
      expect(await store.read('before')).toBe('kept')
      await breaking.execute('drop trigger no_sweep')
      breaking.close()
      store.close()
    })
  })

  describe('the file of sqliteStore', () => {
    const url = sqliteFile()

    it('keeps sessions, ends and marks when it is closed and opened again', async () => {
      const before = sqliteStore({ url: url() })
      await before.insert('a', 'text', LONG)
      await before.end('b', LONG)
      await before.mark('user', 'mark', LONG)
      before.close()
      const after = sqliteStore({ url: url() })
      await after.insert('b', 'revived', LONG)
      expect([await after.read('a'), await after.read('b'), await after.markOf('user')]).toEqual([
        'text',
        undefined,
        'mark',
      ])
      after.close()
    })

    it('is opened again by a store that was closed, when the store is used', async () => {
      const store = sqliteStore({ url: url() })
      await store.insert('c', 'text', LONG)
      store.close()
      store.close()
      expect(await store.read('c')).toBe('text')
      store.close()
    })

    it('in memory, for tests, belongs to one store', async () => {
      const [one, two] = [sqliteStore({ url: 'file::memory:' }), sqliteStore({ url: 'file::memory:' })]
      await one.insert('a', 'text', LONG)
      expect([await one.read('a'), await two.read('a')]).toEqual(['text', undefined])
      one.close()
      two.close()
    })

    it('that cannot be opened is a rejection of each call, and nothing before', async () => {
      const store = sqliteStore({ url: 'file:/nowhere/at/all/sessions.db' })
      await expect(store.read('a')).rejects.toThrow()
      await expect(store.insert('a', 'text', LONG)).rejects.toThrow()
      store.close()
    })
  })
})

// Ten thousand sessions in an SQLite file: no statement reads all of them, and old ones are deleted a few at a time.
describe('sweeping', () => {
  const LONG = 600_000
  const MANY = 10_000

  afterEach(() => void vi.useRealTimers())

  describe('among 10,000 sessions, half of them over', () => {
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
    })
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
      for (let write = 1; write <= 50; write++) {
        expect(await store.update('mine', `text ${write}`, 100 * LONG)).toBe(true)
        expect(await left()).toEqual(before.map((count) => count - 8 * write))
      }
      expect(await counted('auth_sessions')).toBe(MANY + 1 - 400)
      expect(await counted(`auth_sessions where until > ${Date.now()}`)).toBe(MANY / 2 + 1)
      expect(await store.read('mine')).toBe('text 50')
    })
  })
})
