/** R02: logIn and logOut work only inside of an operation that has a guard, because only there an exception takes them back. */
import Router from '@koa/router'
import type Koa from 'koa'
import type { Context, Middleware } from 'koa'
import { apiApp, guardApp, operation, withAuth } from 'koa-with-auth'
import * as shared from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { anna, expectAnonymous, expectSignedIn, sessionsApp, setCookies } from '../support/sites/sessionsApp.js'

const proof = { method: 'totp' }

type Signs = Pick<shared.Signing<typeof anna>, 'logIn' | 'logOut' | 'addProof'>

type Act = (ctx: Context) => Promise<void>

const done =
  (act: Act): Middleware =>
  async (ctx) => {
    await act(ctx)
    ctx.status = 204
  }
const hasty = (act: Act): Middleware => done(async (ctx) => void act(ctx))
const failing =
  (act: Act): Middleware =>
  async (ctx) => {
    await act(ctx)
    ctx.throw(403, 'wrong code')
  }
const swallowed = (act: Act): Middleware => done((ctx) => act(ctx).catch(() => undefined))

// What is called, and how
const calls: Readonly<Record<string, (signing: Signs) => Middleware>> = {
  'logIn, awaited': ({ logIn }) => done((ctx) => logIn(ctx, anna)),
  'logIn, not awaited': ({ logIn }) => hasty((ctx) => logIn(ctx, anna)),
  'logIn, then an exception': ({ logIn }) => failing((ctx) => logIn(ctx, anna)),
  'logIn, not awaited, then an exception': ({ logIn }) => failing(async (ctx) => void logIn(ctx, anna)),
  'logIn, whose rejection is swallowed': ({ logIn }) => swallowed((ctx) => logIn(ctx, anna)),
  'logIn of the module': () => done((ctx) => shared.logIn(ctx, anna)),
  'logOut, awaited': ({ logOut }) => done(logOut),
  'logOut, not awaited': ({ logOut }) => hasty(logOut),
  'logOut of the module, whose rejection is swallowed': () => swallowed(shared.logOut),
  addProof: ({ addProof }) => swallowed((ctx) => addProof(ctx, proof)),
}

// Safe: the router calls it as middleware
const asMiddleware = (f: unknown) => f as Middleware
const open = asMiddleware(withAuth(null))
const machine = () => ({ name: 'machine' })
const goOn: Middleware = (_ctx, next) => next()
const nothing: Middleware = (ctx) => void (ctx.status = 204)
const routed = (...functions: Middleware[]): Middleware =>
  asMiddleware(new Router().post('/plain', ...functions).routes())
const inRouter = (inner: Middleware): Middleware => asMiddleware(new Router().use(inner).routes())

const only =
  (run: Middleware): Middleware =>
  (ctx, next) =>
    ctx.path === '/plain' ? run(ctx, next) : next()

const answering =
  (respond: (ctx: Context) => void): Middleware =>
  async (ctx, next) => {
    try {
      await next()
    } catch {
      respond(ctx)
    }
  }

const places: Readonly<Record<string, (run: Middleware) => (app: Koa) => unknown>> = {
  'a function of the application': (run) => (app) => app.use(only(run)),
  'a plain route': (run) => (app) => app.use(routed(run)),
  'a plain route in a router in a router': (run) => (app) => app.use(inRouter(inRouter(routed(run)))),
  'middleware of a router, ahead of a guard': (run) => (app) =>
    app.use(new Router().use(run).post('/plain', open, nothing).routes()),
  'a function of an operation, ahead of its guard': (run) => (app) => app.use(routed(run, open, nothing)),
  'middleware that a guarded operation came back to': (run) => (app) =>
    app.use(only((ctx, next) => next().then(() => run(ctx, next)))).use(routed(open, nothing)),
  'an authenticator': (run) => (app) => {
    const asks = withAuth(async ({ ctx }) => (await run(ctx, () => Promise.resolve()), machine()))
    app.use(routed(asMiddleware(asks), nothing))
  },
  'a plain route below guardApp': (run) => (app) =>
    guardApp(async (request) => request.path !== '/plain' || machine(), { middleware: app.middleware })(app).use(
      new Router().post('/plain', run).routes(),
    ),
  'a plain route whose exceptions are a 200': (run) => (app) =>
    app.use(answering((ctx) => (ctx.body = { errors: ['no'] }))).use(routed(run)),
}

describe.each(Object.entries(places))('in %s', (_place, mount) => {
  it.each(Object.entries(calls))('%s is a 500 that names the fix, and changes nothing', async (_call, call) => {
    const errors: unknown[] = []
    const site = await sessionsApp(undefined, {
      above: (app) => void app.on('error', (error) => errors.push(error)),
      below: (app, signing) => mount(call(signing))(app),
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
  const inside: Readonly<Record<string, (run: Middleware) => (app: Koa) => unknown>> = {
    'that calls another router': (run) => (app) => app.use(routed(open, routed(run))),
    'whose guard another one follows': (run) => (app) =>
      app.use(new Router().post('/plain', open, goOn).post('/:any', open, run).routes()),
    'of an application that guardApp guards': (run) => (app) =>
      guardApp(machine, { middleware: app.middleware })(app).use(new Router().post('/plain', open, run).routes()),
  }
  it.each(Object.entries(inside))('%s', async (_name, mount) => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, signing) => mount(calls['logIn, awaited']!(signing))(app),
    })
    const one = visitor()
    expect((await one.post('/plain')).status).toBe(204)
    await expectSignedIn(one, anna)
  })
})

it('a sign-in is taken back if middleware in then throws, and other middleware in then answers', async () => {
  const { visitor } = await sessionsApp(undefined, {
    below: (app, { logIn }) => {
      const then = [
        answering((ctx) => (ctx.status = 403)),
        (ctx: Context, next: () => Promise<unknown>) => logIn(ctx, anna).then(next),
      ]
      app.use(routed(asMiddleware(withAuth(machine, { then })), (ctx) => ctx.throw(403, 'wrong code')))
    },
  })
  const one = visitor()
  const answer = await one.post('/plain')
  expect([answer.status, setCookies(answer)]).toEqual([403, []])
  await expectAnonymous(one)
})

/*
 * A function behind the guard answers the exception of one that comes after it, so the guard sees none.
 */

const answers: ReadonlyArray<[string, (ctx: Context) => void]> = [
  ['a 403', (ctx) => (ctx.status = 403)],
  ['a 200', (ctx) => (ctx.body = { errors: ['no'] })],
  ['a redirect', (ctx) => ctx.redirect('/login')],
]
const routers: Readonly<Record<string, (...functions: Middleware[]) => Router>> = {
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
      const signing: Parameters<typeof mount>[0] = ({ logIn }) => [
        catching,
        (ctx, next) => logIn(ctx, anna).then(next),
        (ctx) => ctx.throw(403, 'wrong code'),
      ]
      const stranger = (await mount(signing)).visitor()
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

it('a plain route refuses nothing if it signs no user in or out', async () => {
  const { visitor } = await sessionsApp(undefined, {
    below: (app, { proofsOf }) => app.use(routed((ctx) => (ctx.body = proofsOf(ctx)))),
  })
  expect((await visitor().post('/plain')).body).toEqual([])
})
