/** What is specific to the Redis store: the commands that it sends, and what it does with unexpected replies. */
import { randomUUID } from 'node:crypto'
import type { SessionStore } from 'koa-with-auth/sessions'
import { redisStore } from 'koa-with-auth/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { koaSessionStore } from '../../src/sessions/koaSessionStore.js'
import { lookIn } from '../../src/sessions/SessionStore.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis, missingRedis } from '../support/servers/redisServer.js'
import { clients, type Connected } from '../support/stores/sessionStores.js'

const LONG = 60_000
const limits = { idle: LONG, absolute: LONG, longest: LONG, maxLength: 100 }

const everything = async (store: SessionStore, id: string): Promise<void> => {
  await store.read(id)
  await store.insert(id, 'text', LONG)
  await store.update(id, 'text', LONG)
  await store.end(id, LONG)
  await store.markOf(id)
  await store.mark(id, 'mark', LONG)
}

describe('commands of redisStore', () => {
  it('each concerns one key, which is passed, and every write has a time to live', async () => {
    const sent: string[][] = []
    const store = redisStore({
      command: async (args, key) => {
        expect(args[args[0] === 'EVAL' ? 3 : 1]).toBe(key)
        sent.push(args)
        return null
      },
    })
    await everything(store, 'one')
    expect(sent.map(([name, , count]) => (name === 'EVAL' ? `${name} ${count}` : name))).toEqual([
      'GET',
      'SET',
      'EVAL 1',
      'SET',
      'GET',
      'SET',
    ])
    for (const args of sent.filter(([name]) => name === 'SET')) expect(args.slice(3, 5)).toEqual(['PX', String(LONG)])
  })

  it.each([
    [undefined, 'koa-with-auth:'] as const,
    ['shop:', 'shop:'] as const,
    ['{shop}', '{shop}'] as const,
    ['', ''] as const,
  ])('with the prefix %j all keys begin with %j', async (prefix, begin) => {
    const keys = new Set<string>()
    const command = async (_args: string[], key: string) => void keys.add(key)
    await everything(redisStore({ command, ...(prefix !== undefined && { prefix }) }), 'one')
    expect([...keys].sort()).toEqual([`${begin}session:one`, `${begin}user:one`])
  })

  it('times are whole milliseconds, at least one', async () => {
    const times: (string | undefined)[] = []
    const store = redisStore({ command: async (args) => void times.push(args.at(args.indexOf('PX') + 1)) })
    for (const lifetime of [0.2, 1.5, -7, 0]) await store.end('one', lifetime)
    expect(times).toEqual(['1', '2', '1', '1'])
  })
})

describe('a session and the mark of its user', () => {
  const kept: Readonly<Record<string, string>> = {
    'koa-with-auth:session:one': '+text',
    'koa-with-auth:user:anna': 'm',
  }
  const cookie = { likelyUser: () => 'anna' }
  /** A store whose server says this about itself, and what it was asked for by the third of three look-ups. */
  const thirdOf = async (info: () => unknown, mget: (args: string[]) => unknown = (keys) => keys.map(got)) => {
    let sent: string[][] = []
    const store = redisStore({
      command: async (args) => {
        sent.push(args)
        if (args[0] === 'INFO') return info()
        return args[0] === 'MGET' ? mget(args.slice(1)) : got(args[1])
      },
    })
    for (let at = 0; at < 3; at++) {
      sent = []
      const { text, markOf } = await lookIn(store)('one', cookie)
      expect([text, markOf('anna'), markOf('another')]).toEqual(['text', 'm', undefined])
    }
    return sent.map(([name]) => name)
  }
  const got = (key = '') => kept[key] ?? null
  const refuse = () => {
    throw new Error('NOPERM')
  }

  it('are asked for in one command of a server that is in no cluster', async () => {
    expect(await thirdOf(() => '# Cluster\r\ncluster_enabled:0\r\n')).toEqual(['MGET'])
    expect(await thirdOf(() => Buffer.from('cluster_enabled:0'))).toEqual(['MGET'])
  })

  it.each<readonly [string, () => unknown]>([
    ['a cluster', () => '# Cluster\r\ncluster_enabled:1\r\n'],
    ['a server that may not be asked', refuse],
    ['a server that says nothing', () => null],
    ['a server that never says it', () => new Promise(() => {})],
  ])('are asked for apart, each by its key, of %s', async (_name, info) => {
    expect(await thirdOf(info)).toEqual(['GET', 'GET'])
  })

  it('are asked for apart where one command for both is refused, or returns something else', async () => {
    for (const mget of [refuse, () => 'QUEUED', () => undefined]) {
      expect((await thirdOf(() => 'cluster_enabled:0', mget)).slice(-2)).toEqual(['GET', 'GET'])
    }
  })

  it('are an outage in one command if they are one apart', async () => {
    let isOut = false
    const store = redisStore({
      command: async ([name]) => {
        if (isOut) throw new Error('ECONNREFUSED')
        return name === 'INFO' ? 'cluster_enabled:0' : null
      },
    })
    const look = async () => lookIn(store)('one', cookie)
    await look()
    isOut = true
    for (let at = 0; at < 3; at++) await expect(look()).rejects.toThrow('ECONNREFUSED')
    isOut = false
    expect((await look()).text).toBeUndefined()
  })

  it.each([1, {}, true])('are an outage if one command returns %j for one of them', async (other) => {
    const answers: Readonly<Record<string, unknown>> = { INFO: 'cluster_enabled:0', MGET: ['+text', other] }
    const store = redisStore({ command: async ([name = '']) => answers[name] ?? null })
    await lookIn(store)('one', cookie)
    await expect(async () => lookIn(store)('one', cookie)).rejects.toThrow(TypeError)
  })
})

