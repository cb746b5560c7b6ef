/**
 * Sessions at upgrades: the cookie is read as Koa reads it, and nothing is written, prolonged, signed in or signed out.
 */
import Koa from 'koa'
import { createSession } from 'koa-session'
import { httpBearer, sessionAuth, sessionAuthIsStaff, type AuthenticatorLike } from 'koa-with-auth'
import { on, type Decision } from 'koa-with-auth/events'
import { guardUpgrade } from 'koa-with-auth/upgrades'
import { describe, expect, it, onTestFinished } from 'vitest'
import { valuesOf } from '../support/servers/rawSocket.js'
import { at, sessionsApp, strongKey, visitorOf, type SessionsAppOptions } from '../support/sites/sessionsApp.js'
import { listenWithUpgrades, sendUpgrade } from '../support/servers/upgradeServer.js'
import { stoppedClock } from '../support/runs/clock.js'

const anna = { username: 'anna', isActive: true }

/** A site with sessions, and upgrades guarded by an authenticator; anna is signed in. */
const site = async (auth: AuthenticatorLike = sessionAuth(), options: SessionsAppOptions = {}) => {
  const running = await sessionsApp(undefined, options)
  const guard = guardUpgrade(running.app, auth)
  const server = await listenWithUpgrades(running.app, () => guard)
  onTestFinished(server.close)
  const visitor = running.visitor()
  await visitor.post('/login')
  const upgrade = (cookie = visitor.header(), lines: ReadonlyArray<string> = []) =>
    sendUpgrade(server.port, 'GET /live', [...(cookie === '' ? [] : [`Cookie: ${cookie}`]), ...lines])
  running.store.asked.length = 0
  return { ...running, ...server, visitor, upgrade }
}

const writes = ({ asked }: { readonly asked: ReadonlyArray<string> }) =>
  asked.filter((name) => ['insert', 'update', 'end', 'mark'].includes(name))

