/**
 * Whatever carries a sign-in, the cookie or a token, and however it is ended: no process lets in who was ended, and none who was not is kept
 * out. Two processes of one site share a store; each call of the store is a step of fast-check's scheduler.
 */
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import Router from '@koa/router'
import fc from 'fast-check'
import Koa, { type Context } from 'koa'
import { withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { afterEach, expect, it, vi } from 'vitest'
import { samples } from '../support/runs/samples.js'
import { steppedStore } from '../support/stores/stores.js'

afterEach(() => void vi.useRealTimers())

const IDLE = 100_000
const ABSOLUTE = 400_000
// For so long a sign-out by an id that was rotated ends the session under its next one
const JUST_ROTATED = 60_000

interface Answered {
  readonly status: number
  readonly cookie: string | undefined
  readonly body: string
}

/** A request without a socket. */
const send = (app: Koa, method: string, url: string, headers: Readonly<Record<string, string>>): Promise<Answered> =>
  new Promise((resolve) => {
    const asked = new IncomingMessage(new Socket())
    Object.assign(asked, { method, url, httpVersion: '1.1', httpVersionMajor: 1, httpVersionMinor: 1 })
    for (const [name, value] of Object.entries({ host: 'shop.example', ...headers })) {
      asked.rawHeaders.push(name, value)
      asked.headers[name] = value
    }
    const response = new ServerResponse(asked)
    const end = (body: unknown): void => {
      const lines = [response.getHeader('set-cookie') ?? []].flat().map(String)
      const cookie = lines.find((line) => /^session=[^;]/.test(line))?.split(';')[0]
      resolve({ status: response.statusCode, cookie, body: typeof body === 'string' ? body : '' })
    }
    Object.assign(response, { end })
    void app.callback()(asked, response)
  })

/** One process of the site. */
const processOf = (
  store: Store,
  users: ReadonlyMap<string, { readonly username: string }>,
  keys: string[],
  isListed: boolean,
) => {
  const app = new Koa({ keys })
  app.silent = true
  const { sessionAuth, logIn, logOut, addProof, listSessions, endSession, logOutEverywhere } = sessions(app, {
    loadUser: (id) => users.get(id),
    store,
    name: 'shop',
    list: isListed && { label: ({ query }) => String(query['label']) },
    bearer: true,
    idle: IDLE,
    absolute: ABSOLUTE,
    timeout: 600_000,
  })
  const router = new Router()
  const open = withAuth(null)
  router.post('/in/:user', open, async (ctx) => {
    const user = { username: String(ctx.params['user']) }
    if (ctx.query['as'] === 'cookie') ctx.body = String(await logIn(ctx, user))
    else ctx.body = (await logIn(ctx, user, { as: 'bearer' })).token
  })
  const me = (ctx: Context): void => {
    ctx.body = String(Reflect.get(Object(Reflect.get(ctx.request, 'auth')), 'username'))
  }
  router.get('/me', withAuth(sessionAuth()), me)
  router.post('/write', withAuth(sessionAuth()), (ctx) => {
    Object.assign(ctx['session'] as object, { at: Math.random() })
    me(ctx)
  })
  router.post('/prove', withAuth(sessionAuth()), async (ctx) => {
    await addProof(ctx, { method: 'totp' })
    me(ctx)
  })
  router.post('/out', open, async (ctx) => {
    await logOut(ctx)
    ctx.status = 204
  })
  router.post('/end/:user', open, async (ctx) => {
    const user = String(ctx.params['user'])
    const one = (await listSessions(ctx, user)).find(({ label }) => label === ctx.query['label'])
    ctx.status = one !== undefined && (await endSession(user, one.id)) ? 204 : 404
  })
  router.post('/everywhere/:user', open, async (ctx) => {
    await logOutEverywhere(String(ctx.params['user']))
    ctx.status = 204
  })
  app.use(router.routes())
  return app
}

/** A sign-in, as its user knows it. */
interface SignIn {
  readonly label: string
  readonly way: 'cookie' | 'bearer'
  readonly user: string
  /** All cookies that it got, or its token; the last one is that of now. */
  readonly carriers: string[]
  /** When it got each of them, and the key of that moment. */
  readonly given: Array<{ readonly at: number; readonly key: string }>
  readonly at: number
  used: number
  /** The key that its last use has bound it to. */
  key: string
  /** Whether it was ended, and the end was answered. */
  isEnded: boolean
  /** Whether an end has begun, or its time may be over: either answer is right. */
  mayBeEnded: boolean
  /** The requests under way that give it another id. */
  proving: number
}

const kinds = ['in', 'me', 'write', 'prove', 'out', 'out by a copy', 'end', 'everywhere', 'copy'] as const
const action = fc.record({
  kind: fc.constantFrom(...kinds),
  at: fc.nat(1),
  which: fc.nat(5),
  user: fc.constantFrom('anna', 'bert'),
  way: fc.constantFrom('cookie', 'bearer'),
})
type Action = typeof action extends fc.Arbitrary<infer A> ? A : never

const between = fc.oneof(
  fc.record({ time: fc.integer({ min: 1, max: 150_000 }) }),
  fc.constantFrom('rotate', 'drop', 'nothing', 'nothing', 'gone'),
)
// The clients of a round act at the same time, each one thing after another
const round = fc.record({
  clients: fc.array(fc.array(action, { minLength: 1, maxLength: 3 }), { maxLength: 4 }),
  between,
})

class Site {
  readonly users = new Map(['anna', 'bert'].map((username) => [username, { username }]))
  readonly keys = ['the first key of the site, long enough']
  readonly signIns: SignIn[] = []
  readonly apps: ReadonlyArray<Koa>
  readonly #s: fc.Scheduler
  readonly #isListed: boolean
  #labels = 0

  constructor(s: fc.Scheduler, isListed: boolean) {
    this.#s = s
    this.#isListed = isListed
    const store = memoryStore()
    const step = async <A>(name: string, run: () => A | Promise<A>): Promise<A> => {
      await s.schedule(Promise.resolve(), name)
      return run()
    }
    const stepped = steppedStore(store, step)
    this.apps = [0, 1].map(() => processOf(stepped, this.users, this.keys, isListed))
  }

  /** Runs clients until each has ended, in the order that the scheduler chooses. */
  async round(clients: ReadonlyArray<() => Promise<unknown>>): Promise<void> {
    let open = clients.length
    const all = Promise.all(clients.map((run) => run().finally(() => open--)))
    all.catch(() => undefined)
    for (let steps = 0; open > 0; steps++) {
      if (steps > 20_000) throw new Error('a request does not end')
      if (this.#s.count() > 0) await this.#s.waitOne()
      else await new Promise((resolve) => setImmediate(resolve))
    }
    await all
  }

  async act({ kind, at, which, user, way }: Action): Promise<void> {
    const app = this.apps[at]!
    if (kind === 'in') return this.#in(app, user, way)
    if (kind === 'everywhere') return this.#everywhere(app, user)
    const signIn = this.signIns[which % Math.max(1, this.signIns.length)]
    if (signIn === undefined || (kind === 'end' && !this.#isListed)) return
    const { carriers } = signIn
    const isCopy = kind === 'copy' || kind === 'out by a copy'
    const carrier = isCopy ? carriers[at % carriers.length] : carriers.at(-1)
    if (kind === 'out' || kind === 'out by a copy') return this.#out(app, signIn, carrier!)
    if (kind === 'end') return this.#end(app, signIn)
    await this.use(app, kind === 'copy' ? 'me' : kind, signIn, carrier!)
  }

  async #in(app: Koa, user: string, way: SignIn['way']): Promise<void> {
    const label = `sign-in ${this.#labels++}`
    const [at, key] = [Date.now(), this.keys[0]!]
    const before = this.#ends.get(user) ?? 0
    const { status, cookie, body } = await send(
      app,
      'POST',
      `/in/${user}?as=${way}&label=${label}`.replaceAll(' ', '+'),
      {},
    )
    expect([status, cookie === undefined]).toEqual([200, way === 'bearer'])
    const carriers = [way === 'bearer' ? `Bearer ${body}` : String(cookie)]
    const mayBeEnded = (this.#ends.get(user) ?? 0) > before || this.#ending.has(user)
    const isEnded = !this.users.has(user)
    const given = [{ at, key }]
    this.signIns.push({ label, way, user, carriers, given, at, used: at, key, isEnded, mayBeEnded, proving: 0 })
  }

  // How often all sessions of a user were ended, and whose are being ended
  readonly #ends = new Map<string, number>()
  readonly #ending = new Set<string>()

  async #everywhere(app: Koa, user: string): Promise<void> {
    const meant = this.signIns.filter((one) => one.user === user)
    for (const one of meant) one.mayBeEnded = true
    this.#ends.set(user, (this.#ends.get(user) ?? 0) + 1)
    this.#ending.add(user)
    expect((await send(app, 'POST', `/everywhere/${user}`, {})).status).toBe(204)
    this.#ends.set(user, (this.#ends.get(user) ?? 0) + 1)
    this.#ending.delete(user)
    for (const one of meant) one.isEnded = true
  }

  async #out(app: Koa, signIn: SignIn, carrier: string): Promise<void> {
    const { carriers, given, way } = signIn
    const [from, begun] = [carriers.indexOf(carrier), Date.now()]
    signIn.mayBeEnded = true
    const fields = { [way === 'cookie' ? 'cookie' : 'authorization']: carrier }
    expect((await send(app, 'POST', '/out', fields)).status).toBe(204)
    // a copy counts while its key is listed, and each id after it was given out a moment ago
    const isKnown = way === 'bearer' || from === carriers.length - 1 || this.keys.includes(given[from]!.key)
    if (isKnown && given.slice(from + 1).every(({ at }) => begun - at <= JUST_ROTATED)) signIn.isEnded = true
  }

  async #end(app: Koa, signIn: SignIn): Promise<void> {
    const { user, label } = signIn
    signIn.mayBeEnded = true
    const { status } = await send(app, 'POST', `/end/${user}?label=${label}`.replaceAll(' ', '+'), {})
    // another request may have ended it in between
    if (status !== 404) expect(status).toBe(204)
    if (status === 204) signIn.isEnded = true
  }

  /** Uses a sign-in by what it was given. */
  async use(app: Koa, path: 'me' | 'write' | 'prove', signIn: SignIn, carrier: string): Promise<void> {
    const { way, user, isEnded, carriers } = signIn
    const isSure = (): boolean =>
      !signIn.isEnded &&
      !signIn.mayBeEnded &&
      signIn.proving === (path === 'prove' ? 1 : 0) &&
      carriers.at(-1) === carrier
    if (path === 'prove') signIn.proving++
    const wasSure = isSure()
    const fields = { [way === 'cookie' ? 'cookie' : 'authorization']: carrier }
    const { status, cookie, body } = await send(app, path === 'me' ? 'GET' : 'POST', `/${path}`, fields)
    const why = `${path} of ${signIn.label} by ${way}`
    if (isEnded) expect([status, why]).toEqual([401, why])
    if (wasSure && isSure()) expect([status, why]).toEqual([200, why])
    if (path === 'prove') signIn.proving--
    if (way === 'bearer') expect(cookie).toBeUndefined()
    if (cookie !== undefined) {
      carriers.push(cookie)
      signIn.given.push({ at: Date.now(), key: this.keys[0]! })
    }
    if (status !== 200) return
    expect(body).toBe(user)
    signIn.used = Date.now()
    signIn.key = this.keys[0]!
  }

  change(what: { readonly time: number } | string): void {
    if (typeof what === 'object') this.#pass(what.time)
    else if (what === 'rotate') this.keys.unshift(`key ${this.#labels++} of the site, which is long enough`)
    else if (what === 'drop' && this.keys.length > 1) {
      const dropped = this.keys.pop()
      for (const one of this.signIns) if (one.key === dropped) one.isEnded = true
    } else if (what === 'gone') {
      this.users.delete('bert')
      for (const one of this.signIns) if (one.user === 'bert') one.isEnded = true
    }
  }

  #pass(time: number): void {
    vi.setSystemTime(Date.now() + time)
    for (const one of this.signIns) {
      const unused = Date.now() - one.used
      if (Date.now() - one.at >= ABSOLUTE || unused >= IDLE) one.isEnded = true
      // it is prolonged in the second half of its time
      else if (unused >= IDLE / 2) one.mayBeEnded = true
    }
  }
}

it('no process lets in who was ended, and each lets in who was not', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.scheduler(),
      fc.boolean(),
      fc.array(round, { minLength: 1, maxLength: 6 }),
      async (s, isListed, rounds) => {
        vi.useFakeTimers({ toFake: ['Date'], now: 1_800_000_000_000 })
        const site = new Site(s, isListed)
        const chain = (actions: ReadonlyArray<Action>) => async () => {
          for (const one of actions) await site.act(one)
        }
        for (const { clients, between: what } of rounds) {
          await site.round(clients.map(chain))
          site.change(what)
        }
        // whoever has a copy of anything
        const last = site.signIns.flatMap((one) =>
          one.carriers.flatMap((carrier) => site.apps.map((app) => () => site.use(app, 'me', one, carrier))),
        )
        for (const one of last) await site.round([one])
      },
    ),
    { numRuns: samples(300) },
  )
})
