/** C-01: ceremonies that leave the site and come back, as with a provider. The provider is a kind of the test. */
import Router from '@koa/router'
import * as E from 'fp-ts/lib/Either.js'
import { authSettings, defaultErrorMapper, sessionAuth, UnavailableError, withAuth } from 'koa-with-auth'
import { begin, finish, type Kind } from 'koa-with-auth/sign-in'
import { describe, expect, it } from 'vitest'
import { returnToIn } from '../../src/sign-in/request.js'
import { sessionsApp, setCookies, strongKey, type Visitor } from '../support/sites/sessionsApp.js'
import { expectAnonymousAt, expectUser } from '../support/sites/signedIn.js'
import { describeEveryOther } from '../support/stores/sessionStores.js'
import type { Store } from 'koa-with-auth/stores'
import { AuthError } from 'koa-with-auth'

const browsing = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
const fromProvider = {
  ...browsing,
  'Sec-Fetch-Site': 'cross-site',
  'Sec-Fetch-Mode': 'navigate',
  'Sec-Fetch-Dest': 'document',
}

interface Provider {
  asked: number
  instead: (() => Promise<never>) | undefined
}

const redirecting = (name: string, provider: Provider): Kind<{ prompt?: string }, { nonce: string }, string> => ({
  name,
  lifetime: 900_000,
  posted: ['state', 'code', 'error'],
  leadsAgain: true,
  begin: (_incoming, { secret, origin }, ask) =>
    E.right({
      kept: { nonce: secret('nonce') },
      send: (state) => ({
        redirect: `https://op.example/authorize?${new URLSearchParams({ state, redirect_uri: `${origin}/callback`, ...ask }).toString()}`,
      }),
    }),
  read: ({ query }) => {
    const [state, ...others] = query.getAll('state')
    return state === undefined || others.length > 0 ? undefined : { handle: state, answer: query.get('code') ?? '' }
  },
  check: async ({ nonce }, code, { secret }) => {
    provider.asked++
    await new Promise((resolve) => setTimeout(resolve, 20))
    await provider.instead?.()
    return nonce === secret('nonce') && code !== 'bad'
      ? E.right({ method: 'oidc', issuer: 'https://op.example', subject: code })
      : E.left(AuthError.invalid)
  },
})

const site = async (store: (() => Store) | undefined, keys: string[] = [strongKey]) => {
  const provider: Provider = { asked: 0, instead: undefined }
  let hooks = 0
  const kind = redirecting('op', provider)
  const other = redirecting('other', provider)
  const made = await sessionsApp(store, {
    keys,
    origin: 'https://shop.example',
    below: (app) => {
      // failures as data, also for browsers
      app.use(authSettings({ errorMapper: defaultErrorMapper }))
      const router = new Router()
      const userOf = (_ctx: unknown, { proof }: { proof: { subject?: string | undefined } }) => {
        hooks++
        return proof.subject === 'stranger' ? undefined : made0(proof.subject)
      }
      const made0 = (subject = '') => (['anna', 'sam'].includes(subject) ? { username: subject } : undefined)
      router.get(
        '/begin',
        withAuth(null),
        begin(kind, { ask: (ctx) => (ctx.query['prompt'] === undefined ? {} : { prompt: 'none' }) }),
      )
      router.get('/begin/other', withAuth(null), begin(other))
      router.post('/link', withAuth(sessionAuth()), begin(kind, { intent: 'link' }))
      router.post('/step', withAuth(sessionAuth()), begin(kind, { intent: 'stepUp' }))
      router.all('/callback', withAuth(null), finish(kind, userOf, { keep: ['basket'] }))
      router.all('/callback/other', withAuth(null), finish(other, userOf))
      router.get('/vault', withAuth(sessionAuth()), (ctx) => (ctx.body = 'in'))
      app.use(router.routes())
    },
  })
  const start = async (visitor: Visitor, path = '/begin') => {
    const answer = await visitor.ask(path, { headers: browsing })
    expect(answer.status).toBe(303)
    return new URL(String(answer.headers['location'])).searchParams.get('state') ?? ''
  }
  const back = (visitor: Visitor, state: string, code = 'anna', headers: Record<string, string> = fromProvider) =>
    visitor.ask(`/callback?${new URLSearchParams({ code, state }).toString()}`, { headers })
  return { ...made, provider, keys, start, back, hooks: () => hooks }
}

