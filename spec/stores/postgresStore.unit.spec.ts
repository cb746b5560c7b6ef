/** `postgresStore` on a real PostgreSQL: its tables, rights, questions, failures and expired rows. */
import { postgresStore, type PostgresQuery, type PostgresStoreOptions } from 'koa-with-auth/stores'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { optionsFrom } from '../../src/command/perform.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'

const LIFETIME = 60_000

const printed = (line: string): string => {
  const result = optionsFrom(line.split(' '))
  return '_tag' in result && result._tag === 'Right' && 'text' in result.right ? result.right.text : ''
}

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
  const restricted = async (schema: string, ...grants: string[]): Promise<PostgresQuery> => {
    const role = newName()
    await asOwner('postgres', `create role ${role} login`)
    for (const grant of grants) await asOwner('postgres', `${grant.replaceAll('SCHEMA', schema)} to ${role}`)
    const own = connect(role)
    onTestFinished(() => own.end())
    return (sql, values) => own.query(sql, values)
  }

  describe('tables', () => {
    it('are created when they are first needed, by twenty connections and stores at once', async () => {
      const schema = newName()
      const pools = Array.from({ length: 20 }, () => connect())
      onTestFinished(() => Promise.all(pools.map((one) => one.end())).then(() => {}))
      const stores = pools.map((one) => postgresStore({ query: (sql, values) => one.query(sql, values), schema }))
      const texts = await Promise.all(
        stores.map(async (store, at) => {
          await store.insert(`key ${at}`, `text ${at}`, LIFETIME)
          return store.get([`key ${at}`])
        }),
      )
      expect(texts).toStrictEqual(stores.map((_, at) => [`text ${at}`]))
      const { rows } = await pool.query('select indexname from pg_indexes where schemaname = $1', [schema])
      expect(rows.map((row) => String(Object.values(row as object)[0])).sort()).toStrictEqual([
        'auth_members_pkey',
        'auth_members_until',
        'auth_texts_pkey',
        'auth_texts_until',
      ])
    })

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

    it.each([true, false])('by the statements that `sql` prints, twice, are used (create: %s)', async (create) => {
      const schema = newName()
      const statements = printed(`sql postgres --schema ${schema}`)
      await asOwner('postgres', statements)
      await asOwner('postgres', statements)
      // no right to create anything
      const own = await restricted(
        schema,
        'grant usage on schema SCHEMA',
        'grant select, insert, update, delete on all tables in schema SCHEMA',
      )
      const store = postgresStore({ query: own, schema, create })
      expect(await store.insert('a', 'b', LIFETIME)).toBe(true)
      await store.add('s', 'm', LIFETIME)
      expect([await store.get(['a']), await store.members('s')]).toStrictEqual([['b'], ['m']])
    })

    it.each([
      ['with create: false', { create: false }, '42P01', 'a table is missing', []],
      ['without the right to create a schema', {}, '42501', 'a right is missing', []],
      ['without the right to create a table', {}, '42501', 'a right is missing', ['grant usage on schema SCHEMA']],
    ])('that are missing are an outage that names the command: %s', async (_name, options, code, words, grants) => {
      const schema = newName()
      if (grants.length > 0) await asOwner('postgres', `create schema ${schema}`)
      const store = postgresStore({ query: await restricted(schema, ...grants), schema, ...options })
      for (const ask of [() => store.get(['a']), () => store.insert('a', 'b', LIFETIME)])
        await expect(ask()).rejects.toMatchObject({
          code,
          message: `${words}; run the statements that \`npx koa-with-auth sql postgres --schema ${schema}\` prints, with the rights of the owner`,
        })
    })

    it('without the right to read them are an outage that names the command', async () => {
      const schema = newName()
      await asOwner('postgres', printed(`sql postgres --schema ${schema}`))
      const store = postgresStore({ query: await restricted(schema, 'grant usage on schema SCHEMA'), schema })
      await expect(store.get(['a'])).rejects.toThrow('a right is missing; run the statements that')
    })

    it('of another shape are an outage that names the column', async () => {
      const schema = newName()
      await asOwner('postgres', `create schema ${schema}; create table ${schema}.auth_texts (id text, sess json)`)
      await expect(postgresStore({ query, schema }).get(['a'])).rejects.toMatchObject({ code: '42703' })
    })
  })

  describe('questions', () => {
    it('get and members are one statement, and so is each change, beside pruning', async () => {
      const { asked, noting } = noted()
      const store = postgresStore({ query: noting, schema: newName() })
      await store.insert('a', 'b', LIFETIME)
      const statements = async (ask: () => unknown) => {
        asked.length = 0
        await ask()
        return asked.filter((sql) => !sql.includes('skip locked')).length
      }
      const changes = [
        () => store.insert('c', 'd', LIFETIME),
        () => store.update('a', 'c', LIFETIME),
        () => store.update('a', 'd', LIFETIME, 'c'),
        () => store.end('a', LIFETIME),
        () => store.add('s', 'm', LIFETIME),
      ]
      for (const ask of [() => store.get(['a', 'b', 'c']), () => store.members('s'), ...changes])
        expect(await statements(ask)).toBe(1)
      expect(await statements(() => store.get([]))).toBe(0)
    })

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

  describe('failures', () => {
    const failing = (...errors: ReadonlyArray<unknown>) => {
      const left = [...errors]
      let asked = 0
      const broken: PostgresQuery = (sql, values) => {
        asked += 1
        // Safe: as it was given
        return left.length > 0 ? Promise.reject(left.shift()) : query(sql, values)
      }
      return { broken, asked: () => asked }
    }
    const lost = (code: string) => Object.assign(new Error('lost'), { code })
    const wrapped = new Error('Failed query', { cause: lost('ECONNRESET') })
    const inWords = new Error('Connection terminated unexpectedly')

    it.each([lost('ECONNRESET'), lost('57P01'), lost('CONNECTION_CLOSED'), wrapped, inWords])(
      'a read that fails because the connection was lost is asked once more, a write never: %s',
      async (error) => {
        const schema = newName()
        await postgresStore({ query, schema }).insert('a', 'b', LIFETIME)
        const once = failing(error)
        expect(await postgresStore({ query: once.broken, schema }).get(['a'])).toStrictEqual(['b'])
        const twice = failing(error, error)
        await expect(postgresStore({ query: twice.broken, schema }).members('a')).rejects.toBe(error)
        expect(twice.asked()).toBe(2)
        const write = failing(error)
        await expect(postgresStore({ query: write.broken, schema }).update('a', 'c', LIFETIME)).rejects.toBe(error)
        expect(write.asked()).toBe(1)
      },
    )

    it('no other failure is asked again', async () => {
      const one = failing(lost('53300'))
      await expect(postgresStore({ query: one.broken }).get(['a'])).rejects.toMatchObject({ code: '53300' })
      expect(one.asked()).toBe(1)
    })

    it.each(['40P01', '40001'])('a statement that was undone is tried again: %s', async (code) => {
      const schema = newName()
      const { broken } = failing(lost(code), lost(code), lost(code))
      expect(await postgresStore({ query: broken, schema }).insert('a', 'b', LIFETIME)).toBe(true)
    })

    it.each<[string, unknown]>([
      ['undefined', undefined],
      ['a string', 'ok'],
      ['an object without rows', {}],
      ['rows that are no array', { rows: 'a' }],
      ['rows as arrays', [['a', 'b']]],
      ['rows as arrays in an object', { rows: [['a', 'b']] }],
      ['a pair of rows and a count', [[{ id: 'a', text: 'b' }], 1]],
      ['a row of another table', [{ id: 'a', sess: {} }]],
      ['a column that was parsed', [{ id: 'a', text: { user: 'anna' } }]],
      ['an Error', new Error('no')],
    ])('a query that resolves to %s is an outage', async (_name, answer) => {
      // Safe: that it is wrong is what is tested
      const store = postgresStore({ query: async () => answer as never })
      await expect(store.get(['a'])).rejects.toThrow(Error)
      await expect(store.insert('a', 'b', LIFETIME)).rejects.toThrow(Error)
      await expect(store.update('a', 'b', LIFETIME)).rejects.toThrow(Error)
    })

    it.each([[], {}, { rows: [] }, { rows: [{}] }, [{ done: 'yes' }], [{ done: 1 }, { done: 1 }]])(
      'a change whose rows are %j is an outage, and no success',
      async (answer) => {
        // Safe: that it is wrong is what is tested
        const store = postgresStore({ query: async () => answer as never })
        await expect(store.insert('a', 'b', LIFETIME)).rejects.toThrow('postgresStore({ query }): it must resolve to')
      },
    )
  })

  it.each<[string, unknown]>([
    ['postgresStore({ query }) must be a function', {}],
    ['postgresStore({ query }) must be a function', { query: 'select' }],
    ['takes 3 parameters, but is called with 2', { query: (_a: unknown, _b: unknown, _c: unknown) => [] }],
    ['postgresStore({ schema }) must be a name', { query: () => [], schema: 'a"; drop table users; --' }],
    ['postgresStore({ schema }) must be a name', { query: () => [], schema: '' }],
    ['postgresStore({ create }) must be true or false', { query: () => [], create: 'no' }],
    ['no option "table"; there are query, schema, create', { query: () => [], table: 'x' }],
  ])('wrong options are a TypeError: %s', (words, options) => {
    // Safe: that they are wrong is what is tested
    const make = () => postgresStore(options as PostgresStoreOptions)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(words)
  })

  describe('expired rows', () => {
    it('go a few at a time beside writes, without waiting for locks of others', async () => {
      const schema = newName()
      let pruned = 0
      const counting: PostgresQuery = async (sql, values) => {
        const answer = await query(sql, values)
        if (sql.includes('skip locked')) pruned += 1
        return answer
      }
      const store = postgresStore({ query: counting, schema })
      await store.insert('a', 'b', LIFETIME)
      // beside the first write
      await expect.poll(() => pruned).toBe(1)
      const over = `insert into ${schema}.auth_texts select 'old ' || n, 'x', 1 from generate_series(1, 120) n;
        insert into ${schema}.auth_members select 's', 'old ' || n, 1 from generate_series(1, 120) n`
      await asOwner('postgres', over)
      const rows = async () => {
        const { rows: counted } = await pool.query<{ texts: string; members: string }>(
          `select (select count(*) from ${schema}.auth_texts) texts, (select count(*) from ${schema}.auth_members) members`,
        )
        return [Number(counted[0]?.texts), Number(counted[0]?.members)]
      }
      // another one changes two of them, for long
      const locker = await pool.connect()
      await locker.query('begin')
      await locker.query(`select 1 from ${schema}.auth_texts where id in ('old 1', 'old 2') for update`)
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

    it('are found by an index', async () => {
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
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan).toContain('auth_texts_until')
    })
  })

  it('the time is that of the database, whatever this process thinks', async () => {
    const schema = newName()
    const store = postgresStore({ query, schema })
    await store.insert('a', 'b', LIFETIME)
    const { rows } = await pool.query<{ left: number }>(
      `select until - extract(epoch from clock_timestamp()) * 1000 as left from ${schema}.auth_texts`,
    )
    expect(Number(rows[0]?.left)).toBeLessThanOrEqual(LIFETIME)
    expect(Number(rows[0]?.left)).toBeGreaterThan(0)
  })
})
