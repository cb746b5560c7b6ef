/** R02: nothing is kept if an operation throws, even if an onError handler or a middleware answers the exception. */
import Router from '@koa/router'
import type { Context, Middleware } from 'koa'
import { apiApp, authSettings, httpBearer, onError, withAuth, type ExceptionHandler } from 'koa-with-auth'
import { type Signing } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  setCookies,
  type SessionsAppOptions,
} from '../support/sites/sessionsApp.js'

class BadCode extends Error {}

const handler: ExceptionHandler = onError(BadCode, () => ({ status: 401, body: { detail: 'wrong code' } }))

interface Own {
  credit: number
  readonly save: () => Promise<void>
  readonly regenerate: () => Promise<void>
}
const credited = (ctx: Context): Own => Object.assign(ctx['session'] as unknown as Own, { credit: 100 })

const operations = <R extends Pick<Router, 'post'>>(router: R, { logIn, logOut }: Signing<typeof anna>): R => {
  const guarded: Readonly<Record<string, (ctx: Context) => unknown>> = {
    // the second factor was wrong
    '/two/login': (ctx) => logIn(ctx, anna),
    '/two/hasty': (ctx) => void logIn(ctx, anna),
    '/two/logout': logOut,
    '/two/stream': async (ctx) => {
      await logIn(ctx, anna)
      ctx.respond = false
      ctx.res.writeHead(200)
      ctx.res.end('half of it')
    },
  }
  const open: typeof guarded = {
    '/two/coupon': credited,
    // koa-session's own ways to write immediately
    '/two/saved': (ctx) => credited(ctx).save(),
    '/two/regenerated': (ctx) => credited(ctx).regenerate(),
  }
  const failing = (act: (ctx: Context) => unknown) => async (ctx: Context) => {
    await act(ctx)
    throw new BadCode()
  }
  for (const [path, act] of Object.entries(guarded)) router.post(path, withAuth(null), failing(act))
  for (const [path, act] of Object.entries(open)) router.post(path, failing(act))
  return router
}

const asMiddleware: Middleware = async (ctx, next) => {
  try {
    await next()
  } catch (error) {
    if (!(error instanceof BadCode)) throw error
    ctx.status = 401
    ctx.body = { detail: 'wrong code' }
  }
}

type Below = NonNullable<SessionsAppOptions['below']>
const settings = authSettings({ onError: [handler] })
const leveled = (signing: Signing<typeof anna>) => withAuth(null)(operations(new Router(), signing)).routes()
const below: Below = (app, signing) => void app.use(leveled(signing))
const inApi =
  (make: () => ReturnType<typeof apiApp>): Below =>
  (app, signing) => {
    const api = make().onError(BadCode, () => ({ status: 401, body: { detail: 'wrong code' } }))
    // Safe: its operations are registered as on any router
    operations(api as unknown as Router, signing)
    app.use(api.routes())
  }

// Who answers the exception
const places: Readonly<Record<string, SessionsAppOptions>> = {
  'Koa itself': { above: (app) => void (app.silent = true), below },
  'authSettings above the sessions': { above: (app) => void app.use(settings), below },
  'authSettings below the sessions': { below: (app, signing) => below(app.use(settings), signing) },
  'authSettings of a router whose sign-in alone has a guard': {
    below: (app, signing) => void app.use(operations(new Router().use(settings), signing).routes()),
  },
  'authSettings of an outer router': {
    below: (app, signing) => void app.use(new Router().use(settings).use(leveled(signing)).routes()),
  },
  'apiApp, public': { below: inApi(() => apiApp({ auth: null, docs: false })) },
  'apiApp without auth': { below: inApi(() => apiApp({ docs: false })) },
  'a middleware below the sessions': { below: (app, signing) => below(app.use(asMiddleware), signing) },
  'a middleware above the sessions': { above: (app) => void app.use(asMiddleware), below },
}

describe.each(Object.entries(places))('R02 the exception is answered by %s', (who, options) => {
  const status = who === 'Koa itself' ? 500 : 401
  const start = async () => {
    const kept = memoryStore()
    const site = await sessionsApp(() => kept, options)
    return { ...site, kept }
  }
  // What the store has for the ids that it got
  const remaining = async ({ store, kept }: { readonly store: { readonly ids: Set<string> }; readonly kept: Store }) =>
    (await kept.get([...store.ids])).filter((text) => text !== undefined)

  it.each(['/two/login', '/two/hasty', '/two/coupon', '/two/saved', '/two/regenerated'])(
    'an anonymous visitor at %s gets no cookie, and the store has no session',
    async (path) => {
      const site = await start()
      const one = site.visitor()
      const answer = await one.post(path)
      expect([answer.status, setCookies(answer), one.header()]).toEqual([status, [], ''])
      expect(await remaining(site)).toEqual([])
      await expectAnonymous(one)
    },
  )

  it.each(['/two/coupon', '/two/saved'])(
    'a user at %s gets no cookie, and the session does not change',
    async (path) => {
      const site = await start()
      const one = site.visitor()
      await one.post('/login')
      await one.post('/set?basket=pear')
      const answer = await one.post(path)
      expect([answer.status, setCookies(answer)]).toEqual([status, []])
      expect((await one.ask('/read')).body).toEqual({ auth: expect.anything() as unknown, basket: 'pear' })
      await expectSignedIn(one, anna)
    },
  )

  it('a sign-in in an existing session ends both sessions', async () => {
    const site = await start()
    const attacker = site.visitor()
    await attacker.post('/set?basket=pear')
    const victim = attacker.copy()
    const answer = await victim.post('/two/login')
    expect([answer.status, setCookies(answer)]).toEqual([status, []])
    await expectAnonymous(victim)
    await expectAnonymous(attacker)
    expect(await remaining(site)).toEqual([])
  })

  it('a sign-out stays', async () => {
    const site = await start()
    const one = site.visitor()
    await one.post('/login')
    const thief = one.copy()
    const answer = await one.post('/two/logout')
    expect([answer.status, setCookies(answer)]).toEqual([status, []])
    await expectAnonymous(thief)
  })

  it('a cookie that was sent before the exception belongs to a session that has ended', async () => {
    const site = await start()
    const one = site.visitor()
    const answer = await one.post('/two/stream')
    expect([answer.status, setCookies(answer).length]).toEqual([200, 1])
    await expectAnonymous(one)
  })
})

