/** D-S8, D-S9, D-S11, D-S12, D-S14: the cookie of a session, its signature, and what does not count as this cookie. */
import Router from '@koa/router'
import Keygrip from 'keygrip'
import Koa from 'koa'
import koaSession from 'koa-session'
import { sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { challenge, expectCrashed, expectDenied, expectPassed, running } from '../support/models/behavior.js'
import {
  at,
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  setCookies,
  strongKey,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'
import { stoppedClock } from '../support/runs/clock.js'

const anna = { username: 'anna', isActive: true }
const otherKey = 'another signing key that is long enough'
const DAY = 86_400_000

describe('D-S12 the cookie', () => {
  it('is HttpOnly, SameSite=Lax and Path=/ over http, lasts as long as the idle time, and so does its signature', async () => {
    const { visitor } = await sessionsApp()
    stoppedClock()
    const lines = setCookies(await visitor().post('/login'))
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(
      /^session=[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{6}; path=\/; expires=[^;]+; samesite=lax; httponly$/,
    )
    expect(lines[1]).toMatch(/^session\.sig=[A-Za-z0-9_-]{27}; path=\/; expires=[^;]+; samesite=lax; httponly$/)
    for (const line of lines) {
      const expires = Date.parse(/expires=([^;]+)/.exec(line)?.[1] ?? '')
      // whole seconds
      expect(Math.abs(expires - Date.now() - DAY)).toBeLessThanOrEqual(1000)
    }
  })

  it('has SameSite=Strict and another name if the options say so', async () => {
    const { visitor } = await sessionsApp(undefined, { sameSite: 'strict', cookieName: 'sid' })
    const one = visitor()
    const lines = setCookies(await one.post('/login'))
    expect(lines.map((line) => /^(sid|sid\.sig)=.*; samesite=strict; httponly$/.exec(line)?.[1])).toEqual([
      'sid',
      'sid.sig',
    ])
    await expectSignedIn(one, anna)
  })

  it('is deleted at sign-out, with its signature', async () => {
    const { visitor } = await sessionsApp()
    const one = visitor()
    await one.post('/login')
    for (const line of setCookies(await one.post('/logout'))) {
      expect(line).toMatch(/^session(?:=|\.sig=[^;]*).*expires=Thu, 01 Jan 1970 00:00:00 GMT/)
    }
    expect(one.cookies.has('session')).toBe(false)
  })

  it('is another one if the page after a sign-out has something to say', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logOut }) => {
        const router = new Router()
        router.post('/bye', withAuth(null), async (ctx) => {
          await logOut(ctx)
          Object.assign(ctx['session'] as object, { flash: 'You are signed out' })
          ctx.status = 204
        })
        router.get(
          '/flash',
          withAuth(null),
          (ctx) => (ctx.body = { flash: (ctx['session'] as { flash?: string }).flash ?? null }),
        )
        app.use(router.routes())
      },
    })
    for (const isSignedIn of [true, false]) {
      const one = visitor()
      if (isSignedIn) await one.post('/login')
      const copy = one.copy()
      expect((await one.post('/bye')).status).toBe(204)
      await expectAnonymous(one)
      await expectAnonymous(copy)
      expect((await one.ask('/flash')).body).toEqual({ flash: 'You are signed out' })
      expect((await copy.ask('/flash')).body).toEqual({ flash: null })
    }
  })

  it('is not sent to a visitor without a session', async () => {
    const { visitor, store } = await sessionsApp()
    const stranger = visitor()
    for (const path of ['/open', '/me', '/read', '/nowhere']) {
      expect(setCookies(await stranger.ask(path))).toEqual([])
    }
    expect(store.asked).toEqual([])
  })

  it('session authenticators and sign-in above the sessions are a 500 that names the fix', async () => {
    const { ask, errors } = await running((app, answering) => {
      app.keys = [strongKey]
      const router = new Router().get('/me', withAuth(sessionAuth()), answering)
      const signIn = new Router().post('/login', withAuth(null), (ctx) => logIn(ctx, anna))
      app.use(router.routes()).use(signIn.routes())
      const { logIn } = sessions(app, { loadUser: () => anna })
    })
    expectCrashed(await ask('/me'))
    expectCrashed(await ask('/login', { method: 'POST' }))
    expect(errors).toHaveLength(2)
    for (const error of errors)
      expect(String(error)).toMatch(/sessions\(app, \.\.\.\).* before the routers are mounted/)
  })
})

