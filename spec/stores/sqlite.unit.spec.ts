/** SQLite stores: a locked file, a clock that is set back, and both engines. */
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmdirSync,
  truncateSync,
  writeFileSync,
  mkdtempSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from 'koa-with-auth/stores'
import { createClient } from '@libsql/client'
import { afterAll, describe, expect, it, afterEach, beforeEach, vi, beforeAll, onTestFinished } from 'vitest'
import { NOW, openSqlite, SqliteFile } from '../../src/stores/sqlite.js'
import { sqliteFile } from '../support/stores/sessionStores.js'
import { describeUnless } from '../support/projects/programs.js'
import { another, engines } from '../support/stores/sqliteEngines.js'

// An SQLite file that another connection locks: requests wait for the lock, also while the file is opened.

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

  // How long a store waits before it opens a file again, and some more
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

it('the engine is that of Node, where it has one', () => {
  expect(engines).toStrictEqual(hasNative ? ['node:sqlite', '@libsql/client'] : ['@libsql/client'])
  const connection = openSqlite('file::memory:')
  expect(() => connection.exec('nonsense')).toThrow(
    expect.objectContaining({ name: hasNative ? 'Error' : 'SqliteError' }),
  )
  connection.close()
})

it('an engine that this Node does not have is a TypeError', () => {
  const native = () => sqliteStore({ url: 'file::memory:', engine: 'node:sqlite' })
  if (hasNative) expect(native).not.toThrow()
  else expect(native).toThrow(/sqliteStore.*engine.*no node:sqlite/)
})

describe.each(engines)('%s', (engine) => {
  // a file of its own, because two engines in one process do not see each other's locks
  const pathOf = (name: string) => join(folder, `${engine.replace(/\W/g, '')} ${name}`)
  const tables = { create: 'create table if not exists a (id text primary key)', check: 'select id from a' }
  let count = 0
  const open = (name = `own ${++count}.db`) => {
    const file = new SqliteFile({ url: `file:${pathOf(name)}`, engine }, tables)
    onTestFinished(() => file.close())
    return file
  }
  const idsOf = async (file: SqliteFile) => (await file.read('select id from a order by id', [])).map(({ id }) => id)
  const insert = 'insert into a values (?)'

  it.each(["'; drop table a; --", "''", '?', '? ?', ':now', '"', '\\', '', 'ü€😀'])(
    'a value is no part of a statement: %j',
    async (text) => {
      const file = open()
      expect(await file.write(insert, [text])).toBe(1)
      expect(await idsOf(file)).toStrictEqual([text])
    },
  )

  it.each(['with space.db', 'with%25percent.db'])('opens the file that a URL names: %s', async (name) => {
    await open(name).write(insert, ['x'])
    expect(existsSync(pathOf(decodeURIComponent(name)))).toBe(true)
  })

  it('the time is the last value, wherever it stands', async () => {
    const rows = await open().read(`select ? as first, ${NOW} as time, ? as second, ${NOW} as again`, ['a', 'b', 7])
    expect(rows.map((row) => ({ ...row }))).toStrictEqual([{ first: 'a', time: 7, second: 'b', again: 7 }])
  })

  it('undoes what was begun if a statement fails, and names the failure', async () => {
    const file = open('failing.db')
    await file.write(insert, ['x'])
    const failing = file.write("insert into a values ('y'), (?)", ['x'])
    await expect(failing).rejects.toMatchObject({ code: expect.stringMatching(/^SQLITE_CONSTRAINT/) as string })
    await expect(failing).rejects.toThrow(/^SQLITE_CONSTRAINT\w*: UNIQUE constraint failed/)
    expect(await idsOf(file)).toStrictEqual(['x'])
    expect(await file.write(insert, ['z'])).toBe(1)
    expect(await idsOf(open('failing.db'))).toStrictEqual(['x', 'z'])
  })

  it.each([
    ['a locked file', 'SQLITE_BUSY', 'locked.db'],
    ['a folder that is missing', 'SQLITE_CANTOPEN', 'no/such.db'],
    ['a file that is no database', 'SQLITE_NOTADB', 'text.db'],
  ])('names the failure: %s', async (_, code, name) => {
    const file = open(name)
    if (name === 'text.db') writeFileSync(pathOf(name), 'no database'.repeat(100))
    if (name === 'locked.db') {
      await file.write(insert, ['x'])
      const other = another(pathOf(name), engine)
      onTestFinished(() => other.close())
      other.lock()
    }
    const failing = file.write(insert, ['y'], 0)
    await expect(failing).rejects.toMatchObject({ code })
    await expect(failing).rejects.toThrow(`${code}: `)
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

  it.each(['a.db', 'with space.db', 'with%25percent.db'])('read and write the same file %j', (name) => {
    const url = `file:${join(folder, name)}`
    for (const [writer, reader] of [engines, [...engines].reverse()]) {
      const first = openSqlite(url, writer)
      first.exec(`pragma journal_mode=wal; create table if not exists a (by text); insert into a values ('${writer}')`)
      const second = openSqlite(url, reader)
      expect(second.prepare('select by from a order by rowid desc limit 1').all()[0]?.['by']).toBe(writer)
      first.close()
      second.close()
    }
  })
})
