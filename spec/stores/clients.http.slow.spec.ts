/**
 * What the guide about stores says of other packages: each line of `query` that is called tested, with the real package; the store of one's
 * own, on a real LMDB; and the laws that stores of sessions break. The packages are those of `clients/package.json`, installed for the run.
 */
/* eslint-disable @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-member-access -- these packages have no types here */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mysqlStore, postgresStore, type Store } from 'koa-with-auth/stores'
import { LawViolations } from 'koa-with-auth/testing'
import { laws } from 'koa-with-auth/testing/laws'
import ts from 'typescript'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { blocksOf } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'
import { madeOnce } from '../support/runs/madeOnce.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName, type MysqlQuery, type PostgresQuery } from '../support/stores/databases.js'

const guide = readFileSync(`${repository}examples/guides/stores.md`, 'utf8')

const host = '127.0.0.1'

/** Anything of a package that has no types here. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- these packages are not installed where types are checked
type Package = any

const installed = (): NodeJS.Require => {
  const folder = madeOnce('database-clients', (made) => {
    for (const name of ['package.json', 'package-lock.json'])
      copyFileSync(`${repository}spec/stores/clients/${name}`, join(made, name))
    execFileSync('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: made, stdio: 'pipe' })
  })
  return createRequire(join(folder, 'package.json'))
}

const rowsUnder = (heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const table = guide.slice(guide.indexOf(heading)).split('\n\n')[0] ?? ''
  return table
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    )
}

/** The lines of a table that are called tested, by the names of their packages. */
const testedLines = (heading: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    rowsUnder(heading).flatMap(([name = '', line = '', tested]) =>
      tested === 'yes' ? [[name, line.replaceAll('`', '')]] : [],
    ),
  )

/** The function that a line is, with these names in scope. */
const written = (line: string, scope: Readonly<Record<string, unknown>>): unknown =>
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the guide's own line
  (new Function(...Object.keys(scope), `return ${line}`) as (...values: unknown[]) => unknown)(...Object.values(scope))

type Scope = Readonly<Record<string, unknown>>

const closing = <A>(value: A, close: (value: A) => unknown): A => {
  onTestFinished(async () => void (await close(value)))
  return value
}

interface Server {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
}

/** What the lines of PostgreSQL name. */
const postgresScopes: Readonly<Record<string, (load: NodeJS.Require, server: Server) => Scope | Promise<Scope>>> = {
  pg: (load, server) => ({ pool: pgPool(load, server) }),
  'postgres.js': (load, server) => ({
    sql: closing(load('postgres')({ ...server, onnotice: () => {} }), (sql: Package) => sql.end()),
  }),
  PGlite: async (load) => {
    const { PGlite } = load('@electric-sql/pglite')
    return { db: closing(await PGlite.create(), (db: Package) => db.close()) }
  },
  Kysely: (load, server) => {
    const { CompiledQuery, Kysely, PostgresDialect } = load('kysely')
    return { CompiledQuery, db: new Kysely({ dialect: new PostgresDialect({ pool: pgPool(load, server) }) }) }
  },
  Drizzle: (load, server) => ({ db: load('drizzle-orm/node-postgres').drizzle(pgPool(load, server)) }),
  Knex: (load, connection) => ({ knex: knexOf(load, 'pg', connection) }),
  TypeORM: (load, server) => dataSourceOf(load, 'postgres', server),
  Sequelize: (load, { host: name, port, user: username, database }) => {
    const { Sequelize } = load('sequelize')
    const options = { dialect: 'postgres', host: name, port, username, database, logging: false }
    return { sequelize: closing(new Sequelize(options), (sequelize: Package) => sequelize.close()) }
  },
}

/** What the lines of MySQL and MariaDB name. */
const mysqlScopes: typeof postgresScopes = {
  mysql2: (load, server) => ({ pool: mysqlPool(load, server) }),
  mariadb: (load, server) => ({
    pool: closing(load('mariadb').createPool(server), (pool: Package) => pool.end()),
  }),
  Drizzle: (load, server) => ({ db: load('drizzle-orm/mysql2').drizzle(mysqlPool(load, server)) }),
  Knex: (load, connection) => ({ knex: knexOf(load, 'mysql2', connection) }),
  TypeORM: (load, server) => dataSourceOf(load, 'mysql', server),
}