describe('replies to redisStore', () => {
  it.each([1, true, {}, [], ['+text'], new Error('LOADING'), new Map()])('GET: %j is an outage', async (answer) => {
    const store = redisStore({ command: async () => answer })
    await expect(store.read('one')).rejects.toThrow(
      'redisStore({ command }): it resolved to a value that this store never wrote',
    )
    await expect(store.markOf('one')).rejects.toThrow(TypeError)
  })

  it.each(['', 'text', '-', '-+text', ' +text', '{"auth":{}}'])(
    'GET: %j, which it did not write, is not a session',
    async (answer) => {
      expect(await redisStore({ command: async () => answer }).read('one')).toBeUndefined()
    },
  )

  it.each<readonly [unknown, boolean]>([
    ['1', true],
    [1, true],
    [1n, true],
    [Buffer.from('1'), true],
    [0, false],
    ['0', false],
    [null, false],
    [undefined, false],
    ['OK', false],
  ])('EVAL: %s: whether the update was made is %s', async (answer, expected) => {
    expect(await redisStore({ command: async () => answer }).update('one', 'text', LONG)).toBe(expected)
  })

  it('a rejection of the client is passed on', async () => {
    const failure = new Error('ECONNREFUSED')
    const store = redisStore({ command: () => Promise.reject(failure) })
    for (const ask of [store.read('a'), store.insert('a', '', 1), store.update('a', '', 1), store.end('a', 1)]) {
      await expect(ask).rejects.toBe(failure)
    }
    for (const ask of [store.markOf('a'), store.mark('a', '', 1)]) await expect(ask).rejects.toBe(failure)
  })
})

it('without redis-server, suites are skipped with a message, and fail if CI is set', () => {
  const fix = 'no redis-server on the PATH; apt-get install redis-server'
  expect(missingRedis({ PATH: '/nowhere' })).toBe(fix)
  expect(() => missingRedis({ PATH: '/nowhere', CI: 'true' })).toThrow(fix)
})

describeWithRedis('on a server', () => {
  const server = redisDatabase()
  let connected: Connected
  beforeAll(async () => {
    connected = await clients['the official client, RESP3']!(server())
  })
  afterAll(() => connected?.disconnect())
  const raw = (...args: string[]) => connected.command(args, args[1] ?? '')

  it('Redis itself deletes what is over: nothing is left', async () => {
    const store = redisStore({ command: connected.command })
    await raw('FLUSHDB')
    await store.insert('a', 'text', 20)
    await store.end('b', 20)
    await store.mark('user', 'mark', 20)
    // Redis counts down by itself: no command of ours is needed
    for (const key of (await raw('KEYS', '*')) as string[]) expect(await raw('PTTL', key)).toBeLessThanOrEqual(20)
    await expect.poll(() => raw('DBSIZE')).toBe(0)
  })

  it('a look-up is one command, also by the prefix of an application', async () => {
    const store = redisStore({ command: connected.command, prefix: 'one command:' })
    await store.insert('a', 'text', LONG)
    await store.mark('anna', 'mark', LONG)
    const look = async () => {
      const { text, markOf } = await lookIn(store)('a', { likelyUser: () => 'anna' })
      return [text, markOf('anna')]
    }
    expect(await look()).toEqual(['text', 'mark'])
    await raw('CONFIG', 'RESETSTAT')
    expect(await look()).toEqual(['text', 'mark'])
    const counted = String(await raw('INFO', 'commandstats'))
    expect([...counted.matchAll(/cmdstat_(m?get):calls=(\d+)/g)].map(([, name, calls]) => [name, calls])).toEqual([
      ['mget', '1'],
    ])
  })

  it('two applications with different prefixes share nothing', async () => {
    const [one, two] = ['one:', 'two:'].map((prefix) => redisStore({ command: connected.command, prefix }))
    const id = randomUUID()
    await one!.insert(id, 'text', LONG)
    expect([await one!.read(id), await two!.read(id)]).toEqual(['text', undefined])
  })

  it('a key that another program wrote is an outage or no session, never a user', async () => {
    const store = redisStore({ command: connected.command })
    const [list, text] = [randomUUID(), randomUUID()]
    await raw('RPUSH', `koa-with-auth:session:${list}`, '+{}')
    await raw('SET', `koa-with-auth:session:${text}`, '{"auth":{"id":"root","at":1,"mark":""}}')
    await expect(store.read(list)).rejects.toThrow(/WRONGTYPE/)
    expect(await store.read(text)).toBeUndefined()
    expect(await store.update(text, 'text', LONG)).toBe(false)
  })

  it('Redis contains only digests of ids', async () => {
    await raw('FLUSHDB')
    const store = koaSessionStore(redisStore({ command: connected.command }), limits)
    const id = randomUUID()
    await store.set(id, { a: 1 }, LONG, { ctx: {} })
    const keys = (await raw('KEYS', '*')) as string[]
    expect(keys).toHaveLength(1)
    expect(keys[0]).toMatch(/^koa-with-auth:session:[A-Za-z0-9_-]{43}$/)
    expect(keys[0]).not.toContain(id)
  })
})