describeEveryOther((store) => {
  describe('C-01 a provider', () => {
    it('O-01 twenty tabs finish in any order, and the header does not grow', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const states: string[] = []
      for (let at = 0; at < 20; at++) states.push(await s.start(visitor, `/begin?returnTo=/tab/${at}`))
      expect([...visitor.cookies.keys()]).toEqual(['browser'])
      for (const at of [
        7,
        0,
        19,
        ...Array.from({ length: 20 }, (_, one) => one).filter((one) => ![7, 0, 19].includes(one)),
      ]) {
        const answer = await s.back(visitor, states[at]!)
        expect([answer.status, answer.headers['location']]).toEqual([303, `/tab/${at}`])
      }
      await expectUser(visitor, 'anna')
      // O-02: each of them, reloaded, leads where it led
      for (const [at, state] of states.entries()) {
        const again = await s.back(visitor, state)
        expect([again.status, again.headers['location']]).toEqual([303, `/tab/${at}`])
      }
      expect([s.provider.asked, s.hooks()]).toEqual([20, 20])
      await visitor.post('/logout')
      expect((await s.back(visitor, states[0]!)).status).toBe(400)
    })

    it('O-02 a callback that comes ten times at once: one sign-in, the provider is asked once, all are led on', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor, '/begin?returnTo=/basket')
      const copies = Array.from({ length: 10 }, () => visitor.copy())
      const answers = await Promise.all(copies.map((one) => s.back(one, state)))
      expect(answers.map(({ status, headers }) => [status, headers['location']])).toEqual(
        copies.map(() => [303, '/basket']),
      )
      expect([s.provider.asked, s.hooks()]).toEqual([1, 1])
      expect(answers.filter((one) => setCookies(one).some((line) => line.startsWith('session=')))).toHaveLength(1)
    })

    it('O-03 another browser, and one that never began: 400, nothing is spent', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor)
      const other = s.visitor()
      await s.start(other)
      for (const one of [other, s.visitor()]) {
        const answer = await s.back(one, state)
        expect([answer.status, answer.body]).toMatchObject([400, { reason: 'unknown' }])
        await expectAnonymousAt(one)
      }
      expect([s.provider.asked, s.errors]).toEqual([0, []])
      expect((await s.back(visitor, state)).status).toBe(303)
    })

    it('O-03 the state of one provider at the callback of another: 400, it is not asked', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor, '/begin/other')
      expect((await s.back(visitor, state)).status).toBe(400)
      expect(s.provider.asked).toBe(0)
    })

    it('O-05 an outage of the provider or of the store is 503; of the store before anything was asked', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor)
      s.store.instead.insert = async () => Promise.reject(new Error('down'))
      expect((await s.back(visitor, state)).status).toBe(503)
      expect(s.provider.asked).toBe(0)
      delete s.store.instead.insert
      s.provider.instead = async () => Promise.reject(new UnavailableError('the provider is down'))
      const answer = await s.back(visitor, state)
      expect([answer.status, answer.headers['retry-after'], answer.headers['cache-control']]).toEqual([
        503,
        '5',
        'no-store',
      ])
      s.provider.instead = undefined
      expect((await s.back(visitor, state)).status).toBe(400)
      await expectAnonymousAt(visitor)
      s.provider.instead = async () => Promise.reject(new Error('a bug'))
      expect((await s.back(visitor, await s.start(visitor))).status).toBe(500)
    })

    it('O-10 a link finishes only for the user who began it, still signed in, in this browser', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      await visitor.post('/login')
      const link = async (one: Visitor) => {
        const answer = await one.post('/link')
        return new URL(String(answer.headers['location'])).searchParams.get('state') ?? ''
      }
      const state = await link(visitor)
      const other = s.visitor()
      await other.post('/login?user=sam')
      expect((await s.back(other, state)).status).toBe(400)
      await visitor.post('/login?user=sam')
      expect((await s.back(visitor, state)).body).toMatchObject({ reason: 'anotherUser' })
      await visitor.post('/logout')
      expect((await s.back(visitor, state)).status).toBe(403)
      expect(s.hooks()).toBe(0)
      await visitor.post('/login')
      const session = visitor.cookies.get('session')
      expect((await s.back(visitor, state, 'sam')).status).toBe(303)
      await expectUser(visitor, 'anna')
      expect(visitor.cookies.get('session')).toBe(session)
    })

    it('C-02 a step-up that proves another user is 403, and adds no proof', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      await visitor.post('/login')
      const session = visitor.cookies.get('session')
      const step = async () => {
        const answer = await visitor.post('/step')
        return new URL(String(answer.headers['location'])).searchParams.get('state') ?? ''
      }
      const refused = await s.back(visitor, await step(), 'sam')
      expect([refused.status, refused.body]).toMatchObject([403, { reason: 'anotherUser' }])
      expect(visitor.cookies.get('session')).toBe(session)
      await expectUser(visitor, 'anna')
      expect((await s.back(visitor, await step(), 'anna')).status).toBe(303)
      expect(visitor.cookies.get('session')).not.toBe(session)
    })

    it('O-12 another id, the basket only if it is named; another user gets another session', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      await visitor.post('/set?basket=pear&seen=1')
      const before = visitor.copy()
      await s.back(visitor, await s.start(visitor))
      expect((await visitor.ask('/read')).body).toMatchObject({ basket: 'pear' })
      expect((await visitor.ask('/read')).body).not.toHaveProperty('seen')
      expect(visitor.cookies.get('session')).not.toBe(before.cookies.get('session'))
      await s.back(visitor, await s.start(visitor), 'sam')
      await expectUser(visitor, 'sam')
    })

    it('no account: a hook that finds no account is 403, and what comes again is unknown', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor)
      const answer = await s.back(visitor, state, 'stranger')
      expect([answer.status, answer.body]).toMatchObject([403, { reason: 'noAccount' }])
      expect((await s.back(visitor, state)).status).toBe(400)
      await expectAnonymousAt(visitor)
    })

    it('O-13 a POST of another site is led to a GET, sets no cookie, and changes nothing by itself', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor, '/begin?returnTo=/there')
      s.store.asked.length = 0
      const form = new URLSearchParams({ code: 'anna', state, more: 'x' }).toString()
      const headers = {
        ...fromProvider,
        'Content-Type': 'application/x-www-form-urlencoded',
        Origin: 'https://op.example',
      }
      // Lax: the cookie is not sent with it
      const answer = await s.visitor().ask('/callback', { method: 'POST', headers, body: form })
      const led = new URLSearchParams({ state, code: 'anna' }).toString()
      expect([answer.status, answer.headers['location'], setCookies(answer)]).toEqual([303, `/callback?${led}`, []])
      expect([s.store.asked, s.provider.asked]).toEqual([[], 0])
      expect(
        (await visitor.ask(String(answer.headers['location']), { headers: fromProvider })).headers['location'],
      ).toBe('/there')
      const large = await s
        .visitor()
        .ask('/callback', { method: 'POST', headers, body: `${form}&a=${'x'.repeat(70_000)}` })
      expect(large.status).toBe(413)
    })

    it('O-13 HEAD, a prefetch, an image and a frame neither begin nor finish', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor)
      const odd: ReadonlyArray<readonly [string, Record<string, string>]> = [
        ['HEAD', browsing],
        ['GET', { ...browsing, 'Sec-Purpose': 'prefetch' }],
        ['GET', { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'image' }],
        ['GET', { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'iframe' }],
        ['GET', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Dest': 'empty' }],
      ]
      for (const [method, headers] of odd) {
        const begun = await s.visitor().ask('/begin', { method, headers })
        expect([begun.status, setCookies(begun)]).toEqual([403, []])
        const code = new URLSearchParams({ code: 'anna', state }).toString()
        expect((await visitor.ask(`/callback?${code}`, { method, headers })).status).toBe(403)
      }
      expect(s.provider.asked).toBe(0)
      expect((await s.back(visitor, state)).status).toBe(303)
    })

    it('O-04 a state that is doubled, empty, long or misspelt is 400', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const state = await s.start(visitor)
      for (const query of [
        `state=${state}&state=${state}`,
        'state=',
        'state',
        '',
        `state=${'a'.repeat(8193)}`,
        `state=${state}%3D`,
        'state=!!',
      ]) {
        expect((await visitor.ask(`/callback?code=anna&${query}`, { headers: fromProvider })).status).toBe(400)
      }
      expect(s.provider.asked).toBe(0)
    })

    it('O-16 keys that are rotated: a handle of an older key finishes; of a removed key it is unknown', async () => {
      const s = await site(store)
      const visitor = s.visitor()
      const [first, second] = [await s.start(visitor), await s.start(visitor)]
      s.app.keys = ['another key that is long enough, for tests', strongKey]
      expect((await s.back(visitor, first)).status).toBe(303)
      s.app.keys = ['another key that is long enough, for tests']
      expect((await s.back(visitor, second)).status).toBe(400)
    })
  })
})

