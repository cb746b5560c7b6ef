/**
 * Open streams whose credential ends: what waiting for the end takes. `node --expose-gc dist/streams.js <kind> <how> <count>` prints
 * the bytes of one stream of so many.
 *
 * A stream takes memory of its own, and so does `untilEnd` where nothing can end. Both are taken off.
 */
import { execFileSync } from 'node:child_process'
import type { RequestListener } from 'node:http'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import Koa from 'koa'
import { httpBearer, sessionAuth, untilEnd, withAuth, type Authenticator } from '../../../dist/index.js'
import { sessions } from '../../../dist/sessions.js'
import type { Section } from './Section.js'
import { median, medianOf } from './statistics.js'
import { ask, headersOf, type Headers } from './stub.js'

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

const cookieOf = (response: { getHeader: (name: string) => unknown }): string =>
  [response.getHeader('set-cookie')]
    .flat()
    .map((line) => String(line).split(';')[0])
    .join('; ')

type Users = ReadonlyArray<string>

const sites: Readonly<Record<string, (isWaiting: boolean, users: Users) => Promise<Site>>> = {
  public: async (isWaiting, users) =>
    served(
      new Koa(),
      null,
      isWaiting,
      users.map(() => headersOf({})),
    ),
  token: async (isWaiting, users) => {
    const authenticate = (_request: unknown, name: string) => ({ name, expiresAt: Date.now() + 3_600_000 })
    return served(
      new Koa(),
      httpBearer({ authenticate }),
      isWaiting,
      users.map((name) => headersOf({ Authorization: `Bearer ${name}` })),
    )
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
      headers.push(headersOf({ Cookie: cookieOf(response) }))
    }
    return { ...site, headers }
  },
}

const bytes = async (kind: string, isWaiting: boolean, count: number): Promise<number> => {
  const { gc } = globalThis
  const users = Array.from({ length: count }, (_, at) => `user-${at}`)
  const site = await sites[kind]?.(isWaiting, users)
  if (gc === undefined || site === undefined) throw new Error('start it with --expose-gc and a kind')
  const open = async (): Promise<void> => {
    for (const headers of site.headers) await ask(site.listener, '/events', headers)
    // a session is looked up once, in this time
    await new Promise((resolve) => setTimeout(resolve, 2000))
  }
  const heap = async (): Promise<number> => {
    for (let at = 0; at < 3; at++) {
      gc()
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return process.memoryUsage().heapUsed
  }
  // what is compiled and filled once
  await ask(site.listener, '/events', site.headers[0] ?? {})
  const before = await heap()
  await open()
  const after = await heap()
  if (site.kept.length !== 2 * count + 2) throw new Error(`${site.kept.length / 2} streams of ${kind} are open`)
  return (after - before) / count
}

const self = fileURLToPath(import.meta.url)

const inProcess = (kind: string, how: 'waiting' | 'plain', count: number): number =>
  Number(execFileSync(process.execPath, ['--expose-gc', self, kind, how, String(count)], { encoding: 'utf8' }))

/** So many streams in a process, over so many processes of each. */
export const streams = (count: number, rounds: number): Section => {
  const added = (kind: string) =>
    Array.from({ length: rounds }, () => inProcess(kind, 'waiting', count) - inProcess(kind, 'plain', count))
  const without = median(added('public'))
  return {
    title: `${count.toLocaleString('en')} open streams, each of another user`,
    rows: ['token', 'session'].map((kind) => {
      const all = added(kind).map((one) => one - without)
      const value = medianOf(all)
      return { name: `waiting for the end of a ${kind} takes`, value, unit: 'bytes', target: 200 }
    }),
  }
}

if (process.argv[1] === self) {
  console.log(await bytes(process.argv[2] ?? '', process.argv[3] === 'waiting', Number(process.argv[4])))
  process.exit(0)
}
