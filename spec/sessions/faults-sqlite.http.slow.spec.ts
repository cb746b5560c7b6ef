/** Sessions in SQLite while fifty clients work: the file is locked, read-only, truncated, and restored. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { sqliteStore } from 'koa-with-auth/stores'
import type { SqliteEngine } from '../support/stores/sqliteEngines.js'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { buildSite, siteCommand, startSite, type Site } from '../support/sites/sessionSite.js'
import { expectHeld, timeout, underFault, warm, type Fault } from '../support/sites/sessionSiteFaults.js'
import { startLoad, type Load } from '../support/sites/sessionSiteLoad.js'
import { another, engines, type Another } from '../support/stores/sqliteEngines.js'
import { collect } from '../support/runs/heap.js'

const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-sqlite-'))
const file = join(folder, 'sessions.db')

let site: Site
let load: Load
const built = buildSite()

beforeAll(async () => {
  site = await startSite(
    siteCommand(built.folder, { STORE: 'sqlite', SQLITE_URL: `file:${file}`, TIMEOUT: String(timeout) }),
  )
  load = await startLoad(site.port)
  await warm()
})

afterAll(async () => {
  await load?.stop()
  await site?.stop()
  built.remove()
  rmSync(folder, { recursive: true, force: true })
})

// Everything is written to the file
const checkpoint = (client: Another): boolean => {
  const [row] = client.execute('pragma wal_checkpoint(truncate)')
  return row?.['busy'] === 0
}

// Copied as for a backup
const backup = (path: string, engine: SqliteEngine): Buffer => {
  const client = another(path, engine)
  checkpoint(client)
  client.close()
  return readFileSync(path)
}

// What the site has read, it needs not read again until another connection has written. So it is stopped meanwhile: otherwise it could
// read all again before the file is truncated, and answer from that
const truncated = (restore: (kept: Buffer) => void): Fault => {
  let kept: Buffer | undefined
  return {
    begin: async () => {
      const client = another(file)
      client.execute('pragma busy_timeout = 0')
      while (kept === undefined) {
        process.kill(site.pid, 'SIGSTOP')
        try {
          client.execute('pragma user_version = 1')
          if (checkpoint(client)) {
            kept = readFileSync(file)
            truncateSync(file, 0)
          }
        } catch {
          // the site has a lock: it goes on
        } finally {
          process.kill(site.pid, 'SIGCONT')
        }
        await pause(10)
      }
      client.close()
    },
    end: () => restore(kept!),
  }
}

const limitFileSize = (limit: string): void => {
  execFileSync('prlimit', ['--pid', String(site.pid), `--fsize=${limit}:unlimited`])
}

const options = { timeout: 100_000 }

describe('sessions in SQLite under load', () => {
  it('the file locked by another process: reads work, writes are 503, and all work again later', options, async () => {
    let client: Another
    let unlock: () => void
    const outcome = await underFault(site, load, {
      begin: () => {
        client = another(file)
        unlock = client.lock()
      },
      end: () => {
        unlock()
        client.close()
      },
    })
    expectHeld(outcome, [200])
  })

  // As on a full or read-only disk: the system refuses every write of the process
  it('the file read-only: reads work, writes are 503, and all work again later', options, async () => {
    const outcome = await underFault(site, load, {
      begin: () => limitFileSize('0'),
      end: () => limitFileSize('unlimited'),
    })
    expectHeld(outcome, [200])
  })

  it('the file truncated, then restored in place: no user is signed out', options, async () => {
    const outcome = await underFault(
      site,
      load,
      truncated((kept) => writeFileSync(file, kept)),
    )
    expectHeld(outcome, [503])
  })

  it('the file truncated, then replaced by a copy: no user is signed out', options, async () => {
    const outcome = await underFault(
      site,
      load,
      truncated((kept) => {
        writeFileSync(`${file}.restored`, kept)
        renameSync(`${file}.restored`, file)
      }),
    )
    expectHeld(outcome, [503])
  })
})

describe.each(engines)('sqliteStore by %s, locked by another connection', (engine) => {
  // A statement that libsql does not finish would block every later commit
  it('what is written after a lock can be read, and locks no other process out', async () => {
    const path = join(folder, `${engine.replace(/\W/g, '')} locked.db`)
    const store = sqliteStore({ url: `file:${path}`, engine })
    await store.insert('id', 'first', 60_000)
    const client = another(path, engine)
    const unlock = client.lock()
    const updating = store.update('id', 'second', 60_000)
    await pause(200)
    unlock()
    expect(await updating).toBe(true)
    const rows = client.execute('select text from auth_texts')
    expect(rows.map((row) => row['text'])).toEqual(['second'])
    expect(client.execute('delete from auth_texts returning text')).toHaveLength(1)
    client.close()
    store.close()
  })
})

describe.each(engines)('sqliteStore by %s, its file truncated', (engine) => {
  it('creates no new file, even if nothing has the old one open, and works again when it is restored', async () => {
    const path = join(folder, `${engine.replace(/\W/g, '')} truncated.db`)
    const store = sqliteStore({ url: `file:${path}`, engine })
    await store.insert('id', 'text', 60_000)
    const kept = backup(path, engine)
    truncateSync(path, 0)
    const answers: unknown[] = []
    for (let time = 0; time < 5; time++) {
      answers.push(
        await Promise.resolve(store.get(['id'])).catch(
          (error: Error) => 'code' in error && String(error.code).slice(0, 7),
        ),
      )
      collect()
      await pause(300)
      collect()
    }
    expect(answers).toEqual(Array.from({ length: 5 }, () => 'SQLITE_'))
    await expect(store.insert('other', 'text', 60_000)).rejects.toThrow()
    writeFileSync(path, kept)
    await vi.waitFor(async () => expect(await store.get(['id'])).toEqual(['text']), 120_000)
    store.close()
  })
})
