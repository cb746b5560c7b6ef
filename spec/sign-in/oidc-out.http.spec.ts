/** Signing out at the provider, and by the provider, over HTTP. */
import { authSettings, sessionAuth, UnavailableError, withAuth } from 'koa-with-auth'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { askSecondFactor, begin, finish, secondFactor } from 'koa-with-auth/sign-in'
import {
  backChannelLogout,
  rpLogout,
  oidc,
  afterRpLogout,
  upstream,
  type BackChannelLogoutOptions,
  type OidcKind,
  type OidcOptions,
} from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { stoppedClock } from '../support/runs/clock.js'
import { pollute } from '../support/runs/pollute.js'
import { seconds, signedWith, signingKey } from '../support/servers/identityProvider.js'
import {
  limitFor,
  newBrowser,
  providerSite,
  shopAt,
  type ProviderSite,
  type SiteOptions,
} from '../support/sites/providerSite.js'
import { navigation } from '../support/servers/userAgent.js'
import { failing, SECRET, wrongProvider } from '../support/servers/wrongProvider.js'
import { noting } from '../support/stores/stores.js'
import { decodeJwt, SignJWT } from 'jose'

type UserHook = BackChannelLogoutOptions['user']

/** A site with the routes of both ways out; `asked` has the subjects that its hook was asked for. */
const start = async (
  options: Partial<SiteOptions> = {},
  timeout = limitFor(''),
  user: UserHook = () => undefined,
  over: Partial<OidcOptions> = {},
) => {
  const provider = await wrongProvider()
  const asked: unknown[] = []
  const site = await providerSite({
    kinds: (callback) => ({
      provider: oidc(shopAt(provider.issuer, callback('provider'), { keys: { timeout, retry: 1 }, ...over })),
    }),
    ...options,
    routes: (router, kinds, parts) => {
      options.routes?.(router, kinds, parts)
      // Safe: it was made by `oidc`
      const kind = kinds['provider'] as OidcKind
      router.all('/sign-out/provider', withAuth(null), rpLogout(kind, { callback: '/signed-out' }))
      router.get('/signed-out', withAuth(null), afterRpLogout(kind, { callback: '/signed-out' }))
      router.post(
        '/sign-out/backchannel',
        withAuth(null),
        backChannelLogout(kind, {
          user: (identity) => {
            const { subject } = identity
            asked.push(subject)
            const isKnown = subject !== undefined && subject !== 'stranger'
            return user(identity) ?? (isKnown ? `provider-${subject}` : undefined)
          },
        }),
      )
    },
  })
  return { provider, site, asked, browser: newBrowser() }
}

/** A store, and whether the grants that were inserted are still there. */
const grantsLive = () => {
  const { store, calls, given } = noting(memoryStore())
  const live = async () => {
    const inserted = given.filter((_, at) => calls[at] === 'insert').map(([key]) => String(key))
    const keys = inserted.filter((key) => /^koa-with-auth\/upstream\/\S+$/.test(key))
    return (await store.get(keys)).map((text) => text !== undefined)
  }
  return { store, live }
}

