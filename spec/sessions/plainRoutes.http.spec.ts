/** logIn and logOut work only inside of an operation that has a guard, because only there an exception takes them back. */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { authSettings, guardApp, onError, withAuth } from 'koa-with-auth'
import * as shared from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import {
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  setCookies,
  type SessionsAppOptions,
} from '../support/sites/sessionsApp.js'

const anna = { username: 'anna', isActive: true }
const proof = { method: 'totp' }

type Signs = Pick<shared.Signing<typeof anna>, 'logIn' | 'logOut' | 'addProof'>

// What is called, and how
const calls: Readonly<Record<string, (signing: Signs) => Middleware>> = {
  'logIn, awaited':
    ({ logIn }) =>
    async (ctx) => {
      await logIn(ctx, anna)
      ctx.status = 204
    },
  'logIn, not awaited':
    ({ logIn }) =>
    (ctx) => {
      void logIn(ctx, anna)
      ctx.status = 204
    },
  'logIn, then an exception':
    ({ logIn }) =>
    async (ctx) => {
      await logIn(ctx, anna)
      ctx.throw(403, 'wrong code')
    },
  'logIn, not awaited, then an exception':
    ({ logIn }) =>
    (ctx) => {
      void logIn(ctx, anna)
      ctx.throw(403, 'wrong code')
    },
  'logIn, whose rejection is swallowed':
    ({ logIn }) =>
    async (ctx) => {
      await logIn(ctx, anna).catch(() => undefined)
      ctx.status = 204
    },
  'logIn of the module': () => async (ctx) => {
    await shared.logIn(ctx, anna)
    ctx.status = 204
  },
  'logOut, awaited':
    ({ logOut }) =>
    async (ctx) => {
      await logOut(ctx)
      ctx.status = 204
    },
  'logOut, not awaited':
    ({ logOut }) =>
    (ctx) => {
      void logOut(ctx)
      ctx.status = 204
    },
  'logOut of the module, whose rejection is swallowed': () => async (ctx) => {
    await shared.logOut(ctx).catch(() => undefined)
    ctx.status = 204
  },
  addProof:
    ({ addProof }) =>
    async (ctx) => {
      await addProof(ctx, proof).catch(() => undefined)
      ctx.status = 204
    },
}

const only =
  (run: Middleware): Middleware =>
  (ctx, next) =>
    ctx.path === '/plain' ? run(ctx, next) : next()

const answering =
  (respond: (ctx: Parameters<Middleware>[0]) => void): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch {
      respond(ctx)
    }
  }

type Place = (run: Middleware) => Pick<SessionsAppOptions, 'above' | 'below'>

const places: Readonly<Record<string, Place>> = {
  'a function of the application': (run) => ({ below: (app) => app.use(only(run)) }),
  'a plain route': (run) => ({ below: (app) => app.use(new Router().post('/plain', run).routes()) }),
  'a plain route in a router in a router': (run) => ({
    below: (app) => {
      const inner = new Router().post('/plain', run)
      app.use(new Router().use(new Router().use(inner.routes()).routes()).routes())
    },
  }),
  'middleware of a router, ahead of a guard': (run) => ({
    below: (app) => {
      const router = new Router().use(run).post('/plain', withAuth(null), () => {})
      app.use(router.routes())
    },
  }),
  'a function of an operation, ahead of its guard': (run) => ({
    below: (app) => app.use(new Router().post('/plain', run, withAuth(null), () => {}).routes()),
  }),
  'middleware that a guarded operation came back to': (run) => ({
    below: (app) => {
      const after: Middleware = async (ctx, next) => {
        await next()
        await run(ctx, next)
      }
      app.use(only(after)).use(
        new Router()
          .post('/plain', withAuth(null), (ctx) => {
            ctx.status = 204
          })
          .routes(),
      )
    },
  }),
  'an authenticator': (run) => ({
    below: (app) => {
      const asks = withAuth(async ({ ctx }) => {
        await run(ctx, () => Promise.resolve())
        return { name: 'machine' }
      })
      app.use(
        new Router()
          .post('/plain', asks, (ctx) => {
            ctx.status = 204
          })
          .routes(),
      )
    },
  }),
  'a plain route below guardApp': (run) => ({
    below: (app) => {
      guardApp(async (request) => request.path !== '/plain' || { name: 'machine' }, {
        middleware: app.middleware,
      })(app).use(new Router().post('/plain', run).routes())
    },
  }),
  'a plain route whose exceptions are a 403': (run) => ({
    below: (app) => app.use(answering((ctx) => (ctx.status = 403))).use(new Router().post('/plain', run).routes()),
  }),
  'a plain route whose exceptions are a 200': (run) => ({
    below: (app) =>
      app.use(answering((ctx) => (ctx.body = { errors: ['no'] }))).use(new Router().post('/plain', run).routes()),
  }),
  'a plain route whose exceptions are a redirect, in its router': (run) => ({
    below: (app) => {
      const router = new Router().use(answering((ctx) => ctx.redirect('/login'))).post('/plain', run)
      app.use(router.routes())
    },
  }),
  'a plain route below authSettings with onError': (run) => ({
    below: (app) =>
      app
        .use(authSettings({ onError: [onError(Error, () => ({ status: 401, body: 'no' }))] }))
        .use(new Router().post('/plain', run).routes()),
  }),
}

