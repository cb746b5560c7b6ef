/**
 * The process or the database dies at each write of each change of sessions. What was acknowledged holds, no session that was ended is good
 * again, and a change that failed can be repeated, at another process over the same store.
 */
import Router from '@koa/router'
import Koa from 'koa'
import { withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { jsonClient, type JsonClient } from '../support/servers/jsonClient.js'
import { listen } from '../support/servers/server.js'
import { dyingAt } from '../support/stores/stores.js'

const HOUR = 3_600_000

const siteOn = async (store: Store) => {
  const app = new Koa({ keys: ['a secret of the test, of 32 characters or more'] })
  const { addProof, endSession, listSessions, logIn, logOut, logOutEverywhere, sessionAuth } = sessions(app, {
    loadUser: (username) => ({ username }),
    name: 'killed',
    store,
    list: true,
    bearer: true,
  })
  const router = new Router()
  const acts: Readonly<Record<string, (ctx: Koa.Context) => Promise<unknown>>> = {
    in: (ctx) => logIn(ctx, { username: 'anna' }),
    token: (ctx) => logIn(ctx, { username: 'anna' }, { as: 'bearer' }),
    out: logOut,
    prove: (ctx) => addProof(ctx, { method: 'totp' }),
    everywhere: () => logOutEverywhere('anna'),
    end: (ctx) => endSession('anna', String(ctx.query['id'])),
  }
  for (const [path, act] of Object.entries(acts))
    router.post(`/${path}`, withAuth(null), async (ctx) => {
      ctx.body = { result: (await act(ctx)) ?? null }
    })
  router.get('/list', withAuth(sessionAuth()), async (ctx) => {
    ctx.body = await listSessions(ctx)
  })
  app.use(router.routes())
  const served = await listen(app)
  return served
}

type Site = Awaited<ReturnType<typeof siteOn>>

const open: Site[] = []
const started = async (store: Store): Promise<() => string> => {
  const site = await siteOn(store)
  open.push(site)
  return () => site.url
}
afterEach(async () => {
  vi.useRealTimers()
  await Promise.all(open.splice(0).map((site) => site.close()))
})

/** Two devices of anna, and where they ask after the death. */
interface Scene {
  readonly phone: JsonClient
  readonly laptop: JsonClient
  /** The same cookies at a process that lives. */
  readonly at: (client: JsonClient) => JsonClient
  readonly phoneId: string
}

const isIn = async (client: JsonClient): Promise<boolean> => {
  const { status } = await client.get('/list')
  expect([200, 401]).toContain(status)
  return status === 200
}

interface Change {
  readonly name: string
  /** Asks for it, with the cookies of a device. */
  readonly ask: (client: JsonClient, scene: Scene) => ReturnType<JsonClient['get']>
  /** Whose request it is. */
  readonly by?: 'laptop' | 'stranger'
  readonly after?: () => void
  /** How long another renewal of the same session is lost, in milliseconds. */
  readonly wait?: number
  /** The devices whose sessions before it end; the others stay. */
  readonly ends?: ReadonlyArray<'laptop' | 'phone'>
  /** Whether the request itself is signed in by it. */
  readonly signsIn?: boolean
}

const changes: ReadonlyArray<Change> = [
  { name: 'a sign-in', by: 'stranger', ask: (one) => one.post('/in'), signsIn: true },
  { name: 'a sign-in in place of another', ask: (one) => one.post('/in'), ends: ['laptop'], signsIn: true },
  { name: 'a token', by: 'stranger', ask: (one) => one.post('/token') },
  { name: 'a renewal of the id', ask: (one) => one.post('/prove'), wait: 5001, ends: ['laptop'], signsIn: true },
  { name: 'a sign-out', ask: (one) => one.post('/out'), ends: ['laptop'] },
  { name: 'the end of all', by: 'stranger', ask: (one) => one.post('/everywhere'), ends: ['laptop', 'phone'] },
  {
    name: 'the end of one in the list',
    ask: (one, { phoneId }) => one.post(`/end?id=${phoneId}`),
    ends: ['phone'],
  },
  {
    name: 'a prolongation',
    ask: (one) => one.get('/list'),
    after: () => void vi.setSystemTime(Date.now() + 13 * HOUR),
  },
]

const sceneOn = async (store: Store): Promise<Scene> => {
  const url = await started(store)
  const [phone, laptop] = [jsonClient(url), jsonClient(url)]
  for (const device of [phone, laptop]) expect((await device.post('/in')).status).toBe(200)
  const { body } = await phone.get('/list')
  // Safe: the list of the site
  const listed = body as ReadonlyArray<{ readonly id: string; readonly current: boolean }>
  const other = await started(store)
  return {
    phone,
    laptop,
    at: (client) => jsonClient(other, client),
    phoneId: listed.find((one) => one.current)?.id ?? '',
  }
}

/** Dies at this write; `undefined` if the change has fewer. */
const killedAt = async (change: Change, write: number, isAfter: boolean, isAnswered: boolean) => {
  const base = memoryStore()
  const scene = await sceneOn(base)
  change.after?.()
  const { store, died } = dyingAt(base, write, isAfter)
  const url = await started(store)
  const before = change.by === 'stranger' ? jsonClient(url) : jsonClient(url, scene.laptop)
  const client = jsonClient(url, before)
  const answer = await change.ask(client, scene)
  // who dies answers nothing, and sets no cookie
  return died() ? { scene, status: answer.status, client: isAnswered ? client : before } : undefined
}

describe.each(changes)('$name', (change) => {
  const { ask, ends = [], signsIn = false, wait = 0 } = change
  const [laptopStays, phoneStays] = [!ends.includes('laptop'), !ends.includes('phone')]
  it.each([
    ['before', 'the database', false, true],
    ['after', 'the database', true, true],
    ['before', 'the process', false, false],
    ['after', 'the process', true, false],
  ])('%s a write, %s dies', async (_when, _which, isAfter, isAnswered) => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
    let write = 1
    for (; ; write++) {
      const killed = await killedAt(change, write, isAfter, isAnswered)
      if (killed === undefined) break
      const { scene, status, client } = killed
      const place = `write ${write}`
      expect([place, [200, 503].includes(status)]).toStrictEqual([place, true])
      const [laptop, phone] = [scene.at(scene.laptop), scene.at(scene.phone)]
      // what was acknowledged before is as it was, unless it was to end
      if (laptopStays) expect([place, await isIn(laptop)]).toStrictEqual([place, true])
      if (phoneStays) expect([place, await isIn(phone)]).toStrictEqual([place, true])
      if (status === 200 && isAnswered) {
        expect([place, await isIn(laptop), await isIn(phone)]).toStrictEqual([place, laptopStays, phoneStays])
        if (signsIn) expect([place, await isIn(scene.at(client))]).toStrictEqual([place, true])
      }
      const ended = [...((await isIn(laptop)) ? [] : [laptop]), ...((await isIn(phone)) ? [] : [phone])]
      // again, at another process
      vi.setSystemTime(Date.now() + wait)
      const again = scene.at(client)
      const repeated = await ask(again, scene)
      // who died between the end of the old id and the beginning of the next signed its user out
      const isOver = ended.includes(laptop) && repeated.status === 401
      expect([place, repeated.status === 200 || isOver]).toStrictEqual([place, true])
      if (signsIn && !isOver) expect([place, await isIn(again)]).toStrictEqual([place, true])
      expect([place, await isIn(laptop), await isIn(phone)]).toStrictEqual([place, laptopStays, phoneStays])
      for (const device of ended) expect([place, await isIn(device)]).toStrictEqual([place, false])
    }
    expect(write).toBeGreaterThan(1)
  })
})