describe('R02 responses to exceptions', () => {
  const routed = async (path: string, guard: unknown, run: (ctx: Context, signing: Signing<typeof anna>) => unknown) =>
    sessionsApp(undefined, {
      below: (app, signing) =>
        void app.use(settings).use(new Router().post(path, guard as never, (ctx) => run(ctx, signing)).routes()),
    })

  it('have other cookies of the operation, if a handler answers', async () => {
    const { visitor } = await routed('/mixed', withAuth(null), async (ctx, { logIn }) => {
      ctx.cookies.set('theme', 'dark', { signed: false })
      await logIn(ctx, anna)
      throw new BadCode()
    })
    const answer = await visitor().post('/mixed')
    expect([answer.status, setCookies(answer)]).toEqual([401, ['theme=dark; path=/; httponly']])
  })

  it('keep nothing if an authenticator throws and a handler answers', async () => {
    const bearer = httpBearer({ authenticate: ({ ctx }) => (credited(ctx), Promise.reject(new BadCode())) })
    const { visitor } = await routed('/raised', withAuth(bearer), () => {})
    const answer = await visitor().post('/raised', { Authorization: 'Bearer x' })
    expect([answer.status, setCookies(answer)]).toEqual([401, []])
  })

  it('of a handler are sent during an outage, too, without a cookie', async () => {
    const site = await sessionsApp(undefined, { timeout: 100, ...places['authSettings below the sessions'] })
    const one = site.visitor()
    Object.assign(site.store.instead, { end: () => Promise.reject(new Error('down')) })
    const answer = await one.post('/two/login')
    expect([answer.status, answer.body, setCookies(answer)]).toEqual([401, { detail: 'wrong code' }, []])
    await expectAnonymous(one)
  })

  it('do not concern an operation that answers an error itself and throws nothing: its changes are kept', async () => {
    const { visitor } = await routed('/tries', withAuth(null), (ctx) => {
      credited(ctx)
      ctx.status = 401
    })
    const one = visitor()
    expect(setCookies(await one.post('/tries'))).toHaveLength(1)
    expect((await one.ask('/read')).body).toEqual({ credit: 100 })
  })
})

describe('R02 the exception of a sign-in is answered by a function of the operation that runs before it', () => {
  const answering = async (...given: unknown[]) => {
    const [ctx, next] = given.slice(-2) as [Context, () => Promise<unknown>]
    try {
      await next()
    } catch {
      ctx.status = 401
    }
  }
  type Routes = (router: Router, signIn: Middleware) => { readonly routes: () => unknown }
  const ways: Readonly<Record<string, Routes>> = {
    'a param hook that was there before': (router, signIn) =>
      router.param('id', answering).post('/in/:id', withAuth(null), signIn),
    'a param hook that came afterwards': (router, signIn) =>
      router.post('/in/:id', withAuth(null), signIn).param('id', answering),
    'a param hook of a router with a level, before': (router, signIn) =>
      withAuth(null)(router).param('id', answering).post('/in/:id', signIn),
    'a param hook of a router with a level, afterwards': (router, signIn) =>
      withAuth(null)(router).post('/in/:id', signIn).param('id', answering),
    'a param hook of two': (router, signIn) =>
      router
        .param('id', answering)
        .post('/in/:id', withAuth(null), signIn)
        .param('id', (_id, _ctx, next) => next()),
    'a param hook of a router in a guarded one': (router, signIn) =>
      withAuth(null)(new Router().use(router.param('id', answering).post('/in/:id', signIn).routes())),
  }
  it.each(Object.entries(ways))('%s', async (_name, routes) => {
    let calls = 0
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logIn }) => {
        const made = routes(new Router(), async (ctx) => {
          calls++
          await logIn(ctx, anna)
          throw new BadCode()
        })
        app.use(made.routes() as Middleware)
      },
    })
    const one = visitor()
    const answer = await one.post('/in/7')
    expect([answer.status, calls, setCookies(answer)]).toEqual([401, 1, []])
    await expectAnonymous(one)
  })
})