// O-14
describe('signing out at the provider', () => {
  it('ends the session here first, and leads there and back [rp-init-logout]', async () => {
    const { provider, site, browser } = await start()
    await site.signIn(browser)
    const page = await browser.send(`${site.origin}/sign-out/provider?returnTo=/bye`, { method: 'POST' })
    expect(await site.me(browser)).toBeUndefined()
    const to = new URL(page.location ?? '')
    expect([page.status, to.origin + to.pathname]).toEqual([303, `${provider.issuer}/end`])
    expect(Object.fromEntries(to.searchParams)).toEqual({
      client_id: 'shop',
      post_logout_redirect_uri: `${site.origin}/signed-out`,
      state: to.searchParams.get('state'),
    })
    const back = `${site.origin}/signed-out?state=${to.searchParams.get('state')}`
    const home = await browser.send(back, { headers: navigation })
    expect([home.status, home.location]).toEqual([303, `${site.origin}/bye`])
    // it is spent
    const again = await browser.send(back, { headers: navigation })
    expect([again.status, again.location]).toEqual([303, `${site.origin}/`])
  })

  it.each(['?state=x', '', '?state=a&state=b', '?returnTo=//evil.example'])(
    'leads home from %s, and ends no session [rp-init-logout-other-state] [rp-init-logout-no-state]',
    async (query) => {
      const { site, browser } = await start()
      await site.signIn(browser)
      const page = await browser.send(`${site.origin}/signed-out${query}`, { headers: navigation })
      expect([page.status, page.location, page.body]).toEqual([303, `${site.origin}/`, ''])
      expect(await site.me(browser)).toBe('provider-anna')
    },
  )

  it('leads home, also if the error mapper answers failures with redirects', async () => {
    const errorMapper = () => ({ status: 303, headers: { Location: '/sign-in?failed' } })
    const { site } = await start({ middleware: authSettings({ errorMapper }) })
    const page = await newBrowser().send(`${site.origin}/signed-out?state=x`, { headers: navigation })
    expect([page.status, page.location]).toEqual([303, `${site.origin}/`])
  })

  it('ends the session here if the provider is down, or has no such endpoint', async () => {
    for (const isDown of [true, false]) {
      const { provider, site, browser } = await start({}, limitFor(isDown ? 'hanging' : ''))
      if (!isDown) provider.metadata = { end_session_endpoint: undefined }
      await browser.send(`${site.origin}/sign-in/as/anna`, { method: 'POST' })
      if (isDown) provider.answers['/discovery'] = failing.hanging
      const page = await browser.send(`${site.origin}/sign-out/provider`, { method: 'POST' })
      expect([page.status, page.location, await site.me(browser)]).toEqual([303, `${site.origin}/`, undefined])
    }
  })

  it('ends nothing by a GET, or for another site', async () => {
    const { site, browser } = await start()
    await site.signIn(browser)
    const url = `${site.origin}/sign-out/provider`
    expect((await browser.send(url, { headers: navigation })).status).toBe(405)
    const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }
    expect((await browser.send(url, { method: 'POST', headers })).status).toBe(403)
    expect(await site.me(browser)).toBe('provider-anna')
  })
})

// O-02: not only by `logOut` of this browser
describe('a callback that is loaded again', () => {
  it.each(['everywhere', 'by the provider', 'by the provider, by its session'])(
    'is unknown when the session was ended %s a moment ago',
    async (way) => {
      const routes: SiteOptions['routes'] = (router, _kinds, parts) => {
        router.post('/everywhere', withAuth(null), async (ctx) => {
          await parts.logOutEverywhere('provider-anna')
          ctx.status = 204
        })
      }
      const { provider, site } = await start({ routes, list: true })
      provider.claims = (given) => ({ ...given, sid: 's1' })
      const browser = newBrowser()
      const url = await site.toCallback(browser)
      expect((await browser.send(url, { headers: navigation })).status).toBe(303)
      if (way === 'everywhere') await browser.send(`${site.origin}/everywhere`, { method: 'POST' })
      else await send(site, await provider.logoutToken(way === 'by the provider' ? { sub: 'anna' } : { sid: 's1' }))
      const again = await browser.send(url, { headers: navigation })
      expect([again.status, await site.me(browser)]).toEqual([400, undefined])
      expect(JSON.parse(again.body)).toMatchObject({ reason: 'unknown' })
    },
  )
})

const send = (site: ProviderSite, token: string, init: RequestInit = {}, browser = newBrowser()) =>
  browser.send(`${site.origin}/sign-out/backchannel`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: token }),
    ...init,
  })

