/**
 * Open streams whose credential ends: what waiting for the end takes.
 *
 * A stream takes memory of its own, and so does `untilEnd` where nothing can end. Both are taken off.
 */
import type { RequestListener } from 'node:http'
import { PassThrough } from 'node:stream'
import Router from '@koa/router'
import Koa from 'koa'
import { httpBearer, sessionAuth, untilEnd, withAuth, type Authenticator } from '../../../dist/index.js'
import { sessions } from '../../../dist/sessions.js'
import { bearer } from './contestants.js'
import { apart, oneByOne } from './inProcess.js'
import { collecting, heapOf } from './memory.js'
import type { Row, Section } from './Section.js'
import { median, medianOf } from './statistics.js'
import { ask, cookiesIn, headersOf, type Headers } from './stub.js'

/** An application, and the headers of each of its users. */
interface Site {
  readonly listener: RequestListener
  readonly headers: ReadonlyArray<Headers>
  readonly kept: Array<unknown>
}

const served = (app: Koa, auth: Authenticator<unknown> | null, isWaiting: boolean, headers: Site['headers']): Site => {
  const kept: unknown[] = []
  const guard = auth === null ? withAuth(null) : withAuth(auth)
  const router = new Router().get('/events', guard, (ctx) => {
    const stream = new PassThrough()
    kept.push(ctx, isWaiting ? untilEnd(ctx, stream) : stream)
    ctx.body = 'ok'
  })
  app.use(router.routes())
  return { listener: app.callback(), headers, kept }
}

type Kind = 'public' | 'token' | 'session'
type Users = ReadonlyArray<string>

const sites: Readonly<Record<Kind, (isWaiting: boolean, users: Users) => Promise<Site>>> = {
  public: async (isWaiting, users) =>
    served(new Koa(), null, isWaiting, Array<Headers>(users.length).fill(headersOf({}))),
  token: async (isWaiting, users) => {
    const authenticate = (_request: unknown, name: string) => ({ name, expiresAt: Date.now() + 3_600_000 })
    return served(new Koa(), httpBearer({ authenticate }), isWaiting, users.map(bearer))
  },
  session: async (isWaiting, users) => {
    const app = new Koa({ keys: ['bench-bench-bench-bench-bench-bench'] })
    const { logIn } = sessions(app, { loadUser: (name) => ({ username: name }) })
    const router = new Router().get('/in/:name', withAuth(null), async (ctx) => {
      await logIn(ctx, { username: String(ctx.params['name']) })
      ctx.body = 'ok'
    })
    app.use(router.routes())
    const site = served(app, sessionAuth(), isWaiting, [])
    const headers: Headers[] = []
    for (const name of users) {
      const response = await ask(site.listener, `/in/${name}`, headersOf({}))
      headers.push(headersOf({ Cookie: cookiesIn(response.getHeader('set-cookie')) }))
    }
    return { ...site, headers }
  },
}

const bytesOf = async (kind: Kind, isWaiting: boolean, count: number): Promise<number> => {
  const users = Array.from({ length: count }, (_, at) => `user-${at}`)
  const { listener, headers, kept } = await sites[kind](isWaiting, users)
  // what is compiled and filled once
  await ask(listener, '/events', headers[0] ?? {})
  const bytes = await heapOf(async () => {
    for (const one of headers) await ask(listener, '/events', one)
    // a session is looked up once, in this time
    await new Promise((resolve) => setTimeout(resolve, 2000))
    return kept
  })
  if (kept.length !== 2 * count + 2) throw new Error(`${kept.length / 2} streams of ${kind} are open`)
  return bytes / count
}

const inOwnProcess = apart(import.meta.url, bytesOf, collecting)

/** So many streams in a process, over so many processes of each. */
export const streams = async (count: number, rounds: number): Promise<Section> => {
  const added = (kind: Kind) =>
    oneByOne(rounds, async () => (await inOwnProcess(kind, true, count)) - (await inOwnProcess(kind, false, count)))
  const without = median(await added('public'))
  const rows: Row[] = []
  for (const kind of ['token', 'session'] as const) {
    const value = medianOf((await added(kind)).map((one) => one - without))
    rows.push({ name: `waiting for the end of a ${kind} takes`, value, unit: 'bytes', target: 200 })
  }
  return { title: `${count.toLocaleString('en')} open streams, each of another user`, rows }
}