describe('an upgrade with a session', () => {
  it('is accepted with its user, who is loaded now, and nothing is written', async () => {
    const { upgrade, store, users, admitted } = await site()
    const answer = await upgrade()
    expect(answer.status).toBe(101)
    expect(valuesOf(answer, 'Set-Cookie')).toEqual([])
    users.set('anna', { ...anna, isStaff: true })
    expect((await upgrade()).status).toBe(101)
    expect(admitted).toEqual([anna, { ...anna, isStaff: true }])
    expect(store.asked).toEqual(['get', 'get'])
    expect(writes(store)).toEqual([])
  })

  it.each([
    { what: 'no cookie', cookie: () => '' },
    { what: 'another id', cookie: (sent: string) => sent.replace(/session=[^;]{4}/, 'session=AAAA') },
    { what: 'another seal', cookie: (sent: string) => sent.replace(/~.{4}/, '~AAAA') },
    { what: 'no seal', cookie: (sent: string) => sent.replace(/~.*/, '') },
    { what: 'a forged signature', cookie: (sent: string) => sent.replace(/~.*/, `; session.sig=${'A'.repeat(27)}`) },
    { what: 'two cookies', cookie: (sent: string) => `${sent}; session=other` },
  ])('that has $what is refused, and no cookie is deleted', async ({ cookie }) => {
    const { upgrade, visitor, store, admitted, loaded } = await site()
    const answer = await upgrade(cookie(visitor.header()))
    expect(answer.status).toBe(401)
    expect(valuesOf(answer, 'WWW-Authenticate')).toEqual(['Session realm="api"'])
    expect(valuesOf(answer, 'Set-Cookie')).toEqual([])
    expect({ admitted, writes: writes(store), loaded: loaded() }).toEqual({ admitted: [], writes: [], loaded: 0 })
  })

  it.each([
    { from: 'its own origin', lines: (port: number) => [`Origin: http://127.0.0.1:${port}`], status: 101 },
    { from: 'no browser', lines: () => [], status: 101 },
    { from: 'a trusted origin', lines: () => ['Origin: https://app.example'], status: 101 },
    { from: 'another port', lines: (port: number) => [`Origin: http://127.0.0.1:${port + 1}`], status: 403 },
    { from: 'another site', lines: () => ['Origin: https://evil.example', 'Sec-Fetch-Site: cross-site'], status: 403 },
    { from: 'a sandboxed frame', lines: () => ['Origin: null'], status: 403 },
  ])('from $from: $status', async ({ lines, status }) => {
    const { upgrade, visitor, port, admitted } = await site(sessionAuth(), { trustedOrigins: ['https://app.example'] })
    expect((await upgrade(visitor.header(), lines(port))).status).toBe(status)
    expect(admitted.length).toBe(status === 101 ? 1 : 0)
  })

  it('of a user without the rights is refused', async () => {
    const { upgrade, admitted } = await site(sessionAuthIsStaff())
    expect((await upgrade()).status).toBe(401)
    expect(admitted).toEqual([])
  })

  it('after a sign-out, here or everywhere, is refused', async () => {
    const here = await site()
    const cookie = here.visitor.header()
    await here.visitor.post('/logout')
    expect((await here.upgrade(cookie)).status).toBe(401)
    const everywhere = await site()
    await everywhere.signing.logOutEverywhere('anna')
    expect((await everywhere.upgrade()).status).toBe(401)
  })

  it('does not prolong a session that is about to end, and does not sign a cookie of an older key again', async () => {
    const keys = [strongKey]
    const clock = stoppedClock()
    const { upgrade, store, admitted, visitor } = await site(sessionAuth(), { keys, idle: 3_600_000 })
    clock.move(0.6 * 3_600_000)
    keys.unshift('another key that is long enough, for tests')
    const answer = await upgrade()
    expect({ status: answer.status, cookies: valuesOf(answer, 'Set-Cookie') }).toEqual({ status: 101, cookies: [] })
    expect(writes(store)).toEqual([])
    expect(admitted).toEqual([anna])
    // Over HTTP, both happen
    await visitor.ask('/me')
    expect(writes(store)).toEqual(['update'])
  })

  it('is a 503 if its store fails, or is too slow', async () => {
    const records: Decision[] = []
    onTestFinished(on('decision', (record) => records.push(record)))
    const { upgrade, store, admitted, visitor } = await site(sessionAuth(), { timeout: 500 })
    records.length = 0
    Object.assign(store.instead, { get: () => Promise.reject(new Error('away')) })
    expect((await upgrade()).status).toBe(503)
    Object.assign(store.instead, { get: () => new Promise(() => {}) })
    expect((await upgrade()).status).toBe(503)
    expect(admitted).toEqual([])
    await expect
      .poll(() => records.map(({ outcome, status }) => [outcome, status]))
      .toEqual([
        ['unavailable', 503],
        ['unavailable', 503],
      ])
    Object.assign(store.instead, { get: undefined })
    expect((await upgrade(visitor.header())).status).toBe(101)
  })

  it('allows no sign-in and no sign-out, and keeps nothing that a hook writes to it', async () => {
    let act: (request: Koa.Request) => unknown = () => undefined
    const auth = httpBearer({
      authenticate: async (request) => {
        await act(request)
        return { user: 'anna' }
      },
    })
    const made = await site(auth)
    const { upgrade, visitor, store, signing } = made
    const token = ['Authorization: Bearer x']
    for (const tried of [
      (request: Koa.Request) => signing.logIn({ request }, anna),
      (request: Koa.Request) => signing.logOut({ request }),
    ]) {
      act = tried
      expect((await upgrade(visitor.header(), token)).status).toBe(500)
    }
    act = ({ ctx }) => Object.assign(ctx['session'] as object, { basket: 'pear' })
    expect((await upgrade(visitor.header(), token)).status).toBe(101)
    expect(writes(store)).toEqual([])
    expect((await visitor.ask('/read')).body).not.toHaveProperty('basket')
    expect((await visitor.ask('/me')).status).toBe(200)
  })

  it('with a session of another application is refused', async () => {
    const one = await site(sessionAuth(), { name: 'one' })
    const other = await site(sessionAuth(), { name: 'other' })
    expect((await other.upgrade(one.visitor.header())).status).toBe(401)
    expect((await other.upgrade()).status).toBe(101)
  })
})

describe('a session of koa-session itself', () => {
  const kept = new Map<string, unknown>()
  const written: string[] = []
  const store = {
    get: async (id: string) => kept.get(id),
    set: async (id: string, data: unknown) => {
      written.push('set')
      kept.set(id, data)
    },
    destroy: async (id: string) => {
      written.push('destroy')
      kept.delete(id)
    },
  }

  it.each([
    { how: 'in a cookie', options: { rolling: true } },
    { how: 'in a store', options: { rolling: true, store } },
  ])('is read $how, and not written', async ({ options }) => {
    const app = new Koa({ keys: [strongKey] })
    app.use(createSession(options, app))
    app.use(at('/login', (ctx) => Object.assign(ctx['session'] as object, { user: anna })))
    const guard = guardUpgrade(app, sessionAuth())
    const server = await listenWithUpgrades(app, () => guard)
    onTestFinished(server.close)
    const visitor = visitorOf(server.port)
    await visitor.post('/login')
    written.length = 0
    const answer = await sendUpgrade(server.port, 'GET /live', [`Cookie: ${visitor.header()}`])
    expect({ status: answer.status, cookies: valuesOf(answer, 'Set-Cookie') }).toEqual({ status: 101, cookies: [] })
    expect(server.admitted).toEqual([anna])
    expect((await sendUpgrade(server.port, 'GET /live')).status).toBe(401)
    const forged = visitor.header().replace(/sig=[^;]{4}/, 'sig=AAAA')
    const refused = await sendUpgrade(server.port, 'GET /live', [`Cookie: ${forged}`])
    expect({ status: refused.status, cookies: valuesOf(refused, 'Set-Cookie') }).toEqual({ status: 401, cookies: [] })
    expect(written).toEqual([])
  })
})