// O-14
describe('a sign-out by the provider', () => {
  const twoDevices = async (list: boolean) => {
    const { provider, site, asked } = await start({ list })
    const browsers = [newBrowser(), newBrowser()]
    for (const [at, browser] of browsers.entries()) {
      provider.claims = (claims) => ({ ...claims, sid: `s${at}` })
      await site.signIn(browser)
    }
    const signedIn = () => Promise.all(browsers.map((browser) => site.me(browser)))
    return { provider, site, signedIn, asked }
  }

  it.each([true, false])(
    'ends all sessions of a subject, with a list of sessions %s [rp-backchannel-rpinitlogout]',
    async (list) => {
      const { provider, site, signedIn } = await twoDevices(list)
      expect(await signedIn()).toEqual(['provider-anna', 'provider-anna'])
      const page = await send(site, await provider.logoutToken({ sub: 'anna' }))
      expect([page.status, page.setCookie, page.headers.get('cache-control')]).toEqual([200, [], 'no-store'])
      expect(await signedIn()).toEqual([undefined, undefined])
    },
  )

  it.each<[string, boolean, Readonly<Record<string, unknown>>, ReadonlyArray<0 | 1>]>([
    ['only the session that it names', true, { sub: 'anna', sid: 's0' }, [1]],
    ['nothing if no session has its name', true, { sub: 'anna', sid: 'another' }, [0, 1]],
    ['nothing by a session alone, if there is no list of sessions', false, { sid: 's0' }, [0, 1]],
    ['nothing of an identity without a user', false, { sub: 'stranger' }, [0, 1]],
    ['nothing of an identity without a user, though it names a session', true, { sub: 'stranger', sid: 's0' }, [0, 1]],
    ['all sessions of the user if there is no list of them', false, { sub: 'anna', sid: 's0' }, []],
  ])('ends %s', async (_name, list, claims, left) => {
    const { provider, site, signedIn } = await twoDevices(list)
    expect((await send(site, await provider.logoutToken(claims))).status).toBe(200)
    expect(await signedIn()).toEqual([0, 1].map((at) => (left.includes(at as 0) ? 'provider-anna' : undefined)))
  })

  it('with only a session ends that session, though the hook knows no user of it', async () => {
    const { provider, site, signedIn, asked } = await twoDevices(true)
    expect((await send(site, await provider.logoutToken({ sid: 'another' }))).status).toBe(200)
    expect(await signedIn()).toEqual(['provider-anna', 'provider-anna'])
    expect((await send(site, await provider.logoutToken({ sid: 's0' }))).status).toBe(200)
    expect(await signedIn()).toEqual([undefined, 'provider-anna'])
    // the ended one does not write itself back
    expect(await signedIn()).toEqual([undefined, 'provider-anna'])
    expect((await send(site, await provider.logoutToken({ sid: 's1' }))).status).toBe(200)
    expect(await signedIn()).toEqual([undefined, undefined])
    expect(asked).toEqual([undefined, undefined, undefined])
  })

  it('with only a session is a 503 while the store is down, and the next token ends it', async () => {
    const memory = memoryStore()
    let isDown = false
    const members = async (set: string) => (isDown ? Promise.reject(new Error('down')) : memory.members(set))
    const { provider, site, browser } = await start({ list: true, store: { ...memory, members } })
    provider.claims = (claims) => ({ ...claims, sid: 's0' })
    await site.signIn(browser)
    isDown = true
    expect((await send(site, await provider.logoutToken({ sid: 's0' }))).status).toBe(503)
    expect(await site.me(browser)).toBe('provider-anna')
    isDown = false
    expect((await send(site, await provider.logoutToken({ sid: 's0' }))).status).toBe(200)
    expect(await site.me(browser)).toBeUndefined()
  })

  it('is not refused as a request of another site, and reads no cookie', async () => {
    const { provider, site, browser } = await start()
    await browser.send(`${site.origin}/sign-in/as/bert`, { method: 'POST' })
    const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }
    const page = await send(site, await provider.logoutToken({ sub: 'anna' }), { headers }, browser)
    expect([page.status, page.setCookie, await site.me(browser)]).toEqual([200, [], 'bert'])
  })

  it.each(['store', 'hook'])('that had no effect because the %s fails comes again, and has one', async (part) => {
    const memory = memoryStore()
    let isDown = true
    const fails = (one: string) => isDown && part === one
    const store: Store = {
      ...memory,
      // only the stamp of a user is replaced without looking at it
      update: (...args) =>
        fails('store') && args[0].includes('/stamp/') && args[3] === undefined
          ? Promise.reject(new Error('down'))
          : memory.update(...args),
    }
    const { provider, site } = await start({ store }, undefined, () => {
      if (fails('hook')) throw new UnavailableError('the database is down')
      return undefined
    })
    const browser = newBrowser()
    await site.signIn(browser)
    const token = await provider.logoutToken({ sub: 'anna' })
    expect([(await send(site, token)).status, await site.me(browser)]).toEqual([503, 'provider-anna'])
    isDown = false
    expect([(await send(site, token)).status, await site.me(browser)]).toEqual([200, undefined])
    expect((await send(site, token)).status).toBe(400)
  })

  it('whose hook names no user by a string is a 500, and comes again', async () => {
    let found: unknown = 42
    // Safe: a database may have numbers
    const { provider, site } = await start({}, undefined, () => found as string | undefined)
    const browser = newBrowser()
    await site.signIn(browser)
    const token = await provider.logoutToken({ sub: 'anna' })
    expect([(await send(site, token)).status, await site.me(browser)]).toEqual([500, 'provider-anna'])
    found = undefined
    expect([(await send(site, token)).status, await site.me(browser)]).toEqual([200, undefined])
  })

  it('of a session that a step-up has just named ends it at once', async () => {
    const { provider, site } = await start({
      list: true,
      routes: (router, kinds) => {
        // Safe: it was made by `oidc`
        router.post('/prove', withAuth(sessionAuth()), begin(kinds['provider'] as OidcKind, { intent: 'stepUp' }))
      },
    })
    const browser = newBrowser()
    provider.claims = (claims) => ({ ...claims, sid: 'first', auth_time: seconds() })
    await site.signIn(browser)
    provider.claims = (claims) => ({ ...claims, sid: 'second', auth_time: seconds() })
    const begun = await browser.send(`${site.origin}/prove`, { method: 'POST' })
    await browser.open(begun.location ?? '', (url) => url === `${site.origin}/`)
    expect((await send(site, await provider.logoutToken({ sub: 'anna', sid: 'second' }))).status).toBe(200)
    expect(await site.me(browser)).toBeUndefined()
  })

  it.each([{ sid: 's1' }, { sub: 'anna', sid: 's1' }])(
    'by %j is over for a later sign-in at the same session',
    async (claims) => {
      const clock = stoppedClock()
      const { provider, site } = await start({ list: true })
      provider.claims = (given) => ({ ...given, sid: 's1' })
      for (const _round of ['first', 'second']) {
        const browser = newBrowser()
        await site.signIn(browser)
        expect(await site.me(browser)).toBe('provider-anna')
        expect(await send(site, await provider.logoutToken(claims))).toMatchObject({ status: 200 })
        expect(await site.me(browser)).toBeUndefined()
        clock.move(5001)
      }
    },
  )

  it.each([
    ['its session', { sid: 's1' }, 'ahead of', 400],
    ['its session', { sid: 's1' }, 'before', 400],
    ['its session, of its subject', { sub: 'anna', sid: 's1' }, 'before', 400],
    ['its subject', { sub: 'anna' }, 'before', 400],
    ['another session', { sid: 's2' }, 'before', 200],
    ['that session, of another subject', { sub: 'bert', sid: 's1' }, 'before', 200],
    ['its session', { sid: 's1' }, 'during', 200],
    ['its session, of its subject', { sub: 'anna', sid: 's1' }, 'during', 200],
    ['its subject', { sub: 'anna' }, 'during', 400],
  ] as const)('by %s, %j, %s the check of a second factor ends that sign-in', async (_name, claims, when, status) => {
    let checks = 0
    const verify = async (): Promise<boolean> => {
      checks++
      if (when === 'during') await end()
      return true
    }
    const code = secondFactor({ factors: [{ method: 'totp', verify }] })
    const user = { username: 'provider-anna', isActive: true }
    const { store, live } = grantsLive()
    let kind: OidcKind | undefined
    const { provider, site, browser } = await start({
      store,
      list: true,
      hooks:
        () =>
        async (ctx, { proof }) => {
          ctx.body = await askSecondFactor(ctx, code, { user, proof })
          return undefined
        },
      routes: (router, kinds) => {
        // Safe: it was made by `oidc`
        kind = kinds['provider'] as OidcKind
        router.post(
          '/code',
          withAuth(null),
          finish(code, () => user),
        )
      },
    })
    upstream(site.app, { provider: kind!, resource: 'https://api.example' })
    provider.claims = (given) => ({ ...given, sid: 's1' })
    const end = async (): Promise<unknown> => send(site, await provider.logoutToken(claims))
    // of two clocks that differ by less than five seconds, nobody knows which was first
    if (when === 'ahead of') expect(await end()).toMatchObject({ status: 200 })
    const half = await browser.send(await site.toCallback(browser))
    const { handle } = JSON.parse(half.body) as { handle: string }
    if (when !== 'ahead of') expect(await live()).toEqual([true])
    if (when === 'before') expect(await end()).toMatchObject({ status: 200 })
    // what the provider granted goes with it
    await expect.poll(live).toEqual([when === 'during' || status === 200])
    const answered = await browser.send(`${site.origin}/code`, {
      method: 'POST',
      body: JSON.stringify({ handle, code: '1' }),
      headers: { 'Content-Type': 'application/json' },
    })
    const isOver = status === 400 || when === 'during'
    expect([answered.status, checks]).toEqual([status, when === 'during' || !isOver ? 1 : 0])
    if (status === 400) expect(JSON.parse(answered.body)).toMatchObject({ reason: 'unknown' })
    expect(await site.me(browser)).toBe(isOver ? undefined : 'provider-anna')
  })

  it('ends what the provider granted to the session that it names', async () => {
    const { store, live } = grantsLive()
    let kind: OidcKind | undefined
    const { provider, site } = await start({
      store,
      list: true,
      // Safe: it was made by `oidc`
      routes: (_router, kinds) => (kind = kinds['provider'] as OidcKind),
    })
    upstream(site.app, { provider: kind!, resource: 'https://api.example' })
    for (const sid of ['s1', 's2']) {
      provider.claims = (claims) => ({ ...claims, sid })
      await site.signIn(newBrowser())
    }
    expect(await live()).toEqual([true, true])
    expect((await send(site, await provider.logoutToken({ sid: 's1' }))).status).toBe(200)
    await expect.poll(live).toEqual([false, true])
  })

  it('is a form: as JSON it is a 400, and ends nothing', async () => {
    const { provider, site, asked } = await start()
    const body = JSON.stringify({ logout_token: await provider.logoutToken({ sub: 'anna' }) })
    const page = await send(site, '', { body, headers: { 'Content-Type': 'application/json' } })
    expect([page.status, asked]).toEqual([400, []])
  })

  it('counts once', async () => {
    const { provider, site, asked } = await start()
    const token = await provider.logoutToken({ sub: 'anna' })
    const pages = await Promise.all([send(site, token), send(site, token), send(site, token)])
    expect(pages.map(({ status }) => status).sort()).toEqual([200, 400, 400])
    expect(asked).toHaveLength(1)
  })

  // O-14: also where clocks may differ by more than the token is good for
  it.each([0, 30_000, 1_800_000])(
    'counts once in all the time in which it is good, with a tolerance of %i ms',
    async (clockTolerance) => {
      const clock = stoppedClock()
      const { provider, site, asked } = await start({}, limitFor(''), () => undefined, { clockTolerance })
      const iat = seconds() + clockTolerance / 1000
      const token = await provider.logoutToken({ sub: 'anna', iat, exp: undefined })
      const statuses = new Set<number>()
      for (let minutes = 0; minutes < 90; minutes++) {
        statuses.add((await send(site, token)).status)
        clock.move(60_000)
      }
      expect([[...statuses], asked]).toEqual([[200, 400], ['anna']])
    },
  )

  // each of them says that anna has signed out
  const wrongClaims: ReadonlyArray<readonly [string, Readonly<Record<string, unknown>>]> = [
    ['a nonce [rp-backchannel-rpinitlogout-with-nonce]', { nonce: 'x' }],
    ['no events [rp-backchannel-rpinitlogout-no-event]', { events: undefined }],
    ['another event [rp-backchannel-rpinitlogout-wrong-event]', { events: { 'https://other.example': {} } }],
    ['an event that is no object', { events: { 'http://schemas.openid.net/event/backchannel-logout': true } }],
    ['another issuer [rp-backchannel-rpinitlogout-wrong-iss]', { iss: 'https://evil.example' }],
    ['another audience [rp-backchannel-rpinitlogout-wrong-aud]', { aud: 'another' }],
    ['no jti', { jti: undefined }],
    ['no iat', { iat: undefined }],
    ['an iat of yesterday', { iat: seconds() - 86_400 }],
    ['an iat in the future', { iat: seconds() + 3600 }],
    ['an exp that is over', { exp: seconds() - 120 }],
    ['an nbf in the future', { nbf: seconds() + 3600 }],
    ['neither sub nor sid', { sub: undefined }],
    ['a sid that is a number', { sid: 7 }],
    ['an empty sub', { sub: '', sid: 's1' }],
    ['more than 16 kB', { more: 'x'.repeat(16_384) }],
  ]
  const typ = 'logout+jwt'
  const wrongTokens: ReadonlyArray<readonly [string, (token: string) => string | Promise<string>]> = [
    [
      'alg none [rp-backchannel-rpinitlogout-alg-none]',
      (token) => {
        const header = Buffer.from(JSON.stringify({ alg: 'none', typ })).toString('base64url')
        return token.replace(/^[^.]+/, header).replace(/[^.]+$/, '')
      },
    ],
    [
      'HS256 by the client secret [rp-backchannel-rpinitlogout-wrong-alg]',
      (token) => new SignJWT(decodeJwt(token)).setProtectedHeader({ alg: 'HS256', typ }).sign(Buffer.from(SECRET)),
    ],
    [
      'a signature by another key',
      async (token) => signedWith({ ...(await signingKey('RS256', 'x')), kid: 'k1' }, decodeJwt(token), { typ }),
    ],
    ['rubbish', () => 'rubbish'],
    ['nothing', () => ''],
  ]
  it.each([
    ...wrongClaims.map(([name, claims]) => [name, claims, (token: string) => token] as const),
    ...wrongTokens.map(([name, made]) => [name, {}, made] as const),
  ])('with %s is a 400, and ends nothing', async (_name, claims, made) => {
    const { provider, site, asked } = await start()
    provider.metadata = { id_token_signing_alg_values_supported: ['RS256', 'HS256', 'none'] }
    const page = await send(site, await made(await provider.logoutToken({ sub: 'anna', ...claims })))
    expect([page.status, page.body, page.setCookie, asked]).toEqual([400, '{"error":"invalid_request"}', [], []])
  })

  it('of another typ is a 400, and ends nothing', async () => {
    const { provider, site, asked } = await start()
    expect((await send(site, await provider.logoutToken({ sub: 'anna' }, { typ: 'JWT' }))).status).toBe(400)
    expect(asked).toEqual([])
  })

  it.each(['RS256', 7, {}, ['ES256']])(
    'is a 400 if the provider has the algorithms %j, no list with that of the token',
    async (algorithms) => {
      const { provider, site, asked } = await start()
      provider.metadata = { id_token_signing_alg_values_supported: algorithms }
      const page = await send(site, await provider.logoutToken({ sub: 'anna' }))
      expect([page.status, asked]).toEqual([400, []])
    },
  )

  it.each(['iss', 'aud', 'iat'])('with an inherited %s alone is a 400, and ends nothing', async (name) => {
    const { provider, site, asked } = await start()
    const token = await provider.logoutToken({ sub: 'anna', [name]: undefined })
    const value = { iss: provider.issuer, aud: 'shop', iat: seconds() }[name]
    pollute({ [name]: value })
    expect([(await send(site, token)).status, asked]).toEqual([400, []])
  })

  it('is a 503 while the store or the keys cannot be asked', async () => {
    const down = { ...memoryStore(), insert: () => Promise.reject(new Error('down')) }
    const one = await start({ store: down })
    expect((await send(one.site, await one.provider.logoutToken({ sub: 'anna' }))).status).toBe(503)
    const other = await start()
    other.provider.answers['/jwks'] = failing.error
    const token = await other.provider.logoutToken({ sub: 'anna' })
    expect((await send(other.site, token)).status).toBe(503)
    delete other.provider.answers['/jwks']
    await new Promise((resolve) => setTimeout(resolve, 5))
    expect((await send(other.site, token)).status).toBe(200)
  })
})
