/** The shop with providers that do wrong, or are down, over HTTP. */
import { Buffer } from 'node:buffer'
import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { signedWith, signingKey } from '../../support/servers/identityProvider.js'
import { navigation, userAgent, type Page, type UserAgent } from '../../support/servers/userAgent.js'
import { failing, json, wrongProvider, type WrongProvider } from '../../support/servers/wrongProvider.js'
import { shopSite, type ShopSite } from '../../support/sites/shopSite.js'
import { stoppedClock } from '../../support/runs/clock.js'
import { listening } from '../../support/servers/server.js'

const asJson = { Accept: 'application/json' }
const reasonOf = ({ status, body }: Page): readonly [number, unknown] => [
  status,
  body.startsWith('{') ? (JSON.parse(body) as { reason?: unknown }).reason : undefined,
]
const isCallback = (url: string): boolean => url.includes('/callback?')

const started = async (env: Readonly<Record<string, string>> = {}) => {
  const provider = await wrongProvider()
  const site = await shopSite({ env, provider: async () => provider })
  return { site, provider }
}
const callbackFor = async ({ origin }: ShopSite, browser: UserAgent, path = '/sign-in/provider') =>
  (await browser.open(origin + path, isCallback)).stopped
const tried = async (site: ShopSite, path?: string) => {
  const browser = userAgent()
  return browser.send(await callbackFor(site, browser, path), { headers: asJson })
}

const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')

describe('an answer of a provider', () => {
  const wrong: ReadonlyArray<readonly [string, (provider: WrongProvider) => void, string]> = [
    ['an empty sub', (p) => (p.claims = (given) => ({ ...given, sub: '' })), 'provider'],
    [
      'a wrong iss in the ID token',
      (p) => (p.claims = (given) => ({ ...given, iss: 'https://evil.example' })),
      'provider',
    ],
    ['a wrong nonce', (p) => (p.claims = (given) => ({ ...given, nonce: 'x' })), 'provider'],
    ['alg none', (p) => (p.idToken = (given) => `${part({ alg: 'none' })}.${part(given)}.`), 'provider'],
    [
      'a cut signature, from the token endpoint',
      (p) => (p.idToken = async (given) => (await signedWith(p.keys[0]!, given)).slice(0, -20)),
      'provider',
    ],
    ['no ID token', (p) => (p.tokens = ({ id_token: _, ...given }) => given), 'provider'],
    [
      'another iss beside the code',
      (p) => (p.response = (given) => given.set('iss', 'https://evil.example')),
      'provider',
    ],
    ['no iss, which was promised', (p) => (p.response = (given) => given.delete('iss')), 'provider'],
    [
      'access_denied',
      (p) => (p.response = (given) => (given.delete('code'), given.set('error', 'access_denied'))),
      'declined',
    ],
    ['invalid_grant', (p) => (p.answers['/token'] = json(400, { error: 'invalid_grant' })), 'late'],
  ]
  it.each(wrong)('with %s is refused, and no user is signed in', async (_name, change, reason) => {
    const { site, provider } = await started()
    change(provider)
    const browser = userAgent()
    const page = await browser.send(await callbackFor(site, browser), { headers: asJson })
    expect(reasonOf(page)).toEqual([400, reason])
    expect(page.headers.get('cache-control')).toContain('no-store')
    expect((await browser.send(`${site.origin}/me`, { headers: asJson })).status).toBe(401)
    expect(page.body).not.toContain('secret')
  })

  it.each(['server_error', 'temporarily_unavailable'])('with %s is 503', async (error) => {
    const { site, provider } = await started()
    provider.response = (given) => (given.delete('code'), given.set('error', error))
    expect((await tried(site)).status).toBe(503)
  })

  it.each(['login_required', 'consent_required', 'interaction_required', 'invalid_request'])(
    'with %s is below 500',
    async (error) => {
      const { site, provider } = await started()
      provider.response = (given) => (given.delete('code'), given.set('error', error))
      const { status } = await tried(site)
      expect([status >= 400, status < 500]).toEqual([true, true])
    },
  )

  it.each(['error', 'html', 'cutOff', 'null', 'empty'] as const)('at the token endpoint: %s is 503', async (way) => {
    const { site, provider } = await started()
    provider.answers['/token'] = failing[way]
    const page = await tried(site)
    expect([page.status, Number(page.headers.get('retry-after')) <= 10, page.setCookie]).toEqual([503, true, []])
    expect(page.body).not.toContain('secret')
  })

  it.each(['hanging', 'slow', 'endless'] as const)(
    'at the token endpoint: %s is 503 within the time limit',
    async (way) => {
      const { site, provider } = await started()
      provider.answers['/token'] = failing[way]
      expect((await tried(site)).status).toBe(503)
    },
  )

  it('of a client that the provider refuses is 500', async () => {
    const { site, provider } = await started()
    provider.answers['/token'] = json(401, { error: 'invalid_client' })
    expect((await tried(site)).status).toBe(500)
  })

  it('with a key that was rotated is found; unknown kids do not fetch the keys each time', async () => {
    const clock = stoppedClock()
    const { site, provider } = await started()
    expect((await tried(site)).status).toBe(303)
    provider.keys.unshift(await signingKey('RS256', 'k2'))
    let status = 0
    for (let at = 0; at < 20 && status !== 303; at++) {
      status = (await tried(site)).status
      if (status !== 303) clock.move(1000)
    }
    expect(status).toBe(303)
    const stranger = await signingKey('RS256', 'k3')
    const before = provider.asked('/jwks')
    provider.idToken = (given) => signedWith(stranger, given)
    for (let at = 0; at < 5; at++) expect((await tried(site)).status).toBe(400)
    expect(provider.asked('/jwks') - before).toBeLessThanOrEqual(1)
  })
})

