/** Both engines of SQLite: `node:sqlite` from Node 22.13 on, and `@libsql/client`. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sqliteStore } from 'koa-with-auth/stores'
import { openSqlite } from '../../src/stores/sqlite.js'
import { describeUnless } from '../support/projects/programs.js'
import { engines } from '../support/stores/sqliteEngines.js'

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
