/**
 * API keys: a request with one, compared with the look-up that a careful developer would write by hand, on SQLite and
 * on Redis; and a look-up among many keys, compared with one among a thousand.
 *
 * `keyByHand.ts` has the one by hand: the same work with the same client, for this one kind of key.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { createServer, type AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Router, { type RouterMiddleware } from '@koa/router'
import { createClient as createSqlite } from '@libsql/client'
import { createClient as createRedis } from 'redis'
import { apiKeyHeader, withAuth } from '../../../dist/index.js'
import { apiKeys } from '../../../dist/keys.js'
import { memoryStore, redisStore, sqliteStore, type Store } from '../../../dist/stores.js'
import { keyByHand, lookUpInRedis, lookUpInSqlite, type LookUp } from './keyByHand.js'
import { listenerOf } from './koaApps.js'
import type { Row, Section } from './Section.js'
import { microseconds, race, ratio, type Contestant, type Pace } from './paired.js'
import { ask, answerOf, headersOf } from './stub.js'

const answer: RouterMiddleware = (ctx) => {
  const { owner } = Reflect.get(ctx.request, 'auth') as { readonly owner: string }
  ctx.body = owner
}

const byHand = (lookUp: LookUp): RequestListener => {
  const check = keyByHand('acme', lookUp)
  return listenerOf(
    new Router().get('/x', async (ctx, next) => {
      if (await check(ctx)) await answer(ctx, next)
    }),
  )
}
const ours = (store: Store): RequestListener => {
  const { authenticate } = apiKeys({ prefix: 'acme', store })
  const guard = withAuth(apiKeyHeader({ paramName: 'X-API-Key', authenticate }))
  return listenerOf(new Router().get('/x', guard as unknown as RouterMiddleware, answer))
}

/** A server on a free port, and a client of it. */
export const startRedis = async () => {
  const port = await new Promise<number>((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
  const child = spawn('redis-server', ['--port', String(port), '--save', '', '--appendonly', 'no'], { stdio: 'ignore' })
  const failed = new Promise<never>((_, reject) => {
    child.once('error', (error) => reject(new Error(`the benchmark needs redis-server on the PATH: ${error.message}`)))
  })
  const client = createRedis({ url: `redis://127.0.0.1:${port}`, socket: { reconnectStrategy: 50 } })
  client.on('error', () => {})
  await Promise.race([client.connect(), failed])
  return {
    client,
    command: (args: string[]) => client.sendCommand(args),
    close: () => {
      client.destroy()
      child.kill('SIGKILL')
    },
  }
}
type Redis = Awaited<ReturnType<typeof startRedis>>

const expectAlike = async (key: string, ...listeners: RequestListener[]): Promise<void> => {
  const unknown = await apiKeys({ prefix: 'acme', store: memoryStore() }).issue({ owner: 'anna' })
  for (const [sent, status] of [
    [key, 200],
    [`${key}x`, 401],
    [`${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`, 401],
    [unknown.key, 401],
  ] as const) {
    const answers = await Promise.all(listeners.map((one) => answerOf(one, '/x', headersOf({ 'X-API-Key': sent }))))
    const texts = answers.map((one) => JSON.stringify({ ...one, headers: Object.entries(one.headers).sort() }))
    if (answers[0]?.status !== status || new Set(texts).size > 1) throw new Error(`they differ: ${texts.join('\n')}`)
  }
}

const requests = async (folder: string, redis: Redis, pace: Pace): Promise<ReadonlyArray<Row>> => {
  const url = `file:${join(folder, 'keys.db')}`
  const sqlite = sqliteStore({ url })
  const inRedis = redisStore({ command: redis.command })
  const keys = await Promise.all(
    [sqlite, redisStore].map(async (store) => apiKeys({ prefix: 'acme', store }).issue({ owner: 'anna' })),
  )
  const [inSqlite = '', inRedis = ''] = keys.map(({ key }) => key)
  // The same file and the same records, through its own connection
  const hand = createSqlite({ url, concurrency: 1 })
  const pairs = [
    { name: 'SQLite', key: inSqlite, hand: byHand(lookUpInSqlite(hand)), ours: ours(sqlite) },
    { name: 'Redis', key: inRedis, hand: byHand(lookUpInRedis(redis.command)), ours: ours(redisStore) },
  ]
  for (const one of pairs) await expectAlike(one.key, one.hand, one.ours)
  const times = await race(
    pairs.flatMap(({ name, key, hand, ours }): ReadonlyArray<Contestant> => {
      const headers = headersOf({ 'X-API-Key': key })
      return [
        { name: `${name} by hand`, run: () => ask(hand, '/x', headers) },
        { name: `${name} by hand, again`, run: () => ask(hand, '/x', headers) },
        { name, run: () => ask(ours, '/x', headers) },
      ]
    }),
    pace,
  )
  hand.close()
  sqlite.close()
  return pairs.map(({ name }) => ({
    name: `a key on ${name}`,
    value: ratio(times, name, `${name} by hand`),
    unit: 'times',
    target: 1.1,
    control: ratio(times, `${name} by hand, again`, `${name} by hand`),
    note: `by hand ${microseconds(times, `${name} by hand`).toFixed(0)} us a request`,
  }))
}

// Writes what the stores would write, directly: a million calls of `insert` would take an hour
const SAMPLE = 1000

interface Filled {
  readonly store: Store
  /** The look-up that the store needs at least, without reading a record. */
  readonly bare: (digest: string) => unknown
  readonly sample: ReadonlyArray<string>
  readonly close: () => void
}

const digestsOf = (count: number) => Array.from({ length: count }, () => randomBytes(32).toString('hex'))
const recordOf = (id: string) => ({ id, owner: `owner ${id}`, name: '', scopes: [], createdAt: 1 })

const memoryStore = async (count: number): Promise<Filled> => {
  const store = memoryStore()
  const digests = digestsOf(count)
  for (const [at, digest] of digests.entries()) await store.insert(digest, recordOf(String(at)))
  const bare = new Map(digests.map((digest) => [digest, digest]))
  return { store, bare: (digest) => bare.get(digest), sample: sampleOf(digests), close: () => {} }
}

const sampleOf = (digests: ReadonlyArray<string>): ReadonlyArray<string> =>
  Array.from({ length: SAMPLE }, (_, at) => digests[Math.floor((at * digests.length) / SAMPLE)] ?? '')

const inSqlite = async (folder: string, count: number): Promise<Filled> => {
  const url = `file:${join(folder, `${count}.db`)}`
  const store = sqliteStore({ url })
  const first = digestsOf(1)
  await store.insert(first[0] ?? '', recordOf('first'))
  const client = createSqlite({ url })
  await client.batch(
    [
      `insert into auth_key_digests with recursive n (at) as (select 1 union all select at + 1 from n where at < ${count})
        select lower(hex(randomblob(32))), at, null from n`,
      `insert into auth_keys select id, 'owner ' || id,
        json_object('id', id, 'owner', 'owner ' || id, 'name', '', 'scopes', json('[]'), 'createdAt', 1)
        from auth_key_digests where id <> 'first'`,
    ],
    'write',
  )
  const { rows } = await client.execute(`select digest from auth_key_digests order by random() limit ${SAMPLE}`)
  const sql = `select record from auth_key_digests join auth_keys using (id) where digest = ?`
  return {
    store,
    bare: async (digest) => (await client.execute({ sql, args: [digest] })).rows[0],
    sample: rows.map((row) => String(row['digest'])),
    close: () => {
      client.close()
      store.close()
    },
  }
}

const CHUNK = 2000
const inRedis = async ({ command }: Redis, count: number): Promise<Filled> => {
  const prefix = `{${count}}:`
  const store = redisStore({ command, prefix })
  const script = `for at, digest in ipairs(ARGV) do
    local id = KEYS[1] .. at
    redis.call('SET', '${prefix}digest:' .. digest, digest .. '  {"id":"' .. id .. '","owner":"anna","name":"","scopes":[],"createdAt":1}')
  end`
  const digests = digestsOf(count)
  for (let at = 0; at < count; at += CHUNK) {
    await command(['EVAL', script, '1', `${at}-`, ...digests.slice(at, at + CHUNK)])
  }
  const bare = (digest: string) => command(['GET', `${prefix}digest:${digest}`])
  return { store, bare, sample: sampleOf(digests), close: () => {} }
}

const lookUps = async (folder: string, redis: Redis, pace: Pace, many: number): Promise<ReadonlyArray<Row>> => {
  const filled = {
    memory: [await memoryStore(SAMPLE), await memoryStore(many)],
    SQLite: [await inSqlite(folder, SAMPLE), await inSqlite(folder, many)],
    Redis: [await inRedis(redis, SAMPLE), await inRedis(redis, many)],
  } as const
  const contestants = (name: string, { store, bare, sample }: Filled): ReadonlyArray<Contestant> => {
    let at = 0
    const looking = (label: string, find: (digest: string) => unknown): Contestant => ({
      name: label,
      run: async () => {
        const found = await find(sample[at++ % sample.length] ?? '')
        if (found === undefined || found === null) throw new Error(`${label}: a key was not found`)
      },
    })
    return [
      looking(name, (digest) => store.find([digest])),
      looking(`${name}, bare`, bare),
      looking(`${name}, bare, again`, bare),
    ]
  }
  const names = Object.keys(filled) as (keyof typeof filled)[]
  const times = await race(
    names.flatMap((name) => [...contestants(`${name}, few`, filled[name][0]), ...contestants(name, filled[name][1])]),
    pace,
  )
  for (const pair of Object.values(filled)) for (const { close } of pair) close()
  const row = (name: string, mine: string, theirs: string): Row => ({
    name,
    value: ratio(times, mine, theirs),
    unit: 'times',
    note: `${microseconds(times, mine).toFixed(1)} us`,
  })
  const count = many.toLocaleString('en')
  return names.flatMap((name) => [
    row(
      `${name}: a look-up among ${count} keys, beside one among ${SAMPLE.toLocaleString('en')}`,
      name,
      `${name}, few`,
    ),
    row(`${name}: the same of the bare look-up`, `${name}, bare`, `${name}, few, bare`),
    row(`${name}: ours beside the bare look-up, among ${count}`, name, `${name}, bare`),
    row(`${name}: control: the bare look-up twice`, `${name}, bare, again`, `${name}, bare`),
  ])
}

/** The section. `many` is the number of keys in which a look-up is measured. */
export const keys = async (pace: Pace, many: number): Promise<Section> => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-bench-'))
  const redis = await startRedis()
  try {
    const rows = [...(await requests(folder, redis, pace)), ...(await lookUps(folder, redis, pace, many))]
    return { title: 'API keys, beside the look-up written by hand', rows }
  } finally {
    redis.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