describe.each(Object.entries(places))('in %s', (_place, mount) => {
  it.each(Object.entries(calls))('%s is a 500 that names the fix, and changes nothing', async (_call, call) => {
    const errors: unknown[] = []
    const site = await sessionsApp(undefined, {
      above: (app) => void app.on('error', (error) => errors.push(error)),
      below: (app, signing) => mount(call(signing)).below?.(app, signing),
    })
    const stranger = site.visitor()
    const answer = await stranger.post('/plain')
    expect([answer.status, setCookies(answer)]).toEqual([500, []])
    expect(errors.map(String)).toEqual([expect.stringContaining('withAuth(null)') as unknown])
    await expectAnonymous(stranger)

    const user = site.visitor()
    await user.post('/login')
    const again = await user.post('/plain')
    expect([again.status, setCookies(again)]).toEqual([500, []])
    await expectSignedIn(user, anna)
  })
})

describe('inside of a guarded operation they work', () => {
  const inside: Readonly<Record<string, (run: Middleware) => Router>> = {
    public: (run) => new Router().post('/plain', withAuth(null), run),
    'behind another function': (run) => new Router().post('/plain', withAuth(null), (_ctx, next) => next(), run),
    'of a public router': (run) => withAuth(null)(new Router()).post('/plain', run),
    'in a router in a router': (run) =>
      new Router().use(new Router().use(withAuth(null)(new Router().post('/plain', run)).routes()).routes()),
    'that calls another router': (run) =>
      // Safe: the routes of a router are middleware
      new Router().post('/plain', withAuth(null), new Router().post('/plain', run).routes() as Middleware),
    'whose guard another one follows': (run) =>
      new Router().post('/plain', withAuth(null), (_ctx, next) => next()).post('/:any', withAuth(null), run),
    'in then': (run) =>
      new Router().post(
        '/plain',
        withAuth(() => ({ name: 'machine' }), { then: [run] }),
        () => {},
      ),
  }
  it.each(Object.entries(inside))('%s', async (_name, routerOf) => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logIn }) =>
        app.use(
          routerOf(async (ctx) => {
            await logIn(ctx, anna)
            ctx.status = 204
          }).routes(),
        ),
    })
    const one = visitor()
    expect((await one.post('/plain')).status).toBe(204)
    await expectSignedIn(one, anna)
  })

  it('of an application that guardApp guards', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logIn }) =>
        guardApp(() => ({ name: 'machine' }), { middleware: app.middleware })(app).use(
          new Router()
            .post('/plain', withAuth(null), async (ctx) => {
              await logIn(ctx, anna)
              ctx.status = 204
            })
            .routes(),
        ),
    })
    const one = visitor()
    expect((await one.post('/plain')).status).toBe(204)
    await expectSignedIn(one, anna)
  })
})

describe('a sign-in is taken back', () => {
  const fail: Middleware = (ctx) => ctx.throw(403, 'wrong code')
  it('if middleware in then throws, and other middleware in then answers', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logIn }) =>
        app.use(
          new Router()
            .post(
              '/plain',
              withAuth(() => ({ name: 'machine' }), {
                then: [
                  answering((ctx) => (ctx.status = 403)),
                  async (ctx, next) => {
                    await logIn(ctx, anna)
                    return next()
                  },
                ],
              }),
              fail,
            )
            .routes(),
        ),
    })
    const one = visitor()
    const answer = await one.post('/plain')
    expect([answer.status, setCookies(answer)]).toEqual([403, []])
    await expectAnonymous(one)
  })
})

describe('a plain route', () => {
  it('keeps what it writes into the session, also if it answers 401', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app) =>
        app.use(
          new Router()
            .post('/plain', (ctx) => {
              Object.assign(ctx['session'] as object, { tries: 1 })
              ctx.status = 401
            })
            .routes(),
        ),
    })
    const one = visitor()
    expect(setCookies(await one.post('/plain'))).toHaveLength(2)
    expect((await one.ask('/read')).body).toEqual({ tries: 1 })
  })

  it('refuses nothing if it signs no user in or out', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { proofsOf }) =>
        app.use(
          new Router()
            .post('/plain', (ctx) => {
              ctx.body = proofsOf(ctx)
            })
            .routes(),
        ),
    })
    const one = visitor()
    expect((await one.post('/plain')).body).toEqual([])
  })
})
