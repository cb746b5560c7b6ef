/** `postgresStore` and `mysqlStore` on a real PostgreSQL and a real MariaDB: tables, rights, questions, failures, expired rows. */
import { mysqlStore, postgresStore, type Store } from 'koa-with-auth/stores'
import mysql from 'mysql2/promise'
import pg from 'pg'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { optionsFrom } from '../../src/command/perform.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { describeWithSql, USER, type Sql } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'

const LIFETIME = 60_000

// Safe: each server gets the answers of its own client, or wrong ones, which are what is tested
type Query = (sql: string, values: Array<string | number | null>) => Promise<never>

/** A schema of PostgreSQL, or a database of MariaDB. */
interface Kind {
  readonly kind: Sql
  readonly caller: string
  readonly store: (query: Query, name: string, options?: { readonly create?: boolean }) => Store
  readonly connect: (name: string, user: string) => Promise<Query>
  readonly rowsIn: (answer: unknown) => ReadonlyArray<object>
  readonly create: (name: string) => string
  /** Statements, in the place of this name. */
  readonly within: (name: string, sql: string) => string
  readonly newUser: (user: string) => string
  /** Gives a user the right to use its tables, and nothing else. */
  readonly grant: (name: string, user: string) => string
  readonly command: (name: string) => string
  readonly codes: {
    readonly missing: string
    readonly lost: ReadonlyArray<string>
    readonly undone: ReadonlyArray<string | number>
  }
  readonly series: (text: string, count: number) => string
}

const kinds: ReadonlyArray<Kind> = [
  {
    kind: 'postgres',
    caller: 'postgresStore',
    store: (query, schema, options) => postgresStore({ query, schema, ...options }),
    connect: async (name, user) => {
      const options = `-c search_path=${name}`
      const port = await sqlPort('postgres')
      const pool = new pg.Pool({ host: '127.0.0.1', port, user, database: 'postgres', max: 4, options })
      pool.on('error', () => {})
      onTestFinished(() => pool.end())
      return (sql, values) => pool.query(sql, values) as Promise<never>
    },
    rowsIn: (answer) => (answer as { readonly rows: ReadonlyArray<object> }).rows,
    create: (name) => `create schema ${name}`,
    within: (name, sql) => `set search_path = ${name}; ${sql}`,
    newUser: (user) => `create role ${user} login`,
    grant: (name, user) =>
      `grant usage on schema ${name} to ${user}; grant select, insert, update, delete on all tables in schema ${name} to ${user}`,
    command: (name) => `sql postgres --schema ${name}`,
    codes: {
      missing: '42P01',
      lost: ['ECONNRESET', '57P01', 'CONNECTION_CLOSED'],
      undone: ['40P01', '40001'],
    },
    series: (text, count) => `select ${text.replace('?', "'old ' || n")} from generate_series(1, ${count}) n`,
  },
  {
    kind: 'mariadb',
    caller: 'mysqlStore',
    store: (query, _name, options) => mysqlStore({ query, ...options }),
    connect: async (name, user) => {
      const port = await sqlPort('mariadb')
      const pool = mysql.createPool({ host: '127.0.0.1', port, user, database: name, connectionLimit: 4 })
      onTestFinished(() => pool.end())
      return (sql, values) => pool.execute(sql, values) as Promise<never>
    },
    rowsIn: (answer) => (answer as ReadonlyArray<ReadonlyArray<object>>)[0] ?? [],
    create: (name) => `create database ${name}`,
    within: (name, sql) => `use ${name}; ${sql}`,
    newUser: (user) => `create user ${user}@'%' identified by ''`,
    grant: (name, user) => `grant select, insert, update, delete on ${name}.* to ${user}@'%'`,
    command: () => 'sql mysql',
    codes: {
      missing: 'ER_NO_SUCH_TABLE',
      lost: ['ECONNRESET', 'PROTOCOL_CONNECTION_LOST', 'ER_SOCKET_UNEXPECTED_CLOSE'],
      undone: ['ER_LOCK_DEADLOCK', 1213],
    },
    series: (text, count) => `select ${text.replace('?', "concat('old ', seq)")} from seq_1_to_${count}`,
  },
]