const pgPool = (load: NodeJS.Require, server: Server): Package =>
  closing(new (load('pg').Pool)(server), (pool: Package) => pool.end())

const mysqlPool = (load: NodeJS.Require, server: Server): Package =>
  closing(load('mysql2/promise').createPool(server), (pool: Package) => pool.end())

const knexOf = (load: NodeJS.Require, client: string, connection: Server): Package =>
  closing(load('knex')({ client, connection }), (knex: Package) => knex.destroy())

const dataSourceOf = async (
  load: NodeJS.Require,
  type: string,
  { user: username, ...server }: Server,
): Promise<Scope> => {
  const { DataSource } = load('typeorm')
  const dataSource = closing(new DataSource({ type, username, ...server }), (source: Package) => source.destroy())
  await dataSource.initialize()
  return { dataSource }
}

/** The laws that a store breaks, by the words before the colon of their names. */
const brokenBy = async (make: () => Store | Promise<Store>): Promise<ReadonlyArray<string>> => {
  const error: unknown = await laws
    .store(make, { runs: 20 })
    .check()
    .catch((broken: unknown) => broken)
  if (error === undefined) return []
  if (!(error instanceof LawViolations)) throw error
  return error.violations.map(({ law }) => law.split(':')[0] ?? '')
}

// What random calls find depends on the calls
const RANDOM = ['one after another', 'at the same time']

let load: NodeJS.Require
beforeAll(() => {
  load = installed()
})

describeWithSql('postgres', 'the lines of PostgreSQL', () => {
  const lines = testedLines('| PostgreSQL by')

  it('are eight', () => {
    expect(Object.keys(lines).sort()).toStrictEqual(Object.keys(postgresScopes).sort())
  })

  it.each(Object.entries(lines))('%s: %s', async (name, line) => {
    const server = { host, port: await sqlPort('postgres'), user: USER, database: 'postgres' }
    const scope = await postgresScopes[name]!(load, server)
    const query = written(line, scope) as PostgresQuery
    expect(await brokenBy(() => postgresStore({ query, schema: newName() }))).toStrictEqual([])
  })
})

describeWithSql('mariadb', 'the lines of MySQL and MariaDB', () => {
  const lines = testedLines('| MySQL or MariaDB by')

  it('are five', () => {
    expect(Object.keys(lines).sort()).toStrictEqual(Object.keys(mysqlScopes).sort())
  })

  it.each(Object.entries(lines))('%s: %s', async (name, line) => {
    const database = newName()
    await asOwner('mariadb', `create database ${database}`)
    const scope = await mysqlScopes[name]!(load, { host, port: await sqlPort('mariadb'), user: USER, database })
    const query = written(line, scope) as MysqlQuery
    expect(await brokenBy(() => mysqlStore({ query }))).toStrictEqual([])
  })
})

describe('the store of one’s own', () => {
  const block = blocksOf('examples/guides/stores.md').find(({ code }) => code.includes('lmdbStore'))?.code ?? ''

  it('breaks no law, in about 60 lines', async () => {
    expect(block.split('\n').length).toBeLessThanOrEqual(70)
    const { outputText } = ts.transpileModule(block, {
      compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 },
    })
    const exported: { lmdbStore?: (db: unknown) => Store } = {}
    // eslint-disable-next-line @typescript-eslint/no-implied-eval -- the guide's own code
    ;(new Function('exports', 'require', outputText) as (...values: unknown[]) => void)(exported, load)
    const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-lmdb-'))
    const { open } = load('lmdb')
    const db = closing(open({ path: join(folder, 'auth.lmdb') }), async (one: Package) => {
      await one.close()
      rmSync(folder, { recursive: true, force: true })
    })
    expect(await brokenBy(() => exported.lmdbStore!(db))).toStrictEqual([])
  })
})

/** A store of sessions, as frameworks have them. */
interface SessionStore {
  readonly get: (key: string) => Promise<unknown>
  readonly set: (key: string, value: unknown, lifetime: number) => Promise<unknown>
  readonly destroy: (key: string) => Promise<unknown>
}

