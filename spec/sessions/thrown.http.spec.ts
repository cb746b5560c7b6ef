/** R02: nothing is kept if an operation throws, even if an onError handler or a middleware answers the exception. */
import Router from '@koa/router'
import type { Context, Middleware } from 'koa'
import type Koa from 'koa'
import { apiApp, authSettings, httpBearer, onError, sessionAuth, withAuth, type ExceptionHandler } from 'koa-with-auth'
import { type Signing } from 'koa-with-auth/sessions'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import {
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  setCookies,
  type SessionsAppOptions,
} from '../support/sites/sessionsApp.js'

class BadCode extends Error {}

const anna = { username: 'anna', isActive: true }
const handler: ExceptionHandler = onError(BadCode, () => ({ status: 401, body: { detail: 'wrong code' } }))

const operations = <R extends Pick<Router, 'get' | 'post'>>(router: R, { logIn, logOut }: Signing<typeof anna>): R => {
  const fail = () => {
    throw new BadCode()
  }
  // the second factor was wrong
  router.post('/two/login', withAuth(null), async (ctx) => {
    await logIn(ctx, anna)
    fail()
  })
  router.post('/two/hasty', withAuth(null), (ctx) => {
    void logIn(ctx, anna)
    fail()
  })
  router.post('/two/coupon', (ctx) => {
    Object.assign(ctx['session'] as object, { credit: 100 })
    fail()
  })
  // koa-session's own ways to write immediately
  router.post('/two/saved', async (ctx) => {
    const session = ctx['session'] as unknown as { credit: number; save: () => Promise<void> }
    session.credit = 100
    await session.save()
    fail()
  })
  router.post('/two/regenerated', async (ctx) => {
    const session = ctx['session'] as unknown as { credit: number; regenerate: () => Promise<void> }
    session.credit = 100
    await session.regenerate()
    fail()
  })
  router.post('/two/logout', withAuth(null), async (ctx) => {
    await logOut(ctx)
    fail()
  })
  router.post('/two/stream', withAuth(null), async (ctx) => {
    await logIn(ctx, anna)
    ctx.respond = false
    ctx.res.writeHead(200)
    ctx.res.write('half of it')
    ctx.res.end()
    fail()
  })
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

// Who answers the exception
const places: Readonly<Record<string, SessionsAppOptions>> = {
  'Koa itself': {
    below: (app, signing) => {
      app.silent = true
      app.use(withAuth(null)(operations(new Router(), signing)).routes())
    },
  },
  'authSettings above the sessions': {
    above: (app) => void app.use(authSettings({ onError: [handler] })),
    below: (app, signing) => void app.use(withAuth(null)(operations(new Router(), signing)).routes()),
  },
  'authSettings below the sessions': {
    below: (app, signing) =>
      void app
        .use(authSettings({ onError: [handler] }))
        .use(withAuth(null)(operations(new Router(), signing)).routes()),
  },
  'authSettings of a router whose sign-in alone has a guard': {
    below: (app, signing) => {
      const router = new Router()
      router.use(authSettings({ onError: [handler] }))
      app.use(operations(router, signing).routes())
    },
  },
  'authSettings of an outer router': {
    below: (app, signing) => {
      const outer = new Router()
      outer.use(authSettings({ onError: [handler] }))
      outer.use(withAuth(null)(operations(new Router(), signing)).routes())
      app.use(outer.routes())
    },
  },
  'apiApp, public': {
    below: (app, signing) => {
      const api = apiApp({ auth: null, docs: false })
      api.onError(BadCode, () => ({ status: 401, body: { detail: 'wrong code' } }))
      // Safe: its operations are registered as on any router
      operations(api as unknown as Router, signing)
      app.use(api.routes())
    },
  },
  'apiApp without auth': {
    below: (app, signing) => {
      const api = apiApp({ docs: false, onError: [handler] })
      // Safe: its operations are registered as on any router
      operations(api as unknown as Router, signing)
      app.use(api.routes())
    },
  },
  'a middleware below the sessions': {
    below: (app, signing) => void app.use(asMiddleware).use(withAuth(null)(operations(new Router(), signing)).routes()),
  },
  'a middleware above the sessions': {
    above: (app) => void app.use(asMiddleware),
    below: (app, signing) => void app.use(withAuth(null)(operations(new Router(), signing)).routes()),
  },
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
  it('have other cookies of the operation, if a handler answers', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logIn }) =>
        void app.use(authSettings({ onError: [handler] })).use(
          new Router()
            .post('/mixed', withAuth(null), async (ctx) => {
              ctx.cookies.set('theme', 'dark', { signed: false })
              await logIn(ctx, anna)
              throw new BadCode()
            })
            .routes(),
        ),
    })
    const answer = await visitor().post('/mixed')
    expect([answer.status, setCookies(answer)]).toEqual([401, ['theme=dark; path=/; httponly']])
  })

  it('keep nothing if an authenticator throws and a handler answers', async () => {
    const bearer = httpBearer({
      authenticate: () => {
        throw new BadCode()
      },
    })
    const { visitor } = await sessionsApp(undefined, {
      below: (app: Koa) =>
        void app
          .use(async (ctx: Context, next) => {
            if (ctx.path === '/raised') Object.assign(ctx['session'] as object, { seen: 1 })
            await next()
          })
          .use(authSettings({ onError: [handler] }))
          .use(new Router().post('/raised', withAuth(bearer), () => {}).routes()),
    })
    const one = visitor()
    const answer = await one.ask('/raised', { method: 'POST', headers: { Authorization: 'Bearer x' } })
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
    const { visitor } = await sessionsApp(undefined, {
      below: (app) =>
        void app.use(
          new Router()
            .post('/tries', withAuth(null), (ctx) => {
              Object.assign(ctx['session'] as object, { tries: 1 })
              ctx.status = 401
              ctx.body = 'once more'
            })
            .get('/guarded', withAuth(sessionAuth()), () => {})
            .routes(),
        ),
    })
    const one = visitor()
    expect(setCookies(await one.post('/tries'))).toHaveLength(1)
    expect((await one.ask('/read')).body).toEqual({ tries: 1 })
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
