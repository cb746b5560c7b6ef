/** `redisStore` on a real Redis: its commands, what it warns of, and answers that it never wrote. */
import { redisStore, type RedisStoreOptions } from 'koa-with-auth/stores'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { clients } from '../support/stores/sessionStores.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis, startRedis } from '../support/servers/redisServer.js'

type Command = RedisStoreOptions['command']

const LIFETIME = 60_000

let warnings: string[] = []
beforeEach(() => {
  warnings = []
  const spy = vi.spyOn(process, 'emitWarning')
  spy.mockImplementation((text: unknown) => void warnings.push(String(text)))
  onTestFinished(() => spy.mockRestore())
})

describeWithRedis('redisStore', () => {
  const database = redisDatabase()
  const connected = async (server = database()): Promise<Command> => {
    const { command, disconnect } = await clients['ioredis']!(server)
    onTestFinished(() => void disconnect())
    return command
  }
  const noted = (command: Command) => {
    const asked: string[][] = []
    const noting: Command = (args, key) => {
      asked.push([...args, `key ${key}`])
      return command(args, key)
    }
    return { asked, noting }
  }

  it('a server in no cluster is asked for several keys in one command, and a cluster by one key a command', async () => {
    const command = await connected()
    const { asked, noting } = noted(command)
    const store = redisStore({ command: noting })
    await store.insert('a', 'b', LIFETIME)
    await expect.poll(() => asked.some(([name]) => name === 'INFO')).toBe(true)
    const get = async () => {
      asked.length = 0
      expect(await store.get(['a', 'c'])).toStrictEqual(['b', undefined])
      return asked.map(([name]) => name)
    }
    await expect.poll(get).toStrictEqual(['MGET'])

    const inCluster = noted(async (args, key) => (args[0] === 'INFO' ? 'cluster_enabled:1' : command(args, key)))
    const other = redisStore({ command: inCluster.noting })
    for (let times = 0; times < 3; times += 1) expect(await other.get(['a', 'c'])).toStrictEqual(['b', undefined])
    await other.update('a', 'd', LIFETIME, 'b')
    await other.add('s', 'm', LIFETIME)
    await other.end('a', LIFETIME)
    for (const [name, ...rest] of inCluster.asked) {
      if (name === 'INFO') continue
      const key = name === 'EVAL' ? rest[2] : rest[0]
      expect(rest.at(-1)).toBe(`key ${key}`)
      expect(name).not.toBe('MGET')
      if (name === 'EVAL') expect(rest[1]).toBe('1')
    }
    expect(inCluster.asked.filter(([name]) => name === 'INFO')).toHaveLength(1)
  })

  describe('eviction', () => {
    it('a policy other than noeviction is one process warning that says what can come back', async () => {
      const server = await startRedis()
      onTestFinished(() => server.close())
      await server.send('CONFIG', 'SET', 'maxmemory-policy', 'volatile-lru')
      const store = redisStore({ command: await connected(server) })
      for (let times = 0; times < 3; times += 1) await store.get(['a'])
      await expect
        .poll(() => warnings)
        .toStrictEqual([
          'Redis has maxmemory-policy volatile-lru: where memory is short, it forgets which sessions were ended, which keys were revoked and which one-time ids were used, so that they work again. Set maxmemory-policy noeviction',
        ])
    })

    it.each<[string, Command]>([
      ['noeviction', async () => 'maxmemory_policy:noeviction\r\ncluster_enabled:0'],
      ['INFO that is not allowed', async () => Promise.reject(new Error('NOPERM this user has no permissions'))],
      ['INFO that answers something else', async () => 7],
      ['INFO without a policy', async () => 'cluster_enabled:0'],
    ])('%s is silent, and is asked for once', async (_name, info) => {
      const command = await connected()
      const { asked, noting } = noted((args, key) => (args[0] === 'INFO' ? info(args, key) : command(args, key)))
      const store = redisStore({ command: noting })
      for (let times = 0; times < 3; times += 1)
        expect(await store.get(['x', 'y'])).toStrictEqual([undefined, undefined])
      expect(asked.filter(([name]) => name === 'INFO')).toHaveLength(1)
      expect(warnings).toStrictEqual([])
    })
  })

  it('an ended key, and a member, last as long as they should by the time of Redis', async () => {
    const store = redisStore({ command: await connected() })
    await store.end('ended', LIFETIME)
    await store.add('set', 'm', LIFETIME)
    for (const key of ['koa-with-auth:text:ended', 'koa-with-auth:set:set']) {
      const left = Number((await database().send('PTTL', key)).slice(1))
      expect(left).toBeGreaterThan(0)
      expect(left).toBeLessThanOrEqual(LIFETIME)
    }
  })

  it('a read that fails because the connection was lost is asked once more, a write never', async () => {
    const command = await connected()
    await redisStore({ command }).insert('read', 'text', LIFETIME)
    let left = 1
    let asked = 0
    const failing: Command = (args, key) => {
      if (args[0] !== 'INFO') asked += 1
      if (args[0] === 'INFO' || left-- <= 0) return command(args, key)
      return Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
    }
    expect(await redisStore({ command: failing }).get(['read'])).toStrictEqual(['text'])
    left = 1
    asked = 0
    await expect(redisStore({ command: failing }).update('read', 'b', LIFETIME)).rejects.toThrow('ECONNRESET')
    expect(asked).toBe(1)
  })

  it.each<[string, unknown]>([
    ['what another program wrote', 'text'],
    ['a number', 7],
    ['an array', ['+a']],
    ['an Error', new Error('no')],
  ])('%s is an outage', async (_name, answer) => {
    const store = redisStore({ command: async () => answer })
    const asks = [
      () => store.get(['a']),
      () => store.get(['a', 'b']),
      () => store.insert('a', 'b', LIFETIME),
      () => store.update('a', 'b', LIFETIME),
      () => store.end('a', LIFETIME),
    ]
    for (const ask of asks) await expect(ask()).rejects.toThrow(Error)
  })
})