const printed = (line: string): string => {
  const result = optionsFrom(line.split(' '))
  return '_tag' in result && result._tag === 'Right' && 'text' in result.right ? result.right.text : ''
}

const failure = (code: string | number) => Object.assign(new Error('lost'), { code })

const placeIn = async (of: Kind) => {
  const name = newName()
  await asOwner(of.kind, of.create(name))
  return { name, query: await of.connect(name, USER) }
}

/** As a user without the right to create anything. */
const restrictedIn = async (of: Kind, name: string, ...rights: ReadonlyArray<Kind['grant']>): Promise<Query> => {
  const user = newName()
  await asOwner(of.kind, of.newUser(user))
  for (const right of rights) await asOwner(of.kind, right(name, user))
  return of.connect(name, user)
}

const noting = (query: Query) => {
  const asked: string[] = []
  const noted: Query = (sql, values) => {
    asked.push(sql)
    return query(sql, values)
  }
  return { asked, noted }
}

const instructionsOf = (of: Kind, name: string, what: string) =>
  `${what} is missing; run the statements that \`npx koa-with-auth ${of.command(name)}\` prints, with the rights of the owner`

for (const of of kinds)
  describeWithSql(of.kind, of.caller, () => {
    const place = () => placeIn(of)
    const restricted = (name: string, ...rights: ReadonlyArray<Kind['grant']>) => restrictedIn(of, name, ...rights)
    const made = async () => {
      const { name, query } = await place()
      return { name, query, store: of.store(query, name) }
    }
    const instructions = (name: string, what: string) => instructionsOf(of, name, what)

    describe('tables', () => {
      it('are created when they are first needed, by twenty connections and stores at once', async () => {
        const { name } = await place()
        const queries = await Promise.all(Array.from({ length: 20 }, () => of.connect(name, USER)))
        const texts = await Promise.all(
          queries.map(async (query, at) => {
            const store = of.store(query, name)
            await store.insert(`key ${at}`, `text ${at}`, LIFETIME)
            return store.get([`key ${at}`])
          }),
        )
        expect(texts).toStrictEqual(queries.map((_, at) => [`text ${at}`]))
      })

      it.each([true, false])('by the statements that `sql` prints, twice, are used (create: %s)', async (create) => {
        const { name } = await place()
        for (const _ of [1, 2]) await asOwner(of.kind, of.within(name, printed(of.command(name))))
        const store = of.store(await restricted(name, of.grant), name, { create })
        expect(await store.insert('a', 'b', LIFETIME)).toBe(true)
        await store.add('s', 'm', LIFETIME)
        expect([await store.get(['a']), await store.members('s')]).toStrictEqual([['b'], ['m']])
      })

      it('are created, and a failure has its code, if the client resolves to its errors', async () => {
        const { name, query } = await place()
        // Safe: the answer of another client
        const resolving: Query = (sql, values) => query(sql, values).catch((error: unknown) => error as never)
        const store = of.store(resolving, name)
        expect([await store.insert('a', 'b', LIFETIME), await store.get(['a'])]).toStrictEqual([true, ['b']])
        const unmade = of.store(async () => failure('53300') as never, name)
        await expect(unmade.get(['a'])).rejects.toMatchObject({ code: '53300' })
      })

      it.each([
        ['with create: false', { create: false }, 'a table'],
        ['without the right to create a table', {}, 'a right'],
      ])('that are missing are an outage that names the command: %s', async (_name, options, what) => {
        const { name } = await place()
        const store = of.store(await restricted(name, of.grant), name, options)
        for (const ask of [() => store.get(['a']), () => store.insert('a', 'b', LIFETIME)])
          await expect(ask()).rejects.toMatchObject({
            message: instructions(name, what),
            ...(what === 'a table' && { code: of.codes.missing }),
          })
      })

      it('without the right to read them are an outage that names the command', async () => {
        const { name, query } = await place()
        await of.store(query, name).insert('a', 'b', LIFETIME)
        const readOnly = (one: string, user: string) =>
          of.grant(one, user).replace('select, insert, update, delete', 'insert')
        await expect(of.store(await restricted(name, readOnly), name).get(['a'])).rejects.toThrow(
          instructions(name, 'a right'),
        )
      })
    })

    it('get and members are one statement, and so is each change, beside pruning', async () => {
      const { name, query } = await place()
      const { asked, noted } = noting(query)
      const store = of.store(noted, name)
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
      const statements: number[] = []
      for (const ask of [...asks, () => store.get([])]) {
        asked.length = 0
        await ask()
        statements.push(asked.filter((sql) => !sql.includes('skip locked')).length)
      }
      expect(statements).toStrictEqual([...asks.map(() => 1), 0])
    })

    describe('failures', () => {
      const failing = (query: Query, ...errors: ReadonlyArray<Error>) => {
        const left = [...errors]
        let asked = 0
        const broken: Query = (sql, values) => {
          asked += 1
          const error = left.shift()
          return error === undefined ? query(sql, values) : Promise.reject(error)
        }
        return { broken, asked: () => asked }
      }
      const losses = [
        ...of.codes.lost.map(failure),
        new Error('Failed query', { cause: failure('ECONNRESET') }),
        new Error('Connection terminated unexpectedly'),
      ]

      it.each(losses)('a read that lost its connection is asked once more, a write never: %s', async (error) => {
        const { name, query, store } = await made()
        await store.insert('a', 'b', LIFETIME)
        expect(await of.store(failing(query, error).broken, name).get(['a'])).toStrictEqual(['b'])
        const twice = failing(query, error, error)
        await expect(of.store(twice.broken, name).members('a')).rejects.toBe(error)
        const write = failing(query, error)
        await expect(of.store(write.broken, name).update('a', 'c', LIFETIME)).rejects.toBe(error)
        expect([twice.asked(), write.asked()]).toStrictEqual([2, 1])
      })

      it('no other failure is asked again', async () => {
        const { name, query } = await place()
        const one = failing(query, failure('53300'))
        await expect(of.store(one.broken, name).get(['a'])).rejects.toMatchObject({ code: '53300' })
        expect(one.asked()).toBe(1)
      })

      it.each(of.codes.undone)('a statement that was undone is tried again: %s', async (code) => {
        const { name, query } = await place()
        const { broken } = failing(query, failure(code), failure(code), failure(code))
        expect(await of.store(broken, name).insert('a', 'b', LIFETIME)).toBe(true)
      })

      it.each<[string, unknown]>([
        ['undefined', undefined],
        ['a string', 'ok'],
        ['an object without rows', {}],
        ['rows that are no array', { rows: 'a' }],
        ['rows as arrays', [['a', 'b']]],
        ['rows as arrays in an object', { rows: [['a', 'b']] }],
        ['rows as arrays, in a pair', [[['a', 'b']], []]],
        ['a pair of rows and a count', [[{ id: 'a', text: 'b' }], 1]],
        ['rows in an array of one', [[{ id: '61', text: '62' }]]],
        ['a row of another table', [{ id: '61', sess: {} }]],
        ['a row of another table, in a pair', [[{ id: '61', sess: {} }], []]],
        ['a column that was parsed', [{ id: '61', text: { user: 'anna' } }]],
        ['only a count', [{ affectedRows: 1 }, undefined]],
        ['an id and a count', [1, 1]],
        ['an Error', new Error('no')],
      ])('a query that resolves to %s is an outage', async (_name, answer) => {
        // Safe: that it is wrong is what is tested
        const store = of.store(async () => answer as never, 'x')
        await expect(store.get(['a'])).rejects.toThrow(Error)
        await expect(store.insert('a', 'b', LIFETIME)).rejects.toThrow(Error)
        await expect(store.update('a', 'b', LIFETIME)).rejects.toThrow(Error)
      })

      it.each([[], {}, { rows: [] }, { rows: [{}] }, [{ done: 'yes' }], [{ done: 1 }, { done: 1 }]])(
        'a change whose rows are %j is an outage, and no success',
        async (answer) => {
          // Safe: that it is wrong is what is tested
          const store = of.store(async () => answer as never, 'x')
          await expect(store.insert('a', 'b', LIFETIME)).rejects.toThrow(`${of.caller}({ query }): it must resolve to`)
        },
      )
    })

    it('expired rows go a few at a time beside writes, without waiting for locks of others', async () => {
      const { name, query } = await place()
      let pruned = 0
      const counting: Query = async (sql, values) => {
        const answer = await query(sql, values)
        if (sql.includes('skip locked')) pruned += 1
        return answer
      }
      const store = of.store(counting, name)
      await store.insert('a', 'b', LIFETIME)
      // both tables, beside the first write
      await expect.poll(() => pruned).toBe(2)
      const over = ["auth_texts ?, 'x', 1", "auth_members 's', ?, 1"].map((one) => {
        const [table = '', ...values] = one.split(' ')
        return `insert into ${table} ${of.series(values.join(' '), 120)}`
      })
      await asOwner(of.kind, of.within(name, over.join('; ')))
      const counts = async () => {
        const [row] = of.rowsIn(
          await query('select (select count(*) from auth_texts) a, (select count(*) from auth_members) b', []),
        )
        return Object.values(row ?? {}).map(Number)
      }
      // another one changes two of them, for long
      const { release } = await locked(
        of.kind,
        of.within(name, "select 1 from auth_texts where id in ('old 1', 'old 2') for update"),
      )
      const write = async () => {
        await store.update('a', 'b', LIFETIME)
        return counts()
      }
      await expect.poll(write).toStrictEqual([3, 0])
      await release()
      await expect.poll(write).toStrictEqual([1, 0])
      expect(await store.get(['a'])).toStrictEqual(['b'])
    })
  })

