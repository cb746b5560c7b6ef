/** R02: logIn and logOut work only inside of an operation that has a guard, because only there an exception takes them back. */
import Router from '@koa/router'
import type { Middleware } from 'koa'
import { apiApp, guardApp, operation, withAuth } from 'koa-with-auth'
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
  'a plain route whose exceptions are a 200': (run) => ({
    below: (app) =>
      app.use(answering((ctx) => (ctx.body = { errors: ['no'] }))).use(new Router().post('/plain', run).routes()),
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
    'that calls another router': (run) =>
      // Safe: the routes of a router are middleware
      new Router().post('/plain', withAuth(null), new Router().post('/plain', run).routes() as Middleware),
    'whose guard another one follows': (run) =>
      new Router().post('/plain', withAuth(null), (_ctx, next) => next()).post('/:any', withAuth(null), run),
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

/*
 * A function behind the guard answers the exception of one that comes after it, so the guard sees none.
 */

const answers: ReadonlyArray<[string, (ctx: Parameters<Middleware>[0]) => void]> = [
  ['a 403', (ctx) => (ctx.status = 403)],
  ['a 200', (ctx) => (ctx.body = { errors: ['no'] })],
  ['a redirect', (ctx) => ctx.redirect('/login')],
]
const goOn: Middleware = (_ctx, next) => next()
type Routes = (...functions: Middleware[]) => Router
// Safe: the router calls it as middleware
const asMiddleware = (f: unknown) => f as Middleware
const machine = () => ({ name: 'machine' })

const routers: Readonly<Record<string, Routes>> = {
  'an operation of a plain router': (...f) => new Router().post('/plain', withAuth(null), ...f),
  'an operation that a guard decides': (...f) => new Router().post('/plain', asMiddleware(withAuth(machine)), ...f),
  'an operation with `then`': (...f) =>
    new Router().post('/plain', asMiddleware(withAuth(machine, { then: [goOn as never] })), ...f),
  'an operation with a description': (...f) =>
    new Router().post('/plain', withAuth(null), asMiddleware(operation({ summary: 's' })), ...f),
  'router.all': (...f) => new Router().all('/plain', withAuth(null), ...f),
  'several paths': (...f) => new Router().post(['/other', '/plain'], withAuth(null), ...f),
  'a router that a level opens': (...f) => withAuth(null)(new Router()).post('/plain', ...f),
  'a router that a level opens later': (...f) => withAuth(null)(new Router().post('/plain', ...f)),
  'a router in a level, in a router': (...f) =>
    withAuth(null)(new Router()).use(new Router().use(new Router().post('/plain', ...f).routes()).routes()),
  'a router in a router': (...f) => new Router().use(new Router().post('/plain', withAuth(null), ...f).routes()),
  'a router with param hooks': (...f) =>
    withAuth(null)(new Router())
      .param('id', (_id, _ctx, next) => next())
      .post('/:id', ...f)
      .param('id', (_id, _ctx, next) => next()),
  apiApp: (...f) => apiApp({ auth: null, docs: false }).post('/plain', ...(f as never[])),
}

describe.each(Object.entries(routers))('behind the guard of %s', (_name, routes) => {
  const mount = async (functions: (signing: Signs) => Middleware[]) =>
    sessionsApp(undefined, { below: (app, signing) => app.use(routes(...functions(signing)).routes()) })

  describe.each(answers)('a function that answers an exception with %s', (_answer, respond) => {
    const catching = answering(respond)
    it.each<[string, (signs: Middleware) => Middleware[]]>([
      ['the handler', (signs) => [catching, signs]],
      ['the handler, with one between', (signs) => [catching, goOn, signs]],
      ['one before the handler', (signs) => [goOn, catching, signs, goOn]],
      ['an inner one of two', (signs) => [catching, answering((ctx) => ctx.throw(500)), signs]],
    ])('a sign-in of %s is taken back', async (_who, functions) => {
      for (const call of ['logIn, then an exception', 'logIn, not awaited, then an exception']) {
        const site = await mount((signing) => functions(calls[call]!(signing)))
        const stranger = site.visitor()
        const answer = await stranger.post('/plain')
        expect([answer.status === 500, setCookies(answer)]).toEqual([false, []])
        await expectAnonymous(stranger)
      }
    })

    it('a sign-in is taken back if a later function throws', async () => {
      const site = await mount(({ logIn }) => [
        catching,
        async (ctx, next) => {
          await logIn(ctx, anna)
          return next()
        },
        (ctx) => ctx.throw(403, 'wrong code'),
      ])
      const stranger = site.visitor()
      expect(setCookies(await stranger.post('/plain'))).toEqual([])
      await expectAnonymous(stranger)
    })

    it('keeps what it writes into the session, if no user was signing in', async () => {
      const site = await mount(() => [
        async (ctx, next) => {
          await catching(ctx, next)
          Object.assign(ctx['session'] as object, { tries: 1 })
        },
        (ctx) => ctx.throw(400),
      ])
      const one = site.visitor()
      await one.post('/plain')
      expect((await one.ask('/read')).body).toEqual({ tries: 1 })
    })

    it('may sign a user in after the exception', async () => {
      const site = await mount(({ logIn }) => [
        async (ctx, next) => {
          await catching(ctx, next)
          await logIn(ctx, anna)
        },
        (ctx) => ctx.throw(400),
      ])
      const one = site.visitor()
      await one.post('/plain')
      await expectSignedIn(one, anna)
    })
  })

  it('a sign-in stays if no function throws', async () => {
    const site = await mount((signing) => [answering(() => undefined), goOn, calls['logIn, awaited']!(signing)])
    const one = site.visitor()
    expect((await one.post('/plain')).status).toBe(204)
    await expectSignedIn(one, anna)
  })
})

describe('a plain route', () => {
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
