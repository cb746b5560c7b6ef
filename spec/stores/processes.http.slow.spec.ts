/**
 * Stores in several processes, which are killed, and so are their databases: the laws hold, nothing that was acknowledged is lost, and
 * what was ended does not come back.
 */
import { fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from 'koa-with-auth/stores'
import { laws } from 'koa-with-auth/testing/laws'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { aroundStore } from '../support/stores/aroundStore.js'
import { describeWithRedis, startRedis } from '../support/servers/redisServer.js'
import { describeWithSql, startSql } from '../support/servers/sqlServer.js'
import { buildSite } from '../support/sites/sessionSite.js'
import { asOwner, newName } from '../support/stores/databases.js'
import { storeAt, type Place, type StoreAnswer, type StoreQuestion } from '../support/stores/storeProcess.js'

/** The program of such a process, for `buildSite`. */
const storeProgram = 'spec/support/stores/storeProcess'

/** A store in another process. Its calls reject once that has ended. */
interface RemoteStore {
  readonly store: Store
  /** Kills the process as the system does (SIGKILL), and waits for its end. */
  readonly kill: () => Promise<void>
}

/** Starts a process with a store. */
const remoteStore = (folder: string, place: Place): RemoteStore => {
  const child = fork(join(folder, `${storeProgram}.js`), [JSON.stringify(place)], { serialization: 'advanced' })
  const waiting = new Map<
    number,
    { readonly resolve: (value: unknown) => void; readonly reject: (error: Error) => void }
  >()
  let calls = 0
  let isOver = false
  child.on('message', ({ id, result, failure }: StoreAnswer) => {
    const caller = waiting.get(id)
    waiting.delete(id)
    if (failure === undefined) caller?.resolve(result)
    else caller?.reject(new Error(failure))
  })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isOver = true
      for (const { reject } of waiting.values()) reject(new Error('the process has ended'))
      resolve()
    })
  })
  const call = (method: keyof Store, args: ReadonlyArray<unknown>) =>
    new Promise<unknown>((resolve, reject) => {
      if (isOver) return reject(new Error('the process has ended'))
      const id = ++calls
      waiting.set(id, { resolve, reject })
      child.send({ id, method, args } satisfies StoreQuestion, () => {})
    })
  return {
    store: aroundStore(() => expect.unreachable(), call),
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** One store over several, each of which gets every so many calls. */
const inTurn = (stores: ReadonlyArray<Store>): Store => {
  let turn = 0
  return aroundStore(
    () => stores[turn++ % stores.length]!,
    (_method, _args, ask) => ask(),
  )
}

const LIFETIME = 600_000

let folder = ''
beforeAll(() => {
  const built = buildSite([storeProgram])
  folder = built.folder
  return built.remove
})

/** What was acknowledged, and what was only begun. */
interface Acknowledged {
  readonly texts: Map<string, string>
  readonly ended: Set<string>
  readonly members: Set<string>
  /** Keys of calls without an answer, which may have happened or not. */
  readonly open: Set<string>
  count: number
}

/** Writes until a call fails, and notes what was acknowledged. `onWrite` is called with the number of each write, once it is under way. */
const writeUntilFailure = async (store: Store, onWrite: (count: number) => void): Promise<Acknowledged> => {
  const known: Acknowledged = { texts: new Map(), ended: new Set(), members: new Set(), open: new Set(), count: 0 }
  const write = async (key: string, call: () => Promise<unknown>, done: () => void): Promise<void> => {
    known.open.add(key)
    const writing = call()
    onWrite(++known.count)
    await writing
    known.open.delete(key)
    done()
  }
  const work = async (worker: number): Promise<void> => {
    for (let at = 0; at < 1000; at += 1) {
      const key = `${worker}/${at}`
      await write(
        key,
        () => store.insert(key, 'first', LIFETIME),
        () => known.texts.set(key, 'first'),
      )
      await write(
        key,
        () => store.update(key, 'second', LIFETIME, 'first'),
        () => known.texts.set(key, 'second'),
      )
      await write(
        `m ${key}`,
        () => store.add('set', key, LIFETIME),
        () => known.members.add(key),
      )
      if (at % 2 === 0)
        await write(
          key,
          () => store.end(key, LIFETIME),
          () => known.ended.add(key),
        )
    }
  }
  await Promise.allSettled([work(1), work(2), work(3)])
  return known
}

/** What is not as it was acknowledged. */
const missingIn = async (store: Store, known: Acknowledged): Promise<ReadonlyArray<string>> => {
  const wrong: string[] = []
  for (const [key, text] of known.texts) {
    if (known.open.has(key)) continue
    const [kept] = await store.get([key])
    const expected = known.ended.has(key) ? undefined : text
    if (kept !== expected) wrong.push(`${key} is ${kept}, not ${expected}`)
  }
  for (const key of known.ended) {
    if (await store.insert(key, 'back', LIFETIME)) wrong.push(`${key} was inserted again`)
    if (await store.update(key, 'back', LIFETIME)) wrong.push(`${key} was updated again`)
    if ((await store.get([key]))[0] !== undefined) wrong.push(`${key} is back`)
  }
  const members = new Set(await store.members('set'))
  for (const member of known.members) if (!members.has(member)) wrong.push(`the member ${member} is lost`)
  return wrong
}

/** Each suite with a database that it may kill. */
const suites = (
  describeIt: (name: string, suite: () => void) => void,
  kind: Place['kind'],
  start: () => Promise<Server>,
) =>
  describeIt(`${kind}`, () => {
    let server: Server
    beforeAll(async () => {
      server = await start()
    })
    afterAll(() => server?.close())
    const started: RemoteStore[] = []
    afterAll(() => Promise.all(started.map((one) => one.kill())).then(() => {}))
    const remote = (place: Place): RemoteStore => {
      const made = remoteStore(folder, place)
      started.push(made)
      return made
    }

    it('the laws hold for three processes', async () => {
      const place = await server.place()
      const stores = Array.from({ length: 3 }, () => remote(place).store)
      await laws.store(() => inTurn(stores), { runs: 30 }).check()
    })

    it('a process that is killed at any write loses nothing, and brings nothing back', async () => {
      const place = await server.place()
      const { store, close } = storeAt(place)
      onTestFinished(async () => void (await close()))
      for (let at = 1; at <= 24; at += 1) {
        const dying = remoteStore(folder, place)
        const prefix = `${randomUUID()}/`
        const killed = prefixed(dying.store, prefix)
        const known = await writeUntilFailure(killed, (count) => {
          if (count === at) void dying.kill()
        })
        await dying.kill()
        expect(known.count).toBeGreaterThanOrEqual(at)
        expect(await missingIn(prefixed(store, prefix), known)).toStrictEqual([])
      }
    })

    // a file is not killed
    if (kind === 'sqlite') return
    it('a database that is killed loses nothing, and brings nothing back', async () => {
      const place = await server.place()
      for (const at of [5, 50, 300]) {
        const prefix = `${randomUUID()}/`
        const before = storeAt(place)
        let killing: Promise<void> | undefined
        const known = await writeUntilFailure(prefixed(before.store, prefix), (count) => {
          if (count === at) killing = server.kill()
        })
        await killing
        expect(known.count).toBeGreaterThanOrEqual(at)
        await server.start()
        const after = storeAt(place)
        const missing = async () => missingIn(prefixed(after.store, prefix), known)
        await expect.poll(() => missing().catch((error: unknown) => String(error))).toStrictEqual([])
        await Promise.all([before.close(), after.close()])
      }
    })
  })

interface Server {
  /** A new place in it. */
  readonly place: () => Promise<Place>
  readonly kill: () => Promise<void>
  readonly start: () => Promise<void>
  readonly close: () => Promise<void> | void
}

const prefixed = (store: Store, prefix: string): Store => ({
  get: (keys) => store.get(keys.map((key) => prefix + key)),
  insert: (key, ...rest) => store.insert(prefix + key, ...rest),
  update: (key, ...rest) => store.update(prefix + key, ...rest),
  end: (key, lifetime) => store.end(prefix + key, lifetime),
  add: (set, member, lifetime) => store.add(prefix + set, member, lifetime),
  members: (set) => store.members(prefix + set),
})

suites(
  (name, suite) => describe(name, suite),
  'sqlite',
  async () => {
    const own = mkdtempSync(join(tmpdir(), 'koa-with-auth-sqlite-'))
    return {
      place: async () => ({ kind: 'sqlite', port: 0, name: join(own, `${randomUUID()}.db`) }),
      kill: async () => {},
      start: async () => {},
      close: () => rmSync(own, { recursive: true, force: true }),
    }
  },
)

suites(describeWithRedis, 'redis', async () => {
  const { port, stop, start, close } = await startRedis({ persistent: true })
  return { place: async () => ({ kind: 'redis', port, name: '' }), kill: stop, start, close }
})

for (const kind of ['postgres', 'mariadb'] as const)
  suites(
    (name, suite) => describeWithSql(kind, name, suite),
    kind,
    async () => {
      const { port, kill, start, close } = await startSql(kind)
      const place = async (): Promise<Place> => {
        const name = newName()
        if (kind === 'mariadb') await asOwner(kind, `create database ${name}`, port)
        return { kind, port, name }
      }
      return { place, kill, start, close }
    },
  )