/** A transaction that has run these statements, until it is released. */
const locked = async (kind: Sql, sql: string): Promise<{ readonly release: () => Promise<void> }> => {
  const server = { host: '127.0.0.1', port: await sqlPort(kind), user: USER }
  if (kind === 'mariadb') {
    const connection = await mysql.createConnection({ ...server, multipleStatements: true })
    await connection.query(`begin; ${sql}`)
    return { release: () => connection.end() }
  }
  const client = new pg.Client({ ...server, database: 'postgres' })
  await client.connect()
  await client.query(`begin; ${sql}`)
  return { release: () => client.end() }
}

// Safe: these are all
const [postgres, mariadb] = kinds as [Kind, Kind]

describeWithSql('postgres', 'postgresStore', () => {
  it('has its tables in the first schema of the search path, without a schema', async () => {
    const { name, query } = await placeIn(postgres)
    expect(await postgresStore({ query }).insert('a', 'b', LIFETIME)).toBe(true)
    expect(await postgresStore({ query, schema: name }).get(['a'])).toStrictEqual(['b'])
  })

  it('needs the right to create schemas only if its schema is missing', async () => {
    const [{ name }, missing] = [await placeIn(postgres), newName()]
    const query = await restrictedIn(postgres, name, (one, user) => `grant all on schema ${one} to ${user}`)
    expect(await postgresStore({ query, schema: name }).insert('a', 'b', LIFETIME)).toBe(true)
    await expect(postgresStore({ query, schema: missing }).get(['a'])).rejects.toMatchObject({
      code: '42501',
      message: instructionsOf(postgres, missing, 'a right'),
    })
  })

  it('with a table of another shape is an outage that names the column', async () => {
    const { name, query } = await placeIn(postgres)
    await asOwner('postgres', `create table ${name}.auth_texts (id text, sess json)`)
    await expect(postgresStore({ query, schema: name }).get(['a'])).rejects.toMatchObject({ code: '42703' })
  })

  it('finds expired rows by an index', async () => {
    const { name, query } = await placeIn(postgres)
    const { asked, noted } = noting(query)
    await postgresStore({ query: noted, schema: name }).insert('a', 'b', LIFETIME)
    const pruning = asked.find((sql) => sql.includes('skip locked')) ?? ''
    await asOwner(
      'postgres',
      `insert into ${name}.auth_texts select 'n' || n, 'x', 9e15::bigint from generate_series(1, 20000) n; analyze ${name}.auth_texts`,
    )
    expect(JSON.stringify(postgres.rowsIn(await query(`explain ${pruning}`, [])))).toContain('auth_texts_until')
  })
})

