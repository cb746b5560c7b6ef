/** The programs of the guides "Stores", "A shop on PostgreSQL" and "From 2217098", as they are written there, on real databases. */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { createClient, type Client } from '@libsql/client'
import type Koa from 'koa'
import { apiKeys, type ApiKeys } from 'koa-with-auth/keys'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { mockRequest } from 'koa-with-auth/testing'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { blocksOf } from '../support/papers/docExamples.js'
import { repository } from '../support/projects/typecheck.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis, freePort } from '../support/servers/redisServer.js'
import { jsonClient, type JsonClient } from '../support/servers/jsonClient.js'
import { listen, type Served } from '../support/servers/server.js'
import { describeWithSql, USER } from '../support/servers/sqlServer.js'
import { asOwner, newName } from '../support/stores/databases.js'
import { sqliteFile } from '../support/stores/sessionStores.js'

const folder = `${repository}spec/.generated/stores-${process.pid}/`
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** The block of a guide that has these words. */
const blockOf = (guide: string, words: string): string =>
  blocksOf(`examples/guides/${guide}.md`).find(({ code }) => code.includes(words))?.code ?? ''

/** The module that it is. */
const program = async (guide: string, words: string): Promise<unknown> => {
  mkdirSync(folder, { recursive: true })
  const file = `${folder}${guide}.ts`
  writeFileSync(file, blockOf(guide, words))
  return import(/* @vite-ignore */ pathToFileURL(file).href)
}

interface Opening {
  readonly openStore: (url: string) => Promise<{ readonly store: Store; readonly close: () => unknown }>
}

describe('a store for a URL', () => {
  // Safe: the block exports it
  const opening = () => program('stores', 'const openStore') as Promise<Opening>
  const keeps = async (url: string) => {
    const { openStore } = await opening()
    const { store, close } = await openStore(url)
    onTestFinished(async () => void (await close()))
    expect(await store.insert(url, 'text', 60_000)).toBe(true)
    expect(await store.get([url, 'other'])).toStrictEqual(['text', undefined])
  }

  const file = sqliteFile()
  it('of a file', () => keeps(file()))

  it('that is of no database is a TypeError that names them', async () => {
    const { openStore } = await opening()
    await expect(openStore('mongodb://127.0.0.1/app')).rejects.toThrow('postgres:, mysql:, redis: or file:')
  })

  describeWithSql('postgres', 'of PostgreSQL', () => {
    it.each(['postgres', 'postgresql'])('%s:', async (scheme) => {
      const name = newName()
      await asOwner('postgres', `create database ${name}`)
      await keeps(`${scheme}://${USER}@127.0.0.1:${await sqlPort('postgres')}/${name}`)
    })
  })

  describeWithSql('mariadb', 'of MariaDB', () => {
    it.each(['mysql', 'mariadb'])('%s:', async (scheme) => {
      const name = newName()
      await asOwner('mariadb', `create database ${name}`)
      await keeps(`${scheme}://${USER}@127.0.0.1:${await sqlPort('mariadb')}/${name}`)
    })
  })

  describeWithRedis('of Redis', () => {
    const database = redisDatabase()
    it('redis:', () => keeps(database().url))
  })
})

describe('the move of API keys from the old tables', () => {
  const file = sqliteFile()
  it('lets in those that were good, and none that was revoked or has expired', async () => {
    const old = createClient({ url: file() })
    onTestFinished(() => old.close())
    await old.executeMultiple(`create table auth_keys (id text primary key, owner text not null, record text not null);
      create table auth_key_digests (digest text primary key, id text not null, until integer)`)
    const records = [
      { name: 'ci', scopes: ['read'] },
      { expiresAt: Date.now() + 60_000 },
      { expiresAt: 1 },
      { revokedAt: 1 },
    ]
    const other = apiKeys({ prefix: 'acme', store: memoryStore() })
    const issued = await Promise.all(records.map(() => other.issue({ owner: 'anna' })))
    for (const [at, { key, id }] of issued.entries()) {
      const digest = createHash('sha256').update(key).digest('hex')
      await old.execute({ sql: 'insert into auth_key_digests values (?, ?, null)', args: [digest, id] })
      const record = JSON.stringify({ id, owner: 'anna', name: '', scopes: [], createdAt: 1, ...records[at] })
      await old.execute({ sql: 'insert into auth_keys values (?, ?, ?)', args: [id, 'anna', record] })
    }
    const keys = apiKeys({ prefix: 'acme', store: memoryStore(), adopted: /^acme_[0-9A-Za-z]{38}$/ })
    // Safe: the block exports it
    const { moveKeys } = (await program('from-2217098', 'const moveKeys')) as {
      readonly moveKeys: (old: Client, keys: ApiKeys<string>) => Promise<void>
    }
    await moveKeys(old, keys)
    const results = await Promise.all(issued.map(async ({ key }) => keys.authenticate(mockRequest({}), key)))
    expect(results.map((one) => one._tag)).toStrictEqual(['Right', 'Right', 'Left', 'Left'])
    expect(results[0]).toMatchObject({ right: { owner: 'anna', name: 'ci', scopes: ['read'] } })
  })
})