describeLastingStores((store) => {
  describe('D-S9, D-S14 forged and tossed cookies', () => {
    const sign = (text: string, key = strongKey) => new Keygrip([key]).sign(text)
    const cases: ReadonlyArray<readonly [string, (id: string, sig: string) => string]> = [
      ['no signature', (id) => `session=${id}`],
      ['only the signature', (_id, sig) => `session.sig=${sig}`],
      ['an empty signature', (id) => `session=${id}; session.sig=`],
      ['another key', (id) => `session=${id}; session.sig=${sign(`session=${id}`, otherKey)}`],
      ['a signature of another name', (id) => `session=${id}; session.sig=${sign(`other=${id}`)}`],
      ['a signature of another value', (id) => `session=${id}; session.sig=${sign('session=other')}`],
      ['a longer signature', (id, sig) => `session=${id}; session.sig=${sig}A`],
      ['a shorter signature', (id, sig) => `session=${id}; session.sig=${sig.slice(0, -1)}`],
      ['another letter', (id, sig) => `session=${id.slice(0, -1)}${id.endsWith('A') ? 'B' : 'A'}; session.sig=${sig}`],
      ['an empty value', () => `session=; session.sig=${sign('session=')}`],
      ['a name in capitals', (id, sig) => `SESSION=${id}; SESSION.sig=${sig}`],
      ['a name after a no-break space', (id, sig) => `\u00a0session=${id}; \u00a0session.sig=${sig}`],
      ['a __Host- prefix that was not set', (id, sig) => `__Host-session=${id}; __Host-session.sig=${sig}`],
      [
        'a value with a plus for a blank',
        (id, sig) => `session=${id.slice(1)}%${id.charCodeAt(0).toString(16)}; session.sig=${sig}`,
      ],
      ['the forged one first', (id, sig) => `session=forged; session=${id}; session.sig=${sig}`],
      ['the forged one last', (id, sig) => `session=${id}; session=forged; session.sig=${sig}`],
      ['the forged one last, signature between', (id, sig) => `session=${id}; session.sig=${sig}; session=forged`],
      [
        'a session of the attacker first',
        (id, sig) => `session=x; session.sig=${sign('session=x')}; session=${id}; session.sig=${sig}`,
      ],
      [
        'a session of the attacker last',
        (id, sig) => `session=${id}; session.sig=${sig}; session=x; session.sig=${sign('session=x')}`,
      ],
      ['a forged signature first', (id, sig) => `session.sig=forged; session=${id}; session.sig=${sig}`],
    ]
    it.each(cases)('%s: 401', async (_what, forge) => {
      const { visitor, ask } = await sessionsApp(store)
      const victim = visitor()
      await victim.post('/login')
      const Cookie = forge(victim.cookies.get('session')!, victim.cookies.get('session.sig')!)
      const answer = await ask('/me', { headers: { Cookie } })
      expectDenied(answer, 401, [challenge.session])
      // A bad signature may be deleted; no session is made
      expect(setCookies(answer).filter((line) => !/^session\.sig=; .*expires=Thu, 01 Jan 1970/.test(line))).toEqual([])
      await expectSignedIn(victim, anna)
    })

    it.each([
      '5',
      'true',
      'null',
      '"abc"',
      '[]',
      '{}',
      '__proto__',
      'constructor',
      Buffer.from('{"auth":{"id":"root","at":9e15,"mark":""}}').toString('base64url'),
    ])('a cookie that is signed and contains %s is not a session', async (value) => {
      const { ask } = await sessionsApp(store)
      const Cookie = `session=${value}; session.sig=${sign(`session=${value}`)}`
      expectDenied(await ask('/me', { headers: { Cookie } }), 401, [challenge.session])
      expect((await ask('/read', { headers: { Cookie } })).body).toEqual({})
    })
  })

  describe('D-S8 the keys of the application', () => {
    it('are rotated: an older key verifies until it is removed', async () => {
      const keys = [otherKey]
      const { visitor } = await sessionsApp(store, { keys })
      const one = visitor()
      await one.post('/login')
      const before = one.copy()
      keys.unshift(strongKey)
      await expectSignedIn(one, anna)
      keys.pop()
      await expectSignedIn(one, anna)
      await expectAnonymous(before)
    })

    it('of another application do not verify', async () => {
      const [here, there] = [await sessionsApp(store), await sessionsApp(store, { keys: [otherKey] })]
      const one = here.visitor()
      await one.post('/login')
      await expectAnonymous(there.visitor(one.cookies))
    })

    it('may be a Keygrip with a stronger digest', async () => {
      // Safe: Koa takes a Keygrip
      const { visitor } = await sessionsApp(store, { keys: new Keygrip([strongKey], 'sha256') as unknown as string[] })
      const one = visitor()
      await one.post('/login')
      expect(one.cookies.get('session.sig')).toHaveLength(43)
      await expectSignedIn(one, anna)
    })
  })
})

