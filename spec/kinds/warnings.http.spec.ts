/** A plain koa-session keeps working; each weakness of it is a warning, once for an application. */
import { createSession, type CreateSessionOptions } from 'koa-session'
import { sessionAuth, sessionAuthSuperUser, withAuth } from 'koa-with-auth'
import Router from '@koa/router'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { challenge, expectDenied, expectPassed, running } from '../support/models/behavior.js'
import { koaStore, signIn } from '../support/models/behaviorSession.js'
import { sessionsApp, strongKey } from '../support/sites/sessionsApp.js'

const anna = { username: 'anna' }
const good: CreateSessionOptions = { store: koaStore(), sameSite: 'lax' }
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

type Row = [what: string, options: CreateSessionOptions, warned: ReadonlyArray<RegExp>, env?: string]

const table: Row[] = [
  ['a good configuration', good, []],
  ['a good configuration, SameSite strict', { ...good, sameSite: 'strict' }, []],
  ['a good configuration, in capitals', { ...good, sameSite: 'Lax' }, []],
  ['a good configuration, in production', { ...good, secure: true }, [], 'production'],
  ['D-S3 no store', storeless, [/without a store .*; set `store`/]],
  ['D-S9 unsigned', { ...good, signed: false }, [/unsigned .*; remove `signed: false`/]],
  ['B-27 not HttpOnly', { ...good, httpOnly: false }, [/scripts .*; remove `httpOnly/]],
  ['D-S12 no SameSite', { store: good.store }, [/other sites; set `sameSite: 'lax'`/]],
  ['SameSite=None', { ...good, sameSite: 'none' }, [/other sites; set `sameSite: 'lax'`/]],
  ['D-S12 not Secure in production', good, [/unencrypted; set `secure: true`/], 'production'],
  ['maxAge: session', { ...good, maxAge: 'session' }, [/for ever; set `maxAge`/]],
  ['D-S7 an asynchronous valid', { ...good, valid: async () => true }, [/`valid` is async/]],
  [
    'all weaknesses at once',
    { signed: false, httpOnly: false, maxAge: 'session' },
    [/without a store/, /unsigned/, /scripts/, /other sites/, /unencrypted/, /for ever/],
    'production',
  ],
]

describe('a plain koa-session', () => {
  it.each<Row>(table)('%s: it works, and each weakness is a warning', async (_what, options, warned, env) => {
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
