/** The setting `state` puts the principal where handlers written for koa-jwt or koa-passport read it. */
import Router from '@koa/router'
import type { Context, Next } from 'koa'
import { authSettings, httpBearer, optional, withAuth, type AuthSettings } from 'koa-with-auth'
import { describe, expect, test } from 'vitest'
import { bearer, expectDenied, challenge, running } from '../../support/models/behavior.js'

const user = httpBearer({ authenticate: (_request, token) => /^(?:anna|ben)$/.test(token) && { name: token } })
const slow = httpBearer({ authenticate: async (_request, token) => token === 'anna' && { name: token } })

const stateOf = (ctx: Pick<Context, 'state'>): unknown => ({ ...ctx.state })

/** A router whose handlers record `ctx.state`, below the setting; `above` runs outside of the guards. */
type Note = (ctx: Pick<Context, 'state'>) => void
const noting = async (fill: (router: Router, note: Note) => void, settings: AuthSettings = { state: 'user' }) => {
  const noted: unknown[] = []
  const after: unknown[] = []
  const served = await running((app) => {
    app.use(authSettings(settings))
    app.use((ctx: Context, next: Next) => next().then(() => after.push(stateOf(ctx))))
    const router = new Router()
    fill(router, (ctx) => {
      noted.push(stateOf(ctx))
      Object.assign(ctx, { body: 'ok' })
    })
    app.use(router.routes())
  })
  return { ...served, noted, after }
}

describe('authSettings({ state })', () => {
  test.each([
    ['a sync hook', withAuth(user)],
    ['an async hook', withAuth(slow)],
  ])('sets the principal of %s, as in request.auth', async (_what, guard) => {
    const { ask, noted } = await noting((router, note) => {
      router.get('/x', guard, (ctx) => {
        expect(ctx.state['user']).toBe(ctx.request.auth)
        note(ctx)
      })
    })
    expect((await ask('/x', bearer('anna'))).status).toBe(200)
    expect(noted).toStrictEqual([{ user: { name: 'anna' } }])
  })

  test('sets it under the given name', async () => {
    const { ask, noted } = await noting((router, note) => router.get('/x', withAuth(user), note), { state: 'account' })
    await ask('/x', bearer('anna'))
    expect(noted).toStrictEqual([{ account: { name: 'anna' } }])
  })

  test('sets nothing for a public operation, an anonymous caller or a refused request', async () => {
    const { ask, noted, after } = await noting((router, note) => {
      router.get('/public', withAuth(null), note)
      router.get('/plain', note)
      router.get('/optional', withAuth(optional(user)), note)
      router.get('/x', withAuth(user), note)
    })
    for (const path of ['/public', '/plain']) expect((await ask(path, bearer('anna'))).status).toBe(200)
    expect((await ask('/optional')).status).toBe(200)
    expectDenied(await ask('/x', bearer('other')), 401, [challenge.refusedBearer])
    expect(noted).toStrictEqual([{}, {}, {}])
    expect(after).toStrictEqual([{}, {}, {}, {}])
  })

  test('keeps in a public operation what others have set', async () => {
    const { ask, noted } = await noting((router, note) => {
      router.use((ctx, next) => ((ctx.state['user'] = 'a guest'), next()))
      router.get('/public', withAuth(null), note)
    })
    await ask('/public')
    expect(noted).toStrictEqual([{ user: 'a guest' }])
  })

  test('each of two operations for one request finds its own principal, and the first finds it again', async () => {
    const { ask, noted } = await noting((router, note) => {
      const around = async (ctx: Pick<Context, 'state'>, next: Next) => {
        note(ctx)
        await next()
        note(ctx)
      }
      router.get('/:a', withAuth(user), around)
      router.get('/:b', withAuth(null), around)
      router.get('/x', withAuth(httpBearer({ authenticate: () => ({ name: 'inner' }) })), note)
      router.get('/y', withAuth(httpBearer({ authenticate: () => false })), note)
    })
    const [outer, inner] = [{ user: { name: 'anna' } }, { user: { name: 'inner' } }]
    expect((await ask('/x', bearer('anna'))).status).toBe(200)
    expect(noted.splice(0)).toStrictEqual([outer, {}, inner, {}, outer])
    await ask('/y', bearer('anna'))
    expect(noted).toStrictEqual([outer, {}, {}, outer])
  })

  test('without it, no operation has anything there, also in another operation', async () => {
    const { ask, noted, after } = await noting((router, note) => {
      router.get('/:a', withAuth(user), (_ctx, next) => next())
      router.get('/x', withAuth(user), note)
    }, {})
    expect((await ask('/x', bearer('anna'))).status).toBe(200)
    expect([noted, after]).toStrictEqual([[{}], [{}]])
  })

  test.each([1, '', 'a b', '__proto__', 'constructor', 'toString', null])('%j is a TypeError', (state) => {
    const message = "authSettings({ state }) must be the name of a property of ctx.state, such as 'user'"
    expect(() => authSettings({ state: state as string })).toThrow(new TypeError(message))
  })
})