describe('C-01 the cookie of the browser', () => {
  it('is one, HttpOnly and Lax, renewed at each beginning, and outlives the lifetime by an hour', async () => {
    const s = await site(undefined)
    const visitor = s.visitor()
    const answer = await visitor.ask('/begin', { headers: browsing })
    expect(setCookies(answer)).toEqual([
      expect.stringMatching(/^browser=[\w-]{43}; path=\/; expires=[^;]+; samesite=lax; httponly$/),
    ])
    expect(answer.headers['cache-control']).toBe('no-store')
    const value = visitor.cookies.get('browser')
    expect(setCookies(await visitor.ask('/begin', { headers: browsing }))[0]).toContain(value)
    await visitor.post('/login')
    await visitor.post('/logout')
    expect(visitor.cookies.get('browser')).toBe(value)
  })

  it('is another one if it was sent twice or is no secret', async () => {
    const s = await site(undefined)
    const visitor = s.visitor()
    const state = await s.start(visitor)
    const { cookies } = visitor
    const twice = `browser=${cookies.get('browser')}; browser=${'a'.repeat(43)}`
    expect((await s.back(s.visitor(), state, 'anna', { ...fromProvider, Cookie: twice })).status).toBe(400)
    expect((await s.back(s.visitor(), state, 'anna', { ...fromProvider, Cookie: 'browser=short' })).status).toBe(400)
  })
})

