/**
 * Two copies of the package in one process work as one, whichever of them sessions, kinds, `logIn` and listeners come
 * from.
 */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { describe, expect, it, vi } from 'vitest'
import { challenge, expectDenied, expectPassed, running } from '../support/models/behavior.js'
import { strongKey, visitorOf } from '../support/sites/sessionsApp.js'

const copy = async () => {
  vi.resetModules()
  const [root, sessions, events] = await Promise.all([
    import('koa-with-auth'),
    import('koa-with-auth/sessions'),
    import('koa-with-auth/events'),
  ])
  return { ...root, ...sessions, ...events }
}

interface User {
  readonly username: string
  readonly role: string
}
const anna: User = { username: 'anna', role: 'editor' }
const options = {
  name: 'shop',
  loadUser: () => anna,
  isStaff: ({ role }: User) => role === 'editor',
  isSuperuser: () => false,
}

describe('two copies of the package', () => {
  it('R02 a sign-in is undone where a function between answers; no copy takes the observers of another for handlers', async () => {
    const [one, other] = [await copy(), await copy()]
    const { operationsOf } = await import('../../src/koa/operations.js')
    const catching: Middleware = async (ctx, next) => {
      await next().catch(() => undefined)
      ctx.status = 403
    }
    const api = await running((app) => {
      app.keys = [strongKey]
      const { logIn } = one.sessions(app, options)
      const signs: Middleware = async (ctx) => {
        await logIn(ctx, anna)
        ctx.throw(403)
      }
      // each copy reads and writes what the other has written
      const plain = new Router().post('/a', other.withAuth(null), catching, signs)
      const levels = other.withAuth(null)(one.withAuth(null)(new Router().post('/b', catching, signs)))
      const router = one.withAuth(null)(new Router().use(plain.routes()).use(levels.routes()))
      for (const each of [plain, levels, router]) {
        for (const { functions } of operationsOf(each)) {
          expect(functions.slice(1).map(({ name }) => name)).toEqual(['catching', 'signs'])
        }
      }
      app.use(plain.routes()).use(router.routes())
    })
    for (const path of ['/a', '/b']) {
      const answer = await api.ask(path, { method: 'POST' })
      expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
    }
  })

  it('one has the sessions, the other guards, signs in and out, and listens', async () => {
    const [one, other] = [await copy(), await copy()]
    expect(one.sessions).not.toBe(other.sessions)
    const records: unknown[] = []
    const ends = [
      other.on('signed-in', (record) => records.push(record)),
      other.on('signed-out', (record) => records.push(record)),
    ]
    const emitted = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
    try {
      const api = await running((app, answering) => {
        app.keys = [strongKey, 'short']
        const typed = one.sessions(app, options)
        const router = new Router()
        router.get('/own', one.withAuth(typed.sessionAuth()), answering)
        router.get('/typed', other.withAuth(typed.sessionAuthIsStaff()), answering)
        router.get('/root', other.withAuth(other.sessionAuthIsStaff()), answering)
        router.get('/super', other.withAuth(other.sessionAuthSuperUser({ refuse: 'insufficient' })), answering)
        router.get('/digests', other.withAuth(null), (ctx) => {
          ctx.body = other.sessionDigest(ctx) ?? {}
        })
        router.post('/in', other.withAuth(null), async (ctx) => {
          await other.logIn(ctx, anna)
          ctx.status = 204
        })
        router.post('/out', other.withAuth(null), async (ctx) => {
          await other.logOut(ctx)
          ctx.status = 204
        })
        app.use(router.routes())
      })
      for (const path of ['/own', '/typed', '/root', '/super'])
        expectDenied(await api.ask(path), 401, [challenge.session])
      const visitor = visitorOf(api.port)
      expect((await visitor.post('/in')).status).toBe(204)
      const headers = { Cookie: visitor.header() }
      for (const path of ['/own', '/typed', '/root']) expectPassed(await api.ask(path, { headers }), anna)
      expectDenied(await api.ask('/super', { headers }), 403, [challenge.session])
      const digests = (await api.ask('/digests', { headers })).body
      expect((await visitor.post('/out')).status).toBe(204)
      for (const path of ['/own', '/typed', '/root'])
        expectDenied(await api.ask(path, { headers }), 401, [challenge.session])
      expect(records).toStrictEqual([
        { application: 'shop', ...(digests as object) },
        { application: 'shop', reason: 'logOut', ...(digests as object) },
      ])
      expect(emitted).toHaveBeenCalledTimes(1)
    } finally {
      emitted.mockRestore()
      for (const end of ends) end()
    }
  })

  it('a sign-in from another site is refused by logIn of both', async () => {
    const [one, other] = [await copy(), await copy()]
    const api = await running((app, answering) => {
      app.keys = [strongKey]
      one.sessions(app, options)
      app.use(
        new Router()
          .post('/in', other.withAuth(null), async (ctx) => {
            await other.logIn(ctx, anna)
            answering(ctx)
          })
          .routes(),
      )
    })
    const answer = await api.ask('/in', { method: 'POST', headers: { 'Sec-Fetch-Site': 'cross-site' } })
    expect([answer.status, answer.seen, answer.headers['set-cookie']]).toStrictEqual([403, [], undefined])
  })
})
