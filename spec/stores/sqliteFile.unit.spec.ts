/** An SQLite file that another connection locks: requests wait for the lock, also while the file is opened. */
import { setTimeout as pause } from 'node:timers/promises'
import { createClient } from '@libsql/client'
import { sqliteKeyStore } from 'koa-with-auth/keys/sqlite'
import { describe, expect, it } from 'vitest'
import { digestOf, recordOf } from '../support/stores/keyStores.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

describe('a file that is locked', () => {
  const first = sqliteFile()
  it('when it is opened is tried again, until the lock is released', async () => {
    const other = createClient({ url: first() })
    const lock = await other.transaction('write')
    const store = sqliteKeyStore({ url: first() })
    // The tables cannot be created yet
    const asked = store.list('anna')
    await pause(100)
    await lock.rollback()
    expect(await asked).toEqual([])
    other.close()
    store.close()
  })

  const second = sqliteFile()
  it('when it is written is tried again, until the lock is released', async () => {
    const store = sqliteKeyStore({ url: second() })
    await store.list('anna')
    const other = createClient({ url: second() })
    const lock = await other.transaction('write')
    const changed = store.insert(digestOf('a'), recordOf('a'))
    await pause(100)
    await lock.rollback()
    expect(await changed).toBe(true)
    other.close()
    store.close()
  })
})