describe('C-01 mistakes', () => {
  it('an intent that the kind is not good for, and what is no kind, are TypeErrors', () => {
    const kind = redirecting('op', { asked: 0, instead: undefined })
    expect(() => begin(kind, { intent: 'reset' })).toThrow('good for signIn, link, stepUp')
    expect(() => begin({} as typeof kind)).toThrow('must be a kind')
    expect(() => finish(kind, undefined as never)).toThrow('must be a function')
    expect(() => begin(kind, { intnt: 'link' } as never)).toThrow('no option "intnt"')
  })
})

it.each([
  ['/a', undefined, '/a'],
  [undefined, '/a', '/a'],
  ['/a', '/a', '/a'],
  ['/a', '/b', undefined],
  ['/a&returnTo=/a', undefined, undefined],
  ['/a&returnTo=/b', '/a', undefined],
  [undefined, ['/a', '/b'], ['/a', '/b']],
  [undefined, undefined, undefined],
  ['/a', null, '/a'],
])('a path that follows, %j in the query and %j in the body, is %j', (inQuery, inBody, expected) => {
  const query = new URLSearchParams(inQuery === undefined ? '' : `returnTo=${inQuery}`)
  expect(returnToIn(inBody === undefined ? {} : { returnTo: inBody }, query)).toEqual(expected)
})
