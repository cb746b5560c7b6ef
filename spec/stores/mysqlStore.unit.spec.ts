/** `mysqlStore` on a real MariaDB, beside what every SQL server has (`sqlServer.unit.spec.ts`). */
import { mysqlStore, type MysqlQuery } from 'koa-with-auth/stores'
import mysql from 'mysql2/promise'
import { expect, it, onTestFinished } from 'vitest'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'

const LIFETIME = 60_000

interface Database {
  readonly name: string
  readonly query: MysqlQuery
  readonly pool: mysql.Pool
}

const newDatabase = async (collation = 'utf8mb4_general_ci'): Promise<Database> => {
  const name = newName()
  await asOwner('mariadb', `create database ${name} collate ${collation}`)
  return connect(name, USER)
}

const connect = async (name: string, user: string): Promise<Database> => {
  const port = await sqlPort('mariadb')
  const pool = mysql.createPool({ host: '127.0.0.1', port, user, database: name, connectionLimit: 4 })
  onTestFinished(() => pool.end())
  return { name, pool, query: (sql, values) => pool.execute(sql, values) }
}

describeWithSql('mariadb', 'mysqlStore', () => {
  it.each(['utf8mb4_general_ci', 'utf8mb4_bin', 'latin1_swedish_ci'])(
    'keys and texts are any strings, compared byte by byte, in a database of %s',
    async (collation) => {
      const { query } = await newDatabase(collation)
      const store = mysqlStore({ query })
      const keys = ['a', 'A', 'ä', 'a ', 'a\0', 'a\0\0', '🔑', '🔒', `${'a'.repeat(600)}`, `${'a'.repeat(600)} `]
      for (const key of keys) expect(await store.insert(key, key, LIFETIME)).toBe(true)
      for (const key of keys) expect(await store.update(key, key, LIFETIME, `${key} `)).toBe(false)
      expect(await store.get(keys)).toStrictEqual(keys)
      for (const member of keys) await store.add('s', member, LIFETIME)
      expect([...(await store.members('s'))].sort()).toStrictEqual([...keys].sort())
    },
  )

  it('the time has no zone: an hour that comes twice does not', async () => {
    const { pool, query } = await newDatabase()
    const zoned: MysqlQuery = async (sql, values) => {
      const connection = await pool.getConnection()
      await connection.query("set time_zone = '-11:00'")
      return connection.execute(sql, values).finally(() => connection.release())
    }
    await mysqlStore({ query: zoned }).insert('a', 'b', LIFETIME)
    const [rows] = await pool.query<mysql.RowDataPacket[]>(
      'select until - unix_timestamp(now(3)) * 1000 as kept from auth_texts',
    )
    expect(Number(rows[0]?.['kept'])).toBeLessThanOrEqual(LIFETIME)
    expect(Number(rows[0]?.['kept'])).toBeGreaterThan(0)
    expect(await mysqlStore({ query }).get(['a'])).toStrictEqual(['b'])
  })
})
