/** What a store is asked for by `timedStore`, and which answers are outages. */
import { memoryStore, mysqlStore, postgresStore, redisStore, sqliteStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { storeLike, timedStore } from '../../src/stores/Store.js'

const LIFETIME = 60_000

const wrongly = (methods: { readonly [K in keyof Store]?: (...args: never[]) => unknown }): Store =>
  // Safe: each wrong answer is what is tested
  timedStore('sessions', { ...memoryStore(), ...methods } as Store, 5000)

describe('storeLike', () => {
  it.each(['get', 'insert', 'update', 'end', 'add', 'members'])('names the method that is missing: %s', (name) => {
    const store = { ...memoryStore(), [name]: undefined }
    expect(() => storeLike('sessions(app, { store })', store)).toThrow(
      new TypeError(
        `sessions(app, { store }) has no method ${name}; see Store, or take memoryStore(), sqliteStore, redisStore, postgresStore or mysqlStore of koa-with-auth/stores`,
      ),
    )
  })

  it.each([undefined, null, 'store', () => memoryStore()])('refuses %s', (store) => {
    expect(() => storeLike('apiKeys({ store })', store)).toThrow(TypeError)
  })
})

describe('timedStore', () => {
  it('answers what the store answers, without a promise where the store has none', async () => {
    const store = wrongly({})
    expect(await store.insert('a', 'text', LIFETIME)).toBe(true)
    expect(await store.update('a', 'other', LIFETIME, 'wrong')).toBe(false)
    expect(await store.update('a', 'other', LIFETIME, 'text')).toBe(true)
    expect(store.get(['b', 'a'])).toStrictEqual([undefined, 'other'])
    await store.end('a', LIFETIME)
    expect(store.get(['a'])).toStrictEqual([undefined])
    await store.add('s', 'm', LIFETIME)
    expect(await store.members('s')).toStrictEqual(['m'])
  })

  it('takes what only has the method then for a promise', async () => {
    const texts = Promise.resolve(['text'])
    // a builder of queries answers so
    const later = { then: texts.then.bind(texts) }
    expect(await wrongly({ get: () => later }).get(['a'])).toStrictEqual(['text'])
  })

  it.each([
    ['get', () => 'text'],
    ['get', () => []],
    ['get', () => Promise.resolve(['a', 'b'])],
    ['get', () => Promise.resolve([null])],
    ['get', () => [7]],
    ['insert', () => Promise.resolve(1)],
    ['update', () => Promise.resolve('true')],
    ['members', () => Promise.resolve('m')],
    ['members', () => Promise.resolve([7])],
  ])('is an outage that names the method whose answer no store may give: %s %s', async (name, answer) => {
    const store = wrongly({ [name]: answer })
    const asked = {
      get: async () => store.get(['a']),
      insert: () => store.insert('a', 'text', LIFETIME),
      update: () => store.update('a', 'text', LIFETIME),
      members: () => store.members('s'),
    }[name]
    await expect(asked?.()).rejects.toMatchObject({
      name: 'StoreUnavailable',
      // Safe: an asymmetric matcher
      cause: expect.objectContaining({
        message: expect.stringContaining(`${name} of the store must`) as string,
      }) as Error,
    })
  })

  it.each([0, 0.5, -1, NaN, -Infinity, '1000' as never])('never asks for a lifetime of %j', async (lifetime) => {
    const asked: string[] = []
    const store = wrongly({
      insert: () => asked.push('insert'),
      end: () => asked.push('end'),
      add: () => asked.push('add'),
    })
    for (const ask of [store.insert('a', 'text', lifetime), store.end('a', lifetime), store.add('s', 'm', lifetime)])
      await expect(ask).rejects.toMatchObject({ name: 'StoreUnavailable' })
    expect(asked).toStrictEqual([])
  })

  it('takes an answer whose then cannot be read for an outage', async () => {
    const unreadable: unknown = Object.defineProperty({}, 'then', {
      get: () => {
        throw new Error('no')
      },
    })
    const answer = () => unreadable
    const store = wrongly({ get: answer, insert: answer, update: answer, end: answer, add: answer, members: answer })
    const questions = [
      async () => store.get(['a']),
      () => store.insert('a', '', LIFETIME),
      () => store.update('a', '', LIFETIME),
      () => store.end('a', LIFETIME),
      () => store.add('a', 'm', LIFETIME),
      () => store.members('a'),
    ]
    for (const ask of questions) await expect(ask()).rejects.toMatchObject({ name: 'StoreUnavailable' })
  })

  it('asks for whole milliseconds, and for no end in a number that fits beside the time', async () => {
    const lifetimes: number[] = []
    const store = wrongly({ end: (_key: string, lifetime: number) => void lifetimes.push(lifetime) })
    await store.end('a', 1.2)
    await store.end('a', Infinity)
    expect(lifetimes).toStrictEqual([2, 2 ** 52])
  })
})

const query = () => []

it.each<[words: string, make: (options: never) => unknown, options: object]>([
  ['postgresStore({ query }) must be a function', postgresStore, {}],
  ['takes 3 parameters, but is called with 2', postgresStore, { query: (_a: 1, _b: 2, _c: 3) => [] }],
  ['postgresStore({ schema }) must be a name', postgresStore, { query, schema: 'a"; drop table users; --' }],
  ['postgresStore({ schema }) must be a name', postgresStore, { query, schema: '' }],
  ['postgresStore({ create }) must be true or false', postgresStore, { query, create: 'no' }],
  ['no option "table"; there are query, schema, create', postgresStore, { query, table: 'x' }],
  ['mysqlStore({ query }) must be a function', mysqlStore, {}],
  ['mysqlStore({ create }) must be true or false', mysqlStore, { query, create: 'no' }],
  ['no option "schema"; there are query, create', mysqlStore, { query, schema: 'x' }],
  ['redisStore({ command }) must be a function', redisStore, {}],
  ['no option "prefix"', redisStore, { command: query, prefix: 'x' }],
  [
    'sqliteStore({ url }) must be "file:" and a path; several machines share postgresStore, mysqlStore or redisStore',
    sqliteStore,
    { url: 'libsql://db' },
  ],
  ["({ engine }) must be 'node:sqlite' or '@libsql/client'", sqliteStore, { url: 'file:x', engine: 'sqlite3' }],
])('wrong options are a TypeError: %s', (words, make, options) => {
  // Safe: that they are wrong is what is tested
  expect(() => make(options as never)).toThrow(TypeError)
  expect(() => make(options as never)).toThrow(words)
})

const unasked = () => expect.unreachable('it is not asked')

it.each<[name: string, store: Store, keepsNul?: true]>([
  ['SQLite', sqliteStore({ url: 'file::memory:' })],
  ['PostgreSQL', postgresStore({ query: unasked })],
  ['MySQL', mysqlStore({ query: unasked }), true],
  ['Redis', redisStore({ command: unasked }), true],
])('%s is not asked to keep a string that would come back changed', async (name, store, keepsNul) => {
  await expect(store.insert('a', '\ud800', LIFETIME)).rejects.toThrow(RangeError)
  await expect(store.add('s', '\udfff', LIFETIME)).rejects.toThrow(RangeError)
  if (keepsNul) return
  const asks = [
    () => store.get(['a\0b']),
    () => store.insert('a', 'b\0', LIFETIME),
    () => store.end('\0', 1),
    () => store.add('s', 'm\0', 1),
  ]
  for (const ask of asks) await expect(ask()).rejects.toThrow(`${name} keeps no NUL`)
})
