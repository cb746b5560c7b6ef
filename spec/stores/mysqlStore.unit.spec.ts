/** `mysqlStore` on a real MariaDB: its tables, rights, questions, failures and expired rows. */
import { mysqlStore, type MysqlQuery, type MysqlStoreOptions } from 'koa-with-auth/stores'
import mysql from 'mysql2/promise'
import { describe, expect, it, onTestFinished } from 'vitest'
import { optionsFrom } from '../../src/command/perform.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'

const LIFETIME = 60_000

const printed = (): string => {
  const result = optionsFrom(['sql', 'mysql'])
  return '_tag' in result && result._tag === 'Right' && 'text' in result.right ? result.right.text : ''
}

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

const restricted = async (name: string, ...rights: string[]): Promise<Database> => {
  const user = newName()
  await asOwner('mariadb', `create user ${user}@'%' identified by ''`)
  for (const right of rights) await asOwner('mariadb', `grant ${right} on ${name}.* to ${user}@'%'`)
  return connect(name, user)
}

describeWithSql('mariadb', 'mysqlStore', () => {
  describe('tables', () => {
    it('are created when they are first needed, by twenty connections and stores at once', async () => {
      const { name } = await newDatabase()
      const all = await Promise.all(Array.from({ length: 20 }, () => connect(name, USER)))
      const texts = await Promise.all(
        all.map(async ({ query }, at) => {
          const store = mysqlStore({ query })
          await store.insert(`key ${at}`, `text ${at}`, LIFETIME)
          return store.get([`key ${at}`])
        }),
      )
      expect(texts).toStrictEqual(all.map((_, at) => [`text ${at}`]))
    })

    it.each([true, false])('by the statements that `sql` prints, twice, are used (create: %s)', async (create) => {
      const { name } = await newDatabase()
      for (const _ of [1, 2]) await asOwner('mariadb', `use ${name}; ${printed()}`)
      const { query } = await restricted(name, 'select, insert, update, delete')
      const store = mysqlStore({ query, create })
      expect(await store.insert('a', 'b', LIFETIME)).toBe(true)
      await store.add('s', 'm', LIFETIME)
      expect([await store.get(['a']), await store.members('s')]).toStrictEqual([['b'], ['m']])
    })

    it.each([
      ['with create: false', { create: false }, 'a table is missing'],
      ['without the right to create a table', {}, 'a right is missing'],
    ])('that are missing are an outage that names the command: %s', async (_name, options, words) => {
      const { name } = await newDatabase()
      const { query } = await restricted(name, 'select, insert, update, delete')
      const store = mysqlStore({ query, ...options })
      for (const ask of [() => store.get(['a']), () => store.insert('a', 'b', LIFETIME)])
        await expect(ask()).rejects.toThrow(
          `${words}; run the statements that \`npx koa-with-auth sql mysql\` prints, with the rights of the owner`,
        )
    })
  })

  it('get and members are one statement, and so is each change, beside pruning', async () => {
    const { query } = await newDatabase()
    const asked: string[] = []
    const store = mysqlStore({
      query: (sql, values) => {
        asked.push(sql)
        return query(sql, values)
      },
    })
    await store.insert('a', 'b', LIFETIME)
    await store.add('s', 'm', LIFETIME)
    const asks = [
      () => store.get(['a', 'b', 'c']),
      () => store.members('s'),
      () => store.insert('c', 'd', LIFETIME),
      () => store.insert('c', 'd', LIFETIME),
      () => store.update('a', 'c', LIFETIME),
      () => store.update('a', 'd', LIFETIME, 'c'),
      () => store.end('a', LIFETIME),
      () => store.add('s', 'm', LIFETIME),
    ]
    for (const ask of asks) {
      asked.length = 0
      await ask()
      expect(asked.filter((sql) => !sql.includes('skip locked'))).toHaveLength(1)
    }
  })

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

  describe('failures', () => {
    const lost = (code: string) => Object.assign(new Error('lost'), { code })
    const failing = (query: MysqlQuery, ...errors: ReadonlyArray<Error>) => {
      const left = [...errors]
      let asked = 0
      const broken: MysqlQuery = (sql, values) => {
        asked += 1
        const error = left.shift()
        return error === undefined ? query(sql, values) : Promise.reject(error)
      }
      return { broken, asked: () => asked }
    }

    it.each(['PROTOCOL_CONNECTION_LOST', 'ECONNRESET', 'ER_SOCKET_UNEXPECTED_CLOSE'])(
      'a read is asked once more after %s, a write never',
      async (code) => {
        const { query } = await newDatabase()
        await mysqlStore({ query }).insert('a', 'b', LIFETIME)
        expect(await mysqlStore({ query: failing(query, lost(code)).broken }).get(['a'])).toStrictEqual(['b'])
        const write = failing(query, lost(code))
        await expect(mysqlStore({ query: write.broken }).update('a', 'c', LIFETIME)).rejects.toThrow('lost')
        expect(write.asked()).toBe(1)
      },
    )

    it('a statement that a deadlock has undone is tried again', async () => {
      const { query } = await newDatabase()
      const { broken } = failing(query, lost('ER_LOCK_DEADLOCK'), Object.assign(lost('x'), { errno: 1213 }))
      expect(await mysqlStore({ query: broken }).insert('a', 'b', LIFETIME)).toBe(true)
    })

    it.each<[string, unknown]>([
      ['undefined', undefined],
      ['a string', 'ok'],
      ['rows as arrays', [[['a', 'b']], []]],
      ['a row of another table', [[{ id: '61', sess: {} }], []]],
      ['a column that is no hexadecimal', [[{ id: '61', text: 'text' }], []]],
      ['only a count', [{ affectedRows: 1 }, undefined]],
      ['an id and a count', [1, 1]],
      ['an Error', new Error('no')],
    ])('a query that resolves to %s is an outage', async (_name, answer) => {
      // Safe: that it is wrong is what is tested
      const store = mysqlStore({ query: async () => answer as never })
      await expect(store.get(['a'])).rejects.toThrow(Error)
      await expect(store.insert('a', 'b', LIFETIME)).rejects.toThrow(Error)
    })
  })

  it.each<[string, unknown]>([
    ['mysqlStore({ query }) must be a function', {}],
    ['mysqlStore({ create }) must be true or false', { query: () => [], create: 'no' }],
    ['no option "schema"; there are query, create', { query: () => [], schema: 'x' }],
  ])('wrong options are a TypeError: %s', (words, options) => {
    // Safe: that they are wrong is what is tested
    expect(() => mysqlStore(options as MysqlStoreOptions)).toThrow(words)
  })

  it('expired rows go a few at a time beside writes, without waiting for locks of others', async () => {
    const { name, pool, query } = await newDatabase()
    let pruned = 0
    const counting: MysqlQuery = async (sql, values) => {
      const answer = await query(sql, values)
      if (sql.includes('skip locked')) pruned += 1
      return answer
    }
    const store = mysqlStore({ query: counting })
    await store.insert('a', 'b', LIFETIME)
    // both tables, beside the first write
    await expect.poll(() => pruned).toBe(2)
    await asOwner(
      'mariadb',
      `use ${name}; insert into auth_texts select concat('old ', seq), 'x', 1 from seq_1_to_120;
      insert into auth_members select 's', concat('old ', seq), 1 from seq_1_to_120`,
    )
    const rows = async () => {
      const [counted] = await pool.query<mysql.RowDataPacket[]>(
        'select (select count(*) from auth_texts) texts, (select count(*) from auth_members) members',
      )
      return [Number(counted[0]?.['texts']), Number(counted[0]?.['members'])]
    }
    const locker = await pool.getConnection()
    await locker.query('begin')
    await locker.query("select 1 from auth_texts where id in ('old 1', 'old 2') for update")
    const write = async () => {
      await store.update('a', 'b', LIFETIME)
      return rows()
    }
    await expect.poll(write).toStrictEqual([3, 0])
    await locker.query('rollback')
    locker.release()
    await expect.poll(write).toStrictEqual([1, 0])
    expect(await store.get(['a'])).toStrictEqual(['b'])
  })

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
