/** A plain koa-session keeps working; each weakness of it is a warning, once for an application. */
import { createSession, type CreateSessionOptions } from 'koa-session'
import { sessionAuth, sessionAuthSuperUser, withAuth } from 'koa-with-auth'
import Router from '@koa/router'
import { memoryStore } from 'koa-with-auth/stores'
import { koaSessionStore } from '../../src/sessions/koaSessionStore.js'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { challenge, expectDenied, expectPassed, running } from '../support/models/behavior.js'
import { signIn } from '../support/models/behaviorSession.js'
import { sessionsApp, strongKey } from '../support/sites/sessionsApp.js'

const anna = { username: 'anna' }
const good: CreateSessionOptions = {
  store: koaSessionStore({
    name: 'plain',
    store: memoryStore(),
    idle: 60_000,
    absolute: 60_000,
    longest: 60_000,
    maxLength: 1000,
    list: undefined,
    bearer: undefined,
  }).store,
  sameSite: 'lax',
}
const { store: _, ...storeless } = good

const emitted = vi.spyOn(process, 'emitWarning')
beforeEach(() => {
  emitted.mockReset()
})
afterEach(() => {
  emitted.mockReset()
})
// Files share a process, so warnings of other kinds can come late
const warnings = () =>
  emitted.mock.calls
    .filter(([, type]: ReadonlyArray<unknown>) => type === 'SessionWarning')
    .map(([message]) => String(message))

const plain = (options: CreateSessionOptions, env = 'test') =>
  running((app, answering) => {
    app.keys = [strongKey]
    app.env = env
    // A Secure cookie is otherwise not sent over http
    app.proxy = true
    app.use(createSession({ ...options }, app))
    const router = new Router()
    router.get('/sign-in', (ctx) => {
      Object.assign(ctx['session'] as object, JSON.parse(new URLSearchParams(ctx.querystring).get('session') ?? '{}'))
      ctx.body = 'signed in'
    })
    router.get('/x', withAuth(sessionAuth()), answering)
    router.get('/super', withAuth(sessionAuthSuperUser()), answering)
    router.get('/open', withAuth(null), answering)
    app.use(router.routes())
  })

interface Row {
  readonly description: string
  readonly options: CreateSessionOptions
  readonly env?: string
  readonly warned: ReadonlyArray<RegExp>
}

const table: ReadonlyArray<Row> = [
  { description: 'a good configuration', options: good, warned: [] },
  { description: 'a good configuration, SameSite strict', options: { ...good, sameSite: 'strict' }, warned: [] },
  { description: 'a good configuration, in capitals', options: { ...good, sameSite: 'Lax' }, warned: [] },
  {
    description: 'a good configuration, in production',
    options: { ...good, secure: true },
    env: 'production',
    warned: [],
  },
  { description: 'D-S3 no store', options: storeless, warned: [/without a store .*; set `store`/] },
  {
    description: 'D-S9 unsigned',
    options: { ...good, signed: false },
    warned: [/unsigned .*; remove `signed: false`/],
  },
  { description: 'B-27 not HttpOnly', options: { ...good, httpOnly: false }, warned: [/scripts .*; remove `httpOnly/] },
  { description: 'D-S12 no SameSite', options: { store: good.store }, warned: [/other sites; set `sameSite: 'lax'`/] },
  {
    description: 'SameSite=None',
    options: { ...good, sameSite: 'none' },
    warned: [/other sites; set `sameSite: 'lax'`/],
  },
  {
    description: 'D-S12 not Secure in production',
    options: good,
    env: 'production',
    warned: [/unencrypted; set `secure: true`/],
  },
  { description: 'maxAge: session', options: { ...good, maxAge: 'session' }, warned: [/for ever; set `maxAge`/] },
  {
    description: 'D-S7 an asynchronous valid',
    options: { ...good, valid: async () => true },
    warned: [/`valid` is async/],
  },
  {
    description: 'all weaknesses at once',
    options: { signed: false, httpOnly: false, maxAge: 'session' },
    env: 'production',
    warned: [/without a store/, /unsigned/, /scripts/, /other sites/, /unencrypted/, /for ever/],
  },
]

describe('a plain koa-session', () => {
  it.each(table)('$description: it works, and each weakness is a warning', async ({ options, env, warned }) => {
    const api = await plain(options, env)
    const secure = { 'X-Forwarded-Proto': 'https' }
    const open = await api.ask('/open')
    expect([open.status, warnings()]).toEqual([200, []])
    const asking = { ...api, ask: (path?: string) => api.ask(path, { headers: secure }) }
    const headers = { ...secure, Cookie: await signIn(asking, { user: anna }) }
    for (let at = 0; at < 3; at++) expectPassed(await api.ask('/x', { headers }), anna)
    expectDenied(await api.ask('/super', { headers }), 401, [challenge.session])
    expectDenied(await api.ask('/x', { headers: secure }), 401, [challenge.session])
    expect(warnings()).toHaveLength(warned.length)
    for (const [at, pattern] of warned.entries()) {
      const message = warnings()[at]
      expect(message).toMatch(pattern)
      expect(message).toMatch(/^koa-session: .*; or set it up with koa-with-auth\/sessions$/)
    }
  })

  it('another application has its own warnings', async () => {
    for (let at = 1; at <= 2; at++) {
      const api = await plain(storeless)
      await api.ask('/x')
      await api.ask('/x')
      expect(warnings()).toHaveLength(at)
    }
  })
})

it('sessions(app, ...) makes no warning, in production neither', async () => {
  for (const options of [
    {},
    {
      https: true,
      above: (app: { env: string; proxy: boolean }) => void Object.assign(app, { env: 'production', proxy: true }),
    },
  ]) {
    const { visitor } = await sessionsApp(undefined, options)
    const one = visitor()
    await one.post('/login', { 'X-Forwarded-Proto': 'https' })
    expectPassed(await one.ask('/me', { headers: { 'X-Forwarded-Proto': 'https' } }), { ...anna, isActive: true })
  }
  expect(warnings()).toEqual([])
})
