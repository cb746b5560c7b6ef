/** `sqliteStore` on a real file: a file that was replaced, what has expired, and several connections. */
import fs, { copyFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { sqliteStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { sqliteFile } from '../support/stores/sessionStores.js'
import { another, engines } from '../support/stores/sqliteEngines.js'

const LIFETIME = 60_000

const removed = (path: string): void => {
  for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
}

describe.each(engines)('sqliteStore by %s', (engine) => {
  const file = sqliteFile()
  let count = 0
  const open = (url = file().replace('sessions', `own-${engine.replace(/\W/g, '')}-${++count}`)) => {
    const store = sqliteStore({ url, engine })
    onTestFinished(() => store.close())
    return { store, path: url.replace('file:', ''), url }
  }

  it('a file that was replaced is an outage, and then the new one is used', async () => {
    const { store, path, url } = open()
    await store.insert('a', 'before', LIFETIME)
    store.close()
    const backup = `${path}.backup`
    copyFileSync(path, backup)
    await store.update('a', 'after', LIFETIME)
    const inode = statSync(path).ino
    removed(path)
    renameSync(backup, path)
    expect(statSync(path).ino).not.toBe(inode)
    const sign = async () =>
      store.end('a', LIFETIME).then(
        () => 'acknowledged',
        (error: unknown) => error,
      )
    // what is acknowledged after the outage is in the new file
    const outcomes: unknown[] = []
    await expect
      .poll(async () => {
        outcomes.push(await sign())
        return outcomes.at(-1)
      })
      .toMatchObject({ code: 'SQLITE_REPLACED' })
    await expect.poll(sign).toBe('acknowledged')
    const other = open(url)
    expect(await other.store.get(['a'])).toStrictEqual([undefined])
    expect(await other.store.insert('a', 'again', LIFETIME)).toBe(false)
  })

  it('a file that is replaced while it is opened is an outage', async () => {
    const { store } = open()
    await store.insert('a', 'text', LIFETIME)
    store.close()
    // Safe: the file of before
    const spy = vi.spyOn(fs, 'statSync').mockReturnValueOnce({ dev: 0, ino: 0 } as fs.Stats)
    syncBuiltinESMExports()
    onTestFinished(() => {
      spy.mockRestore()
      syncBuiltinESMExports()
    })
    await expect(store.get(['a'])).rejects.toMatchObject({ code: 'SQLITE_REPLACED' })
  })

  it('a file that was removed is an outage until there is one with tables, for reads as well', async () => {
    const { store, path } = open()
    await store.insert('a', 'text', LIFETIME)
    removed(path)
    const read = async () =>
      Promise.resolve(store.get(['a'])).then(
        () => 'answered',
        (error: unknown) => error,
      )
    await expect.poll(read).toMatchObject({ code: 'SQLITE_REPLACED' })
    await expect.poll(read).toMatchObject({ message: expect.stringContaining('no such table') as string })
  })

  it('expired rows go a few at a time beside writes', async () => {
    const clock = stoppedClock()
    const { store, path } = open()
    for (let at = 0; at < 30; at += 1) {
      await store.insert(`old ${at}`, 'text', LIFETIME)
      await store.add('set', `old ${at}`, LIFETIME)
    }
    clock.move(2 * LIFETIME)
    const other = another(path, engine)
    onTestFinished(() => other.close())
    const rows = () => {
      const [counted] = other.execute(
        'select (select count(*) from auth_texts) as texts, (select count(*) from auth_members) as members',
      )
      return [Number(counted?.['texts']), Number(counted?.['members'])]
    }
    const left: number[][] = []
    for (let at = 0; at < 6; at += 1) {
      await store.end('new', LIFETIME)
      left.push(rows())
    }
    expect(left[0]).toStrictEqual([23, 22])
    expect(left.at(-1)).toStrictEqual([1, 0])
    // at most once a second, where no more are left
    await store.insert('short', 'text', 1)
    clock.move(2)
    await store.end('new', LIFETIME)
    expect(rows()).toStrictEqual([2, 0])
  })

  it('a clock that is set forward lets nothing be forgotten for good', async () => {
    const clock = stoppedClock()
    const { store } = open()
    await store.end('a', LIFETIME)
    clock.set(2 * LIFETIME)
    // one prunes
    clock.move(1000)
    await store.end('b', LIFETIME)
    clock.set(-2 * LIFETIME)
    expect(await store.insert('a', 'text', LIFETIME)).toBe(false)
  })
})
