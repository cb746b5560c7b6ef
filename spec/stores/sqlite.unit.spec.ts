/** SQLite stores: values in statements, a locked file, and a clock that is set back. */
import { sqliteStore } from 'koa-with-auth/stores'
import { createClient } from '@libsql/client'
import fc from 'fast-check'
import { afterAll, describe, expect, it, afterEach, beforeEach, vi } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'
import { mkdirSync, readFileSync, rmdirSync, truncateSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { withValues } from '../../src/stores/sqlite.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

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