describe('D-S11 one call of sessions for an application', () => {
  it('a second call, or one beside a koa-session, is a TypeError', () => {
    const app = new Koa({ keys: [strongKey] })
    sessions(app, { loadUser: () => anna })
    expect(() => sessions(app, { loadUser: () => anna })).toThrow(
      new TypeError('sessions(app): the application has sessions already; a second koa-session would not be used'),
    )
    const other = new Koa({ keys: [strongKey] })
    other.use(koaSession(other))
    expect(() => sessions(other, { loadUser: () => anna })).toThrow(/has sessions already/)
  })

  it('a call that failed can be repeated', () => {
    const app = new Koa()
    expect(() => sessions(app, { loadUser: () => anna })).toThrow(/app\.keys/)
    app.keys = [strongKey]
    sessions(app, { loadUser: () => anna })
  })

  it('two applications have their own sessions, and options are not changed', async () => {
    const options = Object.freeze({ cookieName: 'one' })
    const one = await sessionsApp(undefined, options)
    const two = await sessionsApp(undefined, { cookieName: 'two' })
    const [a, b] = [one.visitor(), two.visitor()]
    await a.post('/login')
    await b.post('/login')
    expect([[...a.cookies.keys()], [...b.cookies.keys()]]).toEqual([
      ['one', 'one.sig'],
      ['two', 'two.sig'],
    ])
    await expectAnonymous(two.visitor(a.cookies))
  })

  it('the OpenAPI document has the name of the cookie', async () => {
    const { ask } = await sessionsApp(undefined, {
      cookieName: 'sid',
      below: (app) =>
        app.use(
          at('/scheme', (ctx) => {
            const { description } = sessionAuth()
            ctx.body = description._tag === 'Leaf' ? description.schemeFor?.(ctx.request) : {}
          }),
        ),
    })
    expect((await ask('/scheme')).body).toMatchObject({ type: 'apiKey', in: 'cookie', name: 'sid' })
  })

  it('a handler after a guard can sign in and out', async () => {
    const { visitor } = await sessionsApp(undefined, {
      below: (app, { logIn }) => {
        const router = new Router().post('/become-root', withAuth(sessionAuth()), (ctx) => {
          ctx.body = { ok: true }
          return logIn(ctx, { username: 'root', isSuperuser: true })
        })
        app.use(router.routes())
      },
    })
    const one = visitor()
    expect((await one.post('/become-root')).status).toBe(401)
    await one.post('/login')
    expect((await one.post('/become-root')).status).toBe(200)
    expectPassed(await one.ask('/super'), { username: 'root', isSuperuser: true })
  })
})