describeWithSql('mariadb', 'mysqlStore', () => {
  it('has a time without a zone: an hour that comes twice does not', async () => {
    const { name, query } = await placeIn(mariadb)
    const port = await sqlPort('mariadb')
    const zoned = await mysql.createConnection({ host: '127.0.0.1', port, user: USER, database: name })
    onTestFinished(() => zoned.end())
    await zoned.query("set time_zone = '-11:00'")
    await mysqlStore({ query: (sql, values) => zoned.execute(sql, values) }).insert('a', 'b', LIFETIME)
    const ask = 'select until - unix_timestamp(now(3)) * 1000 as kept from auth_texts'
    const [kept] = Object.values(mariadb.rowsIn(await query(ask, []))[0] ?? {}).map(Number)
    expect(kept).toBeLessThanOrEqual(LIFETIME)
    expect(kept).toBeGreaterThan(0)
    expect(await mysqlStore({ query }).get(['a'])).toStrictEqual(['b'])
  })
})

it('a client that never answers holds up the tables for ten seconds, and the pruning for five minutes', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  let [made, pruned] = [0, 0]
  const query = (sql: string): Promise<object[]> => {
    if (sql.startsWith('do $$')) return made++ === 0 ? new Promise(() => {}) : Promise.resolve([])
    if (sql.includes('skip locked')) return new Promise(() => void pruned++)
    return made > 1
      ? Promise.resolve([{ done: 1 }])
      : Promise.reject(Object.assign(new Error('missing'), { code: '42P01' }))
  }
  const store = postgresStore({ query })
  const write = () => store.insert('a', 'b', LIFETIME)
  for (const _ of [1, 2]) void write()
  await vi.waitFor(() => expect(made).toBe(1))
  // requests that come meanwhile wait for the same tables
  await new Promise(setImmediate)
  expect(made).toBe(1)
  vi.advanceTimersByTime(10_000)
  expect([await write(), made, pruned]).toStrictEqual([true, 2, 1])
  vi.advanceTimersByTime(299_999)
  expect([await write(), pruned]).toStrictEqual([true, 1])
  vi.advanceTimersByTime(1)
  expect([await write(), pruned]).toStrictEqual([true, 2])
})

it('tables that are missing after they were made are an outage', async () => {
  const asked: string[] = []
  const query = (sql: string): Promise<object[]> => {
    asked.push(sql.slice(0, 5))
    return asked.length > 9 || sql.startsWith('do $$') ? Promise.resolve([]) : Promise.reject(failure('42P01'))
  }
  await expect(postgresStore({ query }).get(['a'])).rejects.toMatchObject({ code: '42P01' })
  expect(asked).toStrictEqual(['selec', 'do $$', 'selec'])
})

it('a statement that a deadlock undoes each time is tried twenty times', async () => {
  const query = vi.fn(() => Promise.reject(Object.assign(new Error('deadlock'), { code: 'ER_LOCK_DEADLOCK' })))
  await expect(mysqlStore({ query }).get(['a'])).rejects.toThrow('deadlock')
  expect(query).toHaveBeenCalledTimes(20)
})
