/** `postgresStore` on a real PostgreSQL, beside what every SQL server has (`sqlServer.unit.spec.ts`). */
import { postgresStore, type PostgresQuery } from 'koa-with-auth/stores'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'

const LIFETIME = 60_000

describeWithSql('postgres', 'postgresStore', () => {
  let port = 0
  let pool: pg.Pool
  const connect = (user = USER) => {
    const made = new pg.Pool({ host: '127.0.0.1', port, user, database: 'postgres', max: 4 })
    made.on('error', () => {})
    return made
  }
  beforeAll(async () => {
    port = await sqlPort('postgres')
    pool = connect()
  })
  afterAll(() => pool.end())
  const query: PostgresQuery = (sql, values) => pool.query(sql, values)
  const noted = () => {
    const asked: string[] = []
    const noting: PostgresQuery = (sql, values) => {
      asked.push(sql)
      return query(sql, values)
    }
    return { asked, noting }
  }
  const restricted = async (): Promise<PostgresQuery> => {
    const role = newName()
    await asOwner('postgres', `create role ${role} login`)
    const own = connect(role)
    onTestFinished(() => own.end())
    return (sql, values) => own.query(sql, values)
  }

  describe('tables', () => {
    it('are in the first schema of the search path, without a schema', async () => {
      const schema = newName()
      await asOwner('postgres', `create schema ${schema}`)
      const own = new pg.Pool({
        host: '127.0.0.1',
        port,
        user: USER,
        database: 'postgres',
        options: `-c search_path=${schema}`,
      })
      onTestFinished(() => own.end())
      const store = postgresStore({ query: (sql, values) => own.query(sql, values) })
      expect(await store.insert('a', 'b', LIFETIME)).toBe(true)
      expect(await postgresStore({ query, schema }).get(['a'])).toStrictEqual(['b'])
    })

    it('without the right to create their schema are an outage that names the command', async () => {
      const schema = newName()
      await expect(postgresStore({ query: await restricted(), schema }).get(['a'])).rejects.toMatchObject({
        code: '42501',
        message: `a right is missing; run the statements that \`npx koa-with-auth sql postgres --schema ${schema}\` prints, with the rights of the owner`,
      })
    })

    it('are created in a schema that is there, without the right to create schemas', async () => {
      const schema = newName()
      await asOwner('postgres', `create schema ${schema}; grant all on schema ${schema} to public`)
      expect(await postgresStore({ query: await restricted(), schema }).insert('a', 'b', LIFETIME)).toBe(true)
    })

    it('of another shape are an outage that names the column', async () => {
      const schema = newName()
      await asOwner('postgres', `create schema ${schema}; create table ${schema}.auth_texts (id text, sess json)`)
      await expect(postgresStore({ query, schema }).get(['a'])).rejects.toMatchObject({ code: '42703' })
    })
  })

  describe('questions', () => {
    it('a NUL is refused, whatever a driver makes of it', async () => {
      const { asked, noting } = noted()
      const store = postgresStore({ query: noting })
      for (const ask of [() => store.get(['a\0b']), () => store.insert('a', 'b\0', LIFETIME), () => store.end('\0', 1)])
        await expect(ask()).rejects.toThrow('PostgreSQL keeps no NUL')
      expect(asked).toStrictEqual([])
    })

    it('half of a surrogate pair is refused, because it would come back as another one', async () => {
      await expect(postgresStore({ query }).insert('a', '\ud800', LIFETIME)).rejects.toThrow(RangeError)
    })
  })

  it('expired rows are found by an index', async () => {
    const { asked, noting } = noted()
    const schema = newName()
    const store = postgresStore({ query: noting, schema })
    await store.insert('a', 'b', LIFETIME)
    const pruning = asked.find((sql) => sql.includes('skip locked')) ?? ''
    await asOwner(
      'postgres',
      `insert into ${schema}.auth_texts select 'n' || n, 'x', 9e15::bigint from generate_series(1, 20000) n; analyze ${schema}.auth_texts`,
    )
    const { rows } = await pool.query<{ 'QUERY PLAN': string }>(`explain ${pruning}`)
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('auth_texts_until')
  })
})