describeWithSql('postgres', 'a shop on PostgreSQL', () => {
  const guide = 'postgresql-shop'
  const keys = ['a secret of the test, of 32 characters or more']
  const closing: Array<() => Promise<unknown>> = []
  let shop: (pool: pg.Pool, keys: string[]) => Koa
  let database: string
  const asked: string[] = []

  // as a process of its own has it: an application and a pool
  const start = async (port: number): Promise<Served> => {
    const pool = new pg.Pool({ host: '127.0.0.1', port, user: USER, database, max: 4 }).on('error', () => {})
    const query = pool.query.bind(pool)
    // Safe: it passes on what it is given
    pool.query = ((...given: Parameters<typeof query>) => {
      asked.push(String(Reflect.get(Object(given[0]), 'text') ?? given[0]))
      return query(...given)
    }) as unknown as typeof pool.query
    const served = await listen(shop(pool, keys))
    closing.push(() => served.close().then(() => pool.end()))
    return served
  }
  let [one, other]: Served[] = []
  const client = (of: () => Served | undefined, from?: JsonClient) => jsonClient(() => of()?.url ?? '', from)
  const anna = client(() => one)

  beforeAll(async () => {
    database = newName()
    await asOwner('postgres', `create database ${database}`)
    const port = await sqlPort('postgres')
    const owner = new pg.Client({ host: '127.0.0.1', port, user: USER, database })
    await owner.connect()
    const text = readFileSync(`${repository}examples/guides/${guide}.md`, 'utf8')
    await owner.query(/^```sql\n([^]*?)^```$/m.exec(text)?.[1] ?? '').finally(() => owner.end())
    // Safe: the block exports it
    ;({ shop } = (await program(guide, 'const shop')) as { readonly shop: typeof shop })
    ;[one, other] = await Promise.all([start(port), start(port)])
  })
  afterAll(() => Promise.all(closing.map((close) => close())))

  const account = { username: 'anna', password: 'a password of some length' }

  it('is at most 70 lines', () => {
    expect(blockOf(guide, 'const shop').trimEnd().split('\n').length).toBeLessThanOrEqual(70)
  })

  it('signs up, and says what is wrong with a name or a password', async () => {
    const asks = [{}, { ...account, username: 'a b' }, { ...account, password: 'short' }]
    for (const body of asks) expect((await anna.post('/users', body)).status).toBe(422)
    expect((await anna.get('/orders')).status).toBe(401)
    expect((await anna.post('/users', account)).status).toBe(201)
    expect((await client(() => other).post('/users', account)).status).toBe(409)
    expect(await anna.get('/orders')).toMatchObject({ status: 200, body: [] })
  })

  it('answers a signed-in request in the other process, too, with one query to the store and no write', async () => {
    const there = client(() => other, anna)
    await there.get('/orders')
    asked.length = 0
    expect((await there.get('/orders')).status).toBe(200)
    expect(asked.map((sql) => /from (\w+)/.exec(sql)?.[1])).toStrictEqual(['auth_texts', 'users', 'orders'])
    expect(asked.every((sql) => sql.startsWith('select'))).toBe(true)
  })

  it('shows an order to its owner only, by the cookie and by a key', async () => {
    const { body: order } = await anna.post('/orders', { item: 'a lamp' })
    const path = `/orders/${String(Reflect.get(Object(order), 'id'))}`
    const { body: issued } = await anna.post('/keys')
    const withKey = { 'x-api-key': String(Reflect.get(Object(issued), 'key')) }
    const ben = client(() => other)
    expect((await ben.post('/users', { ...account, username: 'ben' })).status).toBe(201)
    expect(await anna.get(path)).toMatchObject({ status: 200, body: { item: 'a lamp' } })
    asked.length = 0
    expect((await client(() => other).send('GET', path, undefined, withKey)).status).toBe(200)
    expect(asked.filter((sql) => sql.startsWith('select') && sql.includes('auth_texts'))).toHaveLength(1)
    expect((await ben.get(path)).status).toBe(404)
    expect(await ben.get('/orders')).toMatchObject({ status: 200, body: [] })
    expect((await client(() => one).get(path)).status).toBe(401)
  })

  it('lists the devices, and ends one of them in all processes', async () => {
    const phone = client(() => other)
    expect((await phone.post('/sign-in', account)).status).toBe(204)
    const { body } = await anna.get('/devices')
    expect(body).toHaveLength(2)
    const listed = (body as ReadonlyArray<{ readonly id: string; readonly current: boolean }>).find(
      (its) => !its.current,
    )
    expect((await anna.send('DELETE', `/devices/${listed?.id}`)).status).toBe(204)
    expect((await anna.send('DELETE', '/devices/none')).status).toBe(404)
    expect((await phone.get('/orders')).status).toBe(401)
    expect((await anna.get('/orders')).status).toBe(200)
  })

  it('signs out here, and everywhere', async () => {
    const here = client(() => one)
    await here.post('/sign-in', account)
    const copy = client(() => other, here)
    expect((await here.post('/sign-out')).status).toBe(204)
    expect((await copy.get('/orders')).status).toBe(401)
    const there = client(() => other, anna)
    expect((await anna.post('/sign-out?everywhere')).status).toBe(204)
    expect((await there.get('/orders')).status).toBe(401)
  })

  it('refuses the eleventh wrong password of both processes together', async () => {
    const guesser = (at: number) => client(() => (at % 2 === 0 ? one : other))
    const statuses: number[] = []
    for (let at = 0; at < 11; at++)
      statuses.push((await guesser(at).post('/sign-in', { ...account, password: `wrong ${at}` })).status)
    expect(statuses).toStrictEqual([...Array<number>(10).fill(403), 429])
  })

  it('answers 503 while the database is not there', async () => {
    const down = await start(await freePort())
    const cleo = client(() => one)
    await cleo.post('/users', { ...account, username: 'cleo' })
    const { status, headers } = await client(() => down, cleo).get('/orders')
    expect([status, headers.get('retry-after')]).toStrictEqual([503, expect.stringMatching(/^\d+$/)])
  })
})
