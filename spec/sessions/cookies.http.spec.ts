/** D-S8, D-S9, D-S11, D-S12, D-S14: the cookie of a session, its seal, and what does not count as this cookie. */
import Router from '@koa/router'
import Keygrip from 'keygrip'
import Koa from 'koa'
import koaSession from 'koa-session'
import { sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { challenge, expectCrashed, expectDenied, running } from '../support/models/behavior.js'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  keptFor,
  sessionsApp,
  signedInApp,
  setCookies,
  strongKey,
  type Visitor,
} from '../support/sites/sessionsApp.js'
import { sealedBy } from '../support/sites/sealedBy.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'
import { stoppedClock } from '../support/runs/clock.js'

const otherKey = 'another signing key that is long enough'
const DAY = 86_400_000

describe('D-S12 the cookie', () => {
  it('is HttpOnly, SameSite=Lax and Path=/ over http, and lasts as long as the idle time', async () => {
    const { visitor } = await sessionsApp()
    stoppedClock()
    const answer = await visitor().post('/login')
    const lines = setCookies(answer)
    expect(lines).toHaveLength(1)
    // an id, 16 + 4 bytes that say anna, and 132 bits that seal both
    expect(lines[0]).toMatch(
      /^session=[A-Za-z0-9_-]{43}~[A-Za-z0-9_-]{28}\.[A-Za-z0-9_-]{22}; path=\/; expires=[^;]+; samesite=lax; httponly$/,
    )
    // whole seconds
    expect(Math.abs(keptFor(answer) - DAY)).toBeLessThanOrEqual(1000)
  })

  it('has SameSite=Strict, another name and no end if the options say so', async () => {
    const options = { sameSite: 'strict', cookieName: 'sid', persistent: false } as const
    const { visitor } = await sessionsApp(undefined, options)
    const one = visitor()
    const lines = setCookies(await one.post('/login'))
    expect(lines.map((line) => /^(sid)=[^;]+; path=\/; samesite=strict; httponly$/.exec(line)?.[1])).toEqual(['sid'])
    await expectSignedIn(one, anna)
  })

  it('is another one if the page after a sign-out has something to say', async () => {
    const { visitor } = await sessionsApp(undefined, {
      acts: {
        '/bye': async (ctx, { addProof, logOut, proofsOf }) => {
          // also if the session has got another id in the same request
          if (proofsOf(ctx).length > 0) await addProof(ctx, { method: 'totp' })
          await logOut(ctx)
          Object.assign(ctx['session'] as object, { flash: 'You are signed out' })
        },
      },
    })
    for (const isSignedIn of [true, false]) {
      const one = visitor()
      if (isSignedIn) await one.post('/login')
      const copy = one.copy()
      expect((await one.post('/bye')).status).toBe(200)
      await expectAnonymous(one)
      await expectAnonymous(copy)
      expect((await one.ask('/read')).body).toEqual({ flash: 'You are signed out' })
      expect((await copy.ask('/read')).body).toEqual({})
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

const sign = (text: string, key = strongKey) => new Keygrip([key]).sign(text)

const other = 'A'.repeat(43)
// With an attacker's own session beside it, both are genuine
type Forge = (id: string, seal: string, own: string) => string

const forgedSeals: ReadonlyArray<readonly [string, Forge]> = [
  ['no seal', (id) => `session=${id}`],
  ['an empty seal', (id) => `session=${id}~`],
  ['only the seal', (_id, seal) => `session=~${seal}`],
  ['a seal by another key', (id) => `session=${sealedBy(otherKey, 'shop', id)}`],
  ['a seal of another application with the same keys', (id) => `session=${sealedBy(strongKey, 'admin', id)}`],
  ['the seal of another id', (_id, seal) => `session=${other}~${seal}`],
  ["the seal of an attacker's session", (id, _seal, own) => `session=${id}~${own.split('~')[1]}`],
  ['a longer seal', (id, seal) => `session=${id}~${seal}A`],
  ['another spelling of the seal', (id, seal) => `session=${id}~${seal}=`],
  ['a seal without who signed in', (id, seal) => `session=${id}~.${seal.split('.')[1]}`],
  ['a seal without its MAC', (id, seal) => `session=${id}~${seal.split('.')[0]}`],
  ['an empty MAC', (id, seal) => `session=${id}~${seal.split('.')[0]}.`],
  ['a seal before a seal', (id, seal) => `session=${id}~${seal}~${seal}`],
  ['a signature in place of the seal', (id) => `session=${id}; session.sig=${sign('session=other')}`],
  ['a name in capitals', (id, seal) => `SESSION=${id}~${seal}`],
  ['a name after a no-break space', (id, seal) => `\u00a0session=${id}~${seal}`],
  ['a __Host- prefix that was not set', (id, seal) => `__Host-session=${id}~${seal}`],
  ['the forged one first', (id, seal) => `session=forged; session=${id}~${seal}`],
  ['the forged one last', (id, seal) => `session=${id}~${seal}; session=forged`],
  ['a session of the attacker first', (id, seal, own) => `session=${own}; session=${id}~${seal}`],
  ['a session of the attacker last', (id, seal, own) => `session=${id}~${seal}; session=${own}`],
]

describeLastingStores((store) => {
  describe('D-S9, D-S14 forged and tossed cookies', () => {
    it.each(forgedSeals)('%s: 401', async (_what, forge) => {
      const { visitor, ask, store: watched } = await sessionsApp(store, { name: 'shop' })
      const [victim, attacker] = [visitor(), visitor()]
      await victim.post('/login')
      await attacker.post('/login?user=sam')
      const [id = '', seal = ''] = victim.cookies.get('session')!.split('~')
      watched.ids.clear()
      const Cookie = forge(id, seal, attacker.cookies.get('session')!)
      const answer = await ask('/me', { headers: { Cookie } })
      expectDenied(answer, 401, [challenge.session])
      expect(setCookies(answer)).toEqual([])
      // What the application did not give out does not reach the store
      const isGenuine = /^session=[^;]+~[^;]+; session=/.test(Cookie)
      expect(watched.ids.size).toBe(isGenuine ? 1 : 0)
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
      Buffer.from('{"auth":{"id":"root","at":9e15,"stamp":""}}').toString('base64url'),
    ])('a cookie that is signed and contains %s is not a session', async (value) => {
      const { ask } = await sessionsApp(store)
      const sealedOne = await sessionsApp(store, { name: 'shop' })
      const sealed = await sealedOne.ask('/me', {
        headers: { Cookie: `session=${sealedBy(strongKey, 'shop', value)}` },
      })
      expectDenied(sealed, 401, [challenge.session])
      const Cookie = `session=${value}; session.sig=${sign(`session=${value}`)}`
      expectDenied(await ask('/me', { headers: { Cookie } }), 401, [challenge.session])
      expect((await ask('/read', { headers: { Cookie } })).body).toEqual({})
    })
  })

  describe('D-S8 the keys of the application', () => {
    const expectBasket = async (one: Visitor, content: object) => expect((await one.ask('/read')).body).toEqual(content)
    const isAnna = (one: Visitor) => expectSignedIn(one, anna)
    type Expect = (one: Visitor) => Promise<unknown>
    it.each<[who: string, path: string, kept: Expect, lost: Expect, last: Expect]>([
      ['a user', '/login', isAnna, expectAnonymous, isAnna],
      [
        'a visitor who is not signed in',
        '/set?basket=pear',
        (one) => expectBasket(one, { basket: 'pear' }),
        (one) => expectBasket(one, {}),
        (one) => expectBasket(one, { basket: 'pear' }),
      ],
      [
        'a user whose every request writes into the session',
        '/login',
        (one) => one.post('/set?basket=pear').then(() => one.post('/set?basket=plum')),
        expectAnonymous,
        isAnna,
      ],
    ])(
      'are rotated: %s stays known, and an older cookie is good until its key is removed',
      async (_who, path, ...expected) => {
        const [kept, lost, last] = expected
        const keys = [otherKey]
        const { visitor } = await sessionsApp(store, { keys })
        const one = visitor()
        await one.post(path)
        const before = one.copy()
        keys.unshift(strongKey)
        await kept(one)
        keys.pop()
        await kept(one)
        await last(one)
        await lost(before)
      },
    )

    it('are replaced in place by as many: what is given out afterwards is of the new one', async () => {
      const keys = [otherKey]
      const here = await sessionsApp(store, { keys })
      const there = await sessionsApp(store, { keys: [strongKey] })
      await here.visitor().post('/login')
      keys[0] = strongKey
      const one = here.visitor()
      await one.post('/login')
      await expectSignedIn(there.visitor(one.cookies), anna)
    })

    it('may be a Keygrip with a stronger digest', async () => {
      // Safe: Koa takes a Keygrip
      const { one } = await signedInApp(store, { keys: new Keygrip([strongKey], 'sha256') as unknown as string[] })
      expect([...one.cookies.keys()]).toEqual(['session'])
      expect(one.cookies.get('session')!.split('.')[1]).toHaveLength(43)
      await expectSignedIn(one, anna)
    })

    it.each([
      ['an array', (keys: string[]): Koa['keys'] => keys],
      // Safe: Koa takes a Keygrip
      ['a Keygrip', (keys: string[]): Koa['keys'] => new Keygrip(keys) as unknown as string[]],
    ])('in %s seal for one application: another one with them knows nothing of its session', async (_how, make) => {
      const keys = [otherKey]
      const here = await sessionsApp(store, { name: 'shop', keys: make(keys) })
      const there = await sessionsApp(store, { name: 'admin', keys: make(keys) })
      const one = here.visitor()
      await one.post('/login')
      await one.post('/set?basket=pear')
      const empty = async () => {
        const copied = there.visitor(
          new Map([...one.cookies, ['session.sig', sign(`session=${one.cookies.get('session')}`, otherKey)]]),
        )
        await expectBasket(copied, {})
        await copied.post('/set?basket=plum')
        expect((await one.copy().ask('/read')).body).toMatchObject({ basket: 'pear' })
      }
      await empty()
      keys.unshift(strongKey)
      await empty()
      await expectSignedIn(one, anna)
    })

    it('in a Keygrip are rotated in place: what an older one signed is given out anew', async () => {
      const keys = [otherKey]
      // Safe: Koa takes a Keygrip
      const { one } = await signedInApp(store, { keys: new Keygrip(keys) as unknown as string[] })
      const before = one.copy()
      keys.unshift(strongKey)
      await expectSignedIn(one, anna)
      expect(one.cookies.get('session')).not.toBe(before.cookies.get('session'))
      keys.pop()
      await expectSignedIn(one, anna)
      await expectAnonymous(before)
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
})