describe('a begin', () => {
  it.each(['hanging', 'html', 'cutOff', 'error'] as const)(
    'at a provider whose discovery is %s is 503, and is tried again',
    async (way) => {
      const clock = stoppedClock()
      const { site, provider } = await started()
      provider.answers['/discovery'] = failing[way]
      const page = await userAgent().send(`${site.origin}/sign-in/provider`, { headers: navigation })
      const wait = Number(page.headers.get('retry-after'))
      expect([page.status, wait > 0 && wait <= 10]).toEqual([503, true])
      delete provider.answers['/discovery']
      clock.move(wait * 1000)
      expect((await userAgent().send(`${site.origin}/sign-in/provider`, { headers: navigation })).status).toBe(303)
    },
  )

  it('pushes where the provider demands it: a failed push is 503, a refused client 500', async () => {
    const { site, provider } = await started()
    provider.metadata = { require_pushed_authorization_requests: true }
    expect((await tried(site)).status).toBe(303)
    expect(provider.asked('/par')).toBe(1)
    provider.answers['/par'] = failing.error
    const begun = () => userAgent().send(`${site.origin}/sign-in/provider`, { headers: asJson })
    expect((await begun()).status).toBe(503)
    provider.answers['/par'] = json(401, { error: 'invalid_client' })
    expect((await begun()).status).toBe(500)
  })

  it('sends what a strict provider demands', async () => {
    const { site, provider } = await started()
    expect((await tried(site)).status).toBe(303)
    const asked = Object.fromEntries(provider.authorizationRequest())
    expect(asked).toMatchObject({
      redirect_uri: `${site.origin}/sign-in/provider/callback`,
      response_type: 'code',
      code_challenge_method: 'S256',
      client_id: 'shop',
    })
    expect(asked['nonce']).toBeTruthy()
    await tried(site, '/sign-in/posted').catch(() => undefined)
    expect(provider.authorizationRequest().get('response_mode')).toBe('form_post')
  })
})

describe('a callback', () => {
  it('after its time is late', async () => {
    const clock = stoppedClock()
    const { site } = await started({ LIFETIME_MS: '1500' })
    const browser = userAgent()
    const url = await callbackFor(site, browser)
    clock.move(1600)
    expect(reasonOf(await browser.send(url, { headers: asJson }))).toEqual([400, 'late'])
  })

  it('of each of two tabs signs in, in any order', async () => {
    const { site } = await started()
    const browser = userAgent()
    const [one, other] = [
      await callbackFor(site, browser),
      await callbackFor(site, browser, '/sign-in/provider?returnTo=/me'),
    ]
    expect((await browser.send(one, { headers: navigation })).location).toBe(`${site.origin}/`)
    expect((await browser.send(other, { headers: navigation })).location).toBe(`${site.origin}/me`)
  })

  it.each([
    '//evil.example',
    '/\\evil.example',
    '/a%2fb',
    '/a%5cb',
    `/${'a'.repeat(2000)}`,
    '/ä',
    'https://evil.example',
  ])('leads home for the path %s', async (path) => {
    const { site } = await started()
    const browser = userAgent()
    const url = await callbackFor(site, browser, `/sign-in/provider?returnTo=${encodeURIComponent(path)}`)
    expect((await browser.send(url, { headers: navigation })).location).toBe(`${site.origin}/`)
  })
})

const plainProvider = async () => {
  const asked: string[] = []
  const state: { id: unknown; status: number } = { id: 7, status: 200 }
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '', 'http://localhost')
    asked.push(`${url.pathname} ${req.headers.authorization ?? ''}`)
    if (url.pathname === '/authorize') {
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      back.search = new URLSearchParams({ code: 'c', state: url.searchParams.get('state') ?? '' }).toString()
      return void res.writeHead(302, { Location: back.href }).end()
    }
    const answer = url.pathname === '/token' ? { access_token: 'plain-token', token_type: 'bearer' } : { id: state.id }
    const status = url.pathname === '/user' ? state.status : 200
    res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
  })
  const at = `http://127.0.0.1:${await listening(server)}`
  const PLAIN = JSON.stringify({
    ...{ authorize: `${at}/authorize`, token: `${at}/token`, user: `${at}/user` },
    ...{ clientId: 'plain', clientSecret: 'plain secret' },
  })
  return { PLAIN, state, asked }
}

