/**
 * An SQLite file while the clock of the machine is set back an hour: an outage ends when the file works again, not an
 * hour later.
 */
import { mkdirSync, readFileSync, rmdirSync, truncateSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '@libsql/client'
import { sqliteKeyStore } from 'koa-with-auth/keys/sqlite'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { digestOf, recordOf } from '../support/stores/keyStores.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

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
    const store = sqliteKeyStore({ url: first() })
    // A folder cannot be opened as a file
    mkdirSync(path)
    await expect(store.list('anna')).rejects.toThrow()
    rmdirSync(path)
    setBack()
    await pause(PAUSE)
    expect(await store.list('anna')).toEqual([])
    store.close()
  })

  const second = sqliteFile()
  it('while the file is open: a request to an emptied file ends', async () => {
    const [path, store] = [fileURLToPath(second()), sqliteKeyStore({ url: second(), engine: '@libsql/client' })]
    await store.insert(digestOf('a'), recordOf('a'))
    setBack()
    await pause(PAUSE)
    const looking = createClient({ url: second() })
    await looking.execute('pragma wal_checkpoint(truncate)')
    looking.close()
    const kept = readFileSync(path)
    truncateSync(path, 0)
    await expect(store.list('anna')).rejects.toThrow()
    // The failure has closed the file; when it is opened again, it reports what is lost
    await expect(store.list('anna')).rejects.toThrow(/no such table/)
    writeFileSync(path, kept)
    await pause(PAUSE)
    expect((await store.list('anna')).map(({ id }) => id)).toEqual(['a'])
    store.close()
  })

  const third = sqliteFile()
  it('while a change waits for a lock: it gives up after the usual time', async () => {
    const store = sqliteKeyStore({ url: third(), engine: '@libsql/client' })
    await store.list('anna')
    const other = createClient({ url: third() })
    const lock = await other.transaction('write')
    const changing = store.insert(digestOf('a'), recordOf('a'))
    setBack()
    // A limit ten times the expected time
    const given = await Promise.race([changing.catch((error: unknown) => error), pause(15_000, 'still waiting')])
    expect(String(given)).toMatch(/SQLITE_BUSY/)
    await lock.rollback()
    expect(await store.insert(digestOf('a'), recordOf('a'))).toBe(true)
    other.close()
    store.close()
  }, 30_000)
})