/** A store over it, as somebody would write it who has only these three. */
const adapted = ({ get, set, destroy }: SessionStore): Store => {
  const textOf = async (key: string): Promise<string | undefined> => {
    const kept = (await get(key)) as { readonly text?: string } | null | undefined
    return kept?.text
  }
  const membersOf = async (key: string): Promise<ReadonlyArray<string>> => {
    const kept = (await get(`set ${key}`)) as { readonly members?: ReadonlyArray<string> } | null | undefined
    return kept?.members ?? []
  }
  return {
    get: (keys) => Promise.all(keys.map(textOf)),
    insert: async (key, text, lifetime) => {
      if ((await textOf(key)) !== undefined) return false
      await set(key, { text }, lifetime)
      return true
    },
    update: async (key, text, lifetime, was) => {
      const before = await textOf(key)
      if (before === undefined || (was ?? before) !== before) return false
      await set(key, { text }, lifetime)
      return true
    },
    end: async (key) => void (await destroy(key)),
    add: async (key, member, lifetime) => {
      await set(`set ${key}`, { members: [...new Set([...(await membersOf(key)), member])] }, lifetime)
    },
    members: membersOf,
  }
}

const promised =
  (store: Package, method: string) =>
  (...args: unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      store[method](...args, (error: Error | null, value: unknown) => (error ? reject(error) : resolve(value)))
    })

/** What the guide says that a store breaks. */
const saidOf = (name: string): ReadonlyArray<string> => {
  const row = rowsUnder('| Store of').find(([of = '']) => of.startsWith(name))
  return (row?.[1] ?? '').split(', ')
}

describeWithSql('postgres', 'what stores of sessions in PostgreSQL break', () => {
  const server = async () => ({ host, port: await sqlPort('postgres'), user: USER, database: 'postgres' })

  it('connect-pg-simple', async () => {
    const schemaName = newName()
    await asOwner('postgres', `create schema ${schemaName}`)
    const PgStore = load('connect-pg-simple')(load('express-session'))
    const store = closing(
      new PgStore({
        pool: pgPool(load, await server()),
        schemaName,
        createTableIfMissing: true,
        pruneSessionInterval: false,
      }),
      (one: Package) => one.close(),
    )
    const set = promised(store, 'set')
    const broken = await brokenBy(() =>
      adapted({
        get: promised(store, 'get'),
        set: (key, value, lifetime) => {
          // a year, because a cookie has no end that is Infinity
          const maxAge = Math.min(lifetime, 31_536_000_000)
          const cookie = { originalMaxAge: maxAge, expires: new Date(Date.now() + maxAge) }
          return set(key, { ...(value as object), cookie })
        },
        destroy: promised(store, 'destroy'),
      }),
    )
    expect(broken.filter((law) => !RANDOM.includes(law))).toStrictEqual(saidOf('connect-pg-simple'))
  })

  it('keyv', async () => {
    const { host: name, port, user, database } = await server()
    const KeyvPostgres = load('@keyv/postgres').default
    const Keyv = load('keyv').default
    const schema = newName()
    await asOwner('postgres', `create schema ${schema}`)
    const keyv = closing(
      new Keyv({
        store: new KeyvPostgres({ uri: `postgresql://${user}@${name}:${port}/${database}`, schema, table: 'keyv' }),
        namespace: randomUUID(),
      }),
      (one: Package) => one.disconnect(),
    )
    const broken = await brokenBy(() =>
      adapted({
        get: (key) => keyv.get(key),
        set: (key, value, lifetime) => keyv.set(key, value, lifetime === Infinity ? undefined : lifetime),
        destroy: (key) => keyv.delete(key),
      }),
    )
    expect(broken.filter((law) => !RANDOM.includes(law))).toStrictEqual(saidOf('keyv'))
  })
})

describeWithRedis('what koa-redis breaks', () => {
  const database = redisDatabase()

  it('koa-redis', async () => {
    const store = closing(load('koa-redis')({ url: database().url }), (one: Package) => one.quit())
    const broken = await brokenBy(() =>
      adapted({
        get: (key) => store.get(key),
        set: (key, value, lifetime) => store.set(key, value, lifetime === Infinity ? undefined : lifetime),
        destroy: (key) => store.destroy(key),
      }),
    )
    expect(broken.filter((law) => !RANDOM.includes(law))).toStrictEqual(saidOf('koa-redis'))
  })
})