describe('a provider without OpenID', () => {
  it.each([
    [7, 'plain-7'],
    [0, 'plain-0'],
    ['abc', 'plain-abc'],
  ])('signs in by the id %s', async (id, user) => {
    const { PLAIN, state, asked } = await plainProvider()
    const { site } = await started({ PLAIN })
    state.id = id
    const browser = userAgent()
    const page = await browser.send(await callbackFor(site, browser, '/sign-in/plain'), { headers: asJson })
    expect(page.status).toBe(303)
    expect(JSON.parse((await browser.send(`${site.origin}/me`, { headers: asJson })).body)).toMatchObject({ user })
    expect(asked).toContain(`/token Basic ${Buffer.from('plain:plain+secret').toString('base64')}`)
    expect(asked).toContain('/user Bearer plain-token')
  })

  it.each([[''], [null], [1.5], [true], [{}], [['a']], [undefined], [2 ** 60]])('refuses the id %j', async (id) => {
    const { PLAIN, state } = await plainProvider()
    const { site } = await started({ PLAIN })
    state.id = id
    const { status } = await tried(site, '/sign-in/plain')
    expect(status).toBe(400)
  })

  it.each([
    [500, 503],
    [429, 503],
    [401, 400],
  ])('whose user answers %i is %i', async (status, expected) => {
    const { PLAIN, state } = await plainProvider()
    const { site } = await started({ PLAIN })
    state.status = status
    expect((await tried(site, '/sign-in/plain')).status).toBe(expected)
  })
})

describe('a fresh proof by the provider', () => {
  const proven = async (sub?: string): Promise<Page> => {
    const { site, provider } = await started()
    const browser = userAgent()
    await browser.send(await callbackFor(site, browser), { headers: asJson })
    const asked = await browser.send(`${site.origin}/prove/provider`, {
      method: 'POST',
      headers: { ...asJson, 'Sec-Fetch-Site': 'same-origin' },
    })
    provider.claims = (given) => ({ ...given, auth_time: Math.floor(Date.now() / 1000), ...(sub && { sub }) })
    const to = asked.location ?? (JSON.parse(asked.body) as { location: string }).location
    const { stopped } = await browser.open(to, isCallback)
    expect(provider.authorizationRequest().get('max_age')).toBe('0')
    return browser.send(stopped, { headers: asJson })
  }
  it('is of the user who is signed in', async () => {
    expect((await proven()).status).toBe(303)
  })
  it.each(['berta', 'unknown'])('is refused if it is of %s', async (sub) => {
    const page = await proven(sub)
    expect([page.status, page.location]).toEqual([403, undefined])
  })
})

describe('back-channel logout', () => {
  const send = ({ origin }: ShopSite, token: string) =>
    userAgent().send(`${origin}/sign-out/backchannel`, {
      method: 'POST',
      headers: { 'Sec-Fetch-Site': 'cross-site', Cookie: 'shop=x' },
      body: new URLSearchParams({ logout_token: token }),
    })

  it('ends the sessions of the identity, once for each token', async () => {
    const { site, provider } = await started()
    const browser = userAgent()
    await browser.send(await callbackFor(site, browser), { headers: asJson })
    const me = async () => (await browser.send(`${site.origin}/me`, { headers: asJson })).status
    const bad = [
      await provider.logoutToken({ sub: 'anna', nonce: 'x' }),
      await provider.logoutToken({ sub: 'anna', events: {} }),
      await provider.logoutToken({ sub: 'anna', jti: undefined }),
      await provider.logoutToken({ sub: 'anna', iat: undefined }),
      await provider.logoutToken({ sub: 'anna', aud: 'another' }),
      await provider.logoutToken({ sub: 'anna' }, { typ: 'JWT' }),
      'rubbish',
      '',
    ]
    for (const token of bad) {
      const page = await send(site, token)
      expect([page.status, page.setCookie]).toEqual([400, []])
    }
    expect((await send(site, await provider.logoutToken({ sub: 'unknown' }))).status).toBe(200)
    expect(await me()).toBe(200)
    const token = await provider.logoutToken({ sub: 'anna' })
    const page = await send(site, token)
    expect([page.status, page.setCookie, await me()]).toEqual([200, [], 401])
    expect((await send(site, token)).status).toBe(400)
  })

  it('with sid and sub ends that session only', async () => {
    const { site, provider } = await started()
    const browsers: UserAgent[] = []
    for (const sid of ['s1', 's2']) {
      provider.claims = (given) => ({ ...given, sid })
      const browser = userAgent()
      await browser.send(await callbackFor(site, browser), { headers: asJson })
      browsers.push(browser)
    }
    expect((await send(site, await provider.logoutToken({ sub: 'anna', sid: 's1' }))).status).toBe(200)
    const statuses = browsers.map(
      async (browser) => (await browser.send(`${site.origin}/me`, { headers: asJson })).status,
    )
    expect(await Promise.all(statuses)).toEqual([401, 200])
  })
})
