/** SQLite stores: values in statements, a locked file, a clock that is set back, and both engines. */
import { mkdirSync, readFileSync, rmdirSync, truncateSync, writeFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from 'koa-with-auth/stores'
import { createClient } from '@libsql/client'
import fc from 'fast-check'
import { afterAll, describe, expect, it, afterEach, beforeEach, vi, beforeAll } from 'vitest'
import { withValues, openSqlite } from '../../src/stores/sqlite.js'
import { sqliteFile } from '../support/stores/sessionStores.js'
import { describeUnless } from '../support/projects/programs.js'
import { engines } from '../support/stores/sqliteEngines.js'

// A value cannot change an SQL statement, whatever it contains.
describe('SQL', () => {
  const client = createClient({ url: ':memory:' })
  afterAll(() => client.close())

  // In hexadecimal digits, because the client reads a string only up to its first NUL
  const stored = async (value: string | number): Promise<string> => {
    const { rows } = await client.execute(withValues('select hex(?) as value', [value]))
    const digits = rows[0]?.['value']
    return typeof digits === 'string' ? Buffer.from(digits, 'hex').toString() : 'no text'
  }

  describe('withValues', () => {
    it.each(["'; drop table auth_sessions; --", "''", '?', '? ?', '\u0000', 'a\u0000b', '"', '\\', '', 'ü€😀'])(
      'stores a string with SQL as it is: %j',
      async (text) => {
        expect(await stored(text)).toBe(text)
      },
    )

    it('stores any string and any integer', async () => {
      await fc.assert(
        fc.asyncProperty(fc.oneof(fc.string({ unit: 'grapheme' }), fc.maxSafeInteger()), async (value) => {
          expect(await stored(value)).toBe(String(value))
        }),
      )
    })

    it('is a TypeError if there are more values than places, or fewer', () => {
      expect(() => withValues('select ?', [])).toThrow(TypeError)
      expect(() => withValues('select ?', [1, 2])).toThrow(TypeError)
    })
  })
})

// An SQLite file that another connection locks: requests wait for the lock, also while the file is opened.

it('a NUL is refused, because the clients read a string only up to its first NUL', async () => {
  const store = sqliteStore({ url: 'file::memory:' })
  for (const ask of [
    () => store.get(['a\0b']),
    () => store.insert('a', 'b\0c', 1000),
    () => store.add('a', '\0', 1000),
  ])
    await expect(ask()).rejects.toThrow('SQLite keeps no NUL')
  store.close()
})

describe('a file that is locked', () => {
  const first = sqliteFile()
  it('when it is opened is tried again, until the lock is released', async () => {
    const other = createClient({ url: first() })
    const lock = await other.transaction('write')
    const store = sqliteStore({ url: first() })
    // The tables cannot be created yet
    const asked = store.members('anna')
    await pause(100)
    await lock.rollback()
    expect(await asked).toEqual([])
    other.close()
    store.close()
  })

  const second = sqliteFile()
  it('when it is written is tried again, until the lock is released', async () => {
    const store = sqliteStore({ url: second() })
    await store.members('anna')
    const other = createClient({ url: second() })
    const lock = await other.transaction('write')
    const changed = store.insert('a', 'text', 60_000)
    await pause(100)
    await lock.rollback()
    expect(await changed).toBe(true)
    other.close()
    store.close()
  })
})

// An SQLite file while the clock of the machine is set back an hour: an outage ends when the file works again, not an hour later.
describe('the clock', () => {
  const HOUR = 3_600_000

  // How long `sqliteConnection.ts` waits before it opens a file again, and some more
  const PAUSE = 300

  beforeEach(() => void vi.useFakeTimers({ toFake: ['Date'], now: Date.now() }))
  afterEach(() => void vi.useRealTimers())
  const setBack = () => vi.setSystemTime(Date.now() - HOUR)

  describe('K-13 the clock is set back', () => {
    const first = sqliteFile()
    it('after the file could not be opened: it is opened when it exists', async () => {
      const path = fileURLToPath(first())
      const store = sqliteStore({ url: first() })
      // A folder cannot be opened as a file
      mkdirSync(path)
      await expect(store.members('anna')).rejects.toThrow()
      rmdirSync(path)
      setBack()
      await pause(PAUSE)
      expect(await store.members('anna')).toEqual([])
      store.close()
    })

    const second = sqliteFile()
    it('while the file is open: a request to an emptied file ends', async () => {
      const [path, store] = [fileURLToPath(second()), sqliteStore({ url: second(), engine: '@libsql/client' })]
      await store.insert('a', 'text', 60_000)
      setBack()
      await pause(PAUSE)
      const looking = createClient({ url: second() })
      await looking.execute('pragma wal_checkpoint(truncate)')
      looking.close()
      const kept = readFileSync(path)
      truncateSync(path, 0)
      await expect(store.members('anna')).rejects.toThrow()
      // The failure has closed the file; when it is opened again, it reports what is lost
      await expect(store.members('anna')).rejects.toThrow(/no such table/)
      writeFileSync(path, kept)
      await pause(PAUSE)
      expect(await store.get(['a'])).toEqual(['text'])
      store.close()
    })

    const third = sqliteFile()
    it('while a change waits for a lock: it gives up after the usual time', async () => {
      const store = sqliteStore({ url: third(), engine: '@libsql/client' })
      await store.members('anna')
      const other = createClient({ url: third() })
      const lock = await other.transaction('write')
      const changing = store.insert('a', 'text', 60_000)
      setBack()
      // A limit ten times the expected time
      const given = await Promise.race([changing.catch((error: unknown) => error), pause(15_000, 'still waiting')])
      expect(String(given)).toMatch(/SQLITE_BUSY/)
      await lock.rollback()
      expect(await store.insert('a', 'text', 60_000)).toBe(true)
      other.close()
      store.close()
    })
  })
})

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
const hasNative = major > 22 || (major === 22 && minor >= 13)

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-engine-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('the engine is that of Node, where it has one', async () => {
  expect(engines).toStrictEqual(hasNative ? ['node:sqlite', '@libsql/client'] : ['@libsql/client'])
  const client = await openSqlite('file::memory:')
  await expect(client.execute('nonsense')).rejects.toHaveProperty('name', hasNative ? 'Error' : 'LibsqlError')
  client.close()
})

it('an engine that does not exist, or that this Node does not have, is a TypeError', () => {
  expect(() => sqliteStore({ url: 'file::memory:', engine: 'sqlite3' as never })).toThrow(TypeError)
  const native = () => sqliteStore({ url: 'file::memory:', engine: 'node:sqlite' })
  if (hasNative) expect(native).not.toThrow()
  else expect(native).toThrow(/sqliteStore.*engine.*no node:sqlite/)
})

describe.each(engines)('%s', (engine) => {
  it('reads what it wrote, with values', async () => {
    const client = await openSqlite('file::memory:', engine)
    await client.executeMultiple("create table a (id text, n integer); insert into a values ('x', 1)")
    await client.execute({ sql: 'insert into a values (?, ?)', args: ["y'--", null] })
    const { rows } = await client.execute('select id, n from a order by id')
    expect(rows.map(({ id, n }) => [id, n])).toEqual([
      ['x', 1],
      ["y'--", null],
    ])
    client.close()
    await expect(client.execute('select 1')).rejects.toMatchObject({ code: 'CLIENT_CLOSED' })
  })

  it('undoes what was begun if a statement fails', async () => {
    const client = await openSqlite('file::memory:', engine)
    await client.executeMultiple('create table a (id text primary key)')
    const failing = "begin immediate; insert into a values ('x'); insert into a values ('x'); commit"
    await expect(client.executeMultiple(failing)).rejects.toThrow(/SQLITE_/)
    await client.executeMultiple("begin immediate; insert into a values ('y'); commit")
    expect((await client.execute('select id from a')).rows.map(({ id }) => id)).toEqual(['y'])
    client.close()
  })

  it('names the failure: a locked file, a folder that is missing', async () => {
    const url = `file:${join(folder, `${engine.replace(/\W/g, '-')} locked.db`)}`
    const [one, other] = [await openSqlite(url, engine), await openSqlite(url, engine)]
    if (engine === 'node:sqlite') {
      await one.executeMultiple('begin immediate')
      await expect(other.executeMultiple('begin immediate')).rejects.toMatchObject({ code: 'SQLITE_BUSY' })
    }
    one.close()
    other.close()
    const missing = openSqlite(`file:${join(folder, 'no/such.db')}`, engine).then((client) =>
      client.execute('select 1'),
    )
    await expect(missing).rejects.toThrow(/CANTOPEN|ConnectionFailed|unable to open/)
  })
})

describeUnless(hasNative ? undefined : 'no node:sqlite; use Node 22.13 or later', 'both engines', () => {
  it.each([
    ['node:sqlite', '@libsql/client'],
    ['@libsql/client', 'node:sqlite'],
  ] as const)('are one store: what %s wrote, %s reads, changes and ends', async (writer, reader) => {
    const url = `file:${join(folder, `store of ${writer.replace(/\W/g, '')}.db`)}`
    const first = sqliteStore({ url, engine: writer })
    await first.insert('id', 'first', 60_000)
    first.close()
    const second = sqliteStore({ url, engine: reader })
    expect(await second.get(['id'])).toEqual(['first'])
    expect(await second.update('id', 'second', 60_000)).toBe(true)
    second.close()
    expect(await first.get(['id'])).toEqual(['second'])
    await first.end('id', 60_000)
    first.close()
    expect(await second.get(['id'])).toEqual([undefined])
    second.close()
  })

  it.each(['a.db', 'with space.db', 'with%25percent.db'])('read and write the same file %j', async (name) => {
    const url = `file:${join(folder, name)}`
    for (const [writer, reader] of [engines, [...engines].reverse()]) {
      const first = await openSqlite(url, writer)
      await first.execute('pragma journal_mode = wal')
      await first.executeMultiple(`create table if not exists a (by text); insert into a values ('${writer}')`)
      const second = await openSqlite(url, reader)
      const { rows } = await second.execute('select by from a order by rowid desc limit 1')
      expect(rows[0]?.['by']).toBe(writer)
      first.close()
      second.close()
    }
  })
})
