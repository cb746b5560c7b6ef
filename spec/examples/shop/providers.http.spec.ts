/** The shop with an OpenID provider and with passkeys, over HTTP. */
import { createServer } from 'node:http'
import { softwareAuthenticator } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import type { JsonClient } from '../../support/servers/jsonClient.js'
import { listening } from '../../support/servers/server.js'
import { userAgent, navigation, type UserAgent } from '../../support/servers/userAgent.js'
import { wrongProvider } from '../../support/servers/wrongProvider.js'
import { member } from '../../support/sites/shopClient.js'
import { registeredAt, shopSite, type ShopSite } from '../../support/sites/shopSite.js'

const json = { Accept: 'application/json' }

const provided = async () => {
  let provider: Awaited<ReturnType<typeof registeredAt>> | undefined
  const site = await shopSite({ provider: async (origin) => (provider = await registeredAt(origin)) })
  return { site, provider: provider! }
}
const isCallback = (name: string) => (url: string) => url.includes(`/sign-in/${name}/callback`)
const meOf = async (site: ShopSite, browser: UserAgent): Promise<unknown> => {
  const { status, body } = await browser.send(`${site.origin}/me`, { headers: json })
  return status === 200 ? (JSON.parse(body) as { user: unknown }).user : status
}

describe('providers', () => {
  it('sign in, and lead again where they led; an identity gets an account', async () => {
    const { site, provider } = await provided()
    const browser = userAgent()
    const { stopped } = await browser.open(`${site.origin}/sign-in/provider?returnTo=/basket`, isCallback('provider'))
    const answers = await Promise.all([1, 2, 3].map(() => browser.send(stopped, { headers: navigation })))
    expect(answers.map(({ status, location }) => [status, location])).toEqual(
      Array.from({ length: 3 }, () => [303, `${site.origin}/basket`]),
    )
    expect(provider.asked.filter((one) => one === 'POST /token')).toHaveLength(1)
    expect(await meOf(site, browser)).toBe('provider-anna')
    const again = await browser.send(stopped, { headers: navigation })
    expect([again.status, again.location]).toEqual([303, `${site.origin}/basket`])
    const foreign = await userAgent().send(stopped, { headers: navigation })
    expect(foreign.location).toBe(`${site.origin}/sign-in?failed=unknown`)
    await browser.send(`${site.origin}/sign-out`, { method: 'POST', headers: json })
    const out = await browser.send(stopped, { headers: json })
    expect([out.status, out.setCookie]).toEqual([400, []])
  })

  it('link an identity with a fresh proof, never one of another account', async () => {
    const { site, provider } = await provided()
    const other = userAgent()
    const first = await other.open(`${site.origin}/sign-in/provider`, isCallback('provider'))
    await other.send(first.stopped, { headers: navigation })

    const browser = userAgent()
    const headers = { 'Content-Type': 'application/json' }
    const body = JSON.stringify({ username: 'anna', password: 'anna-secret' })
    await browser.send(`${site.origin}/sign-in/password`, { method: 'POST', headers, body })
    for (const [subject, status] of [
      ['anna', 409],
      ['carol', 303],
      ['carol', 303],
    ] as const) {
      provider.subject = subject
      const begun = await browser.send(`${site.origin}/accounts/provider`, { method: 'POST' })
      expect(begun.status).toBe(303)
      const { stopped } = await userAgent().open(begun.location ?? '', isCallback('provider'))
      expect((await browser.send(stopped, { headers: json })).status).toBe(status)
    }
    const { body: list } = await browser.send(`${site.origin}/accounts`, { headers: json })
    expect(JSON.parse(list)).toEqual([{ issuer: provider.issuer, subject: 'carol' }])
  })

  it('end the session here first, and lead back', async () => {
    const { site, provider } = await provided()
    const browser = userAgent()
    const { stopped } = await browser.open(`${site.origin}/sign-in/provider`, isCallback('provider'))
    await browser.send(stopped, { headers: navigation })
    expect((await browser.send(`${site.origin}/sign-out/provider`)).status).toBe(405)
    const out = await browser.send(`${site.origin}/sign-out/provider`, { method: 'POST' })
    expect([out.status, new URL(out.location ?? '').origin]).toEqual([303, provider.issuer])
    expect(await meOf(site, browser)).toBe(401)
    const back = await browser.send(`${site.origin}/signed-out?state=x`, { headers: navigation })
    expect([back.status, back.location]).toEqual([303, `${site.origin}/`])
  })

  it('that are down are 503 for begin, and sign out here all the same', async () => {
    const site = await shopSite()
    const page = await userAgent().send(`${site.origin}/sign-in/provider`, { headers: navigation })
    expect([page.status, Number(page.headers.get('retry-after')) <= 10]).toEqual([503, true])
    const visitor = await site.signedIn()
    const out = await visitor.post('/sign-out/provider')
    expect([out.status, out.headers.get('location')]).toEqual([303, '/'])
    expect((await visitor.get('/me')).status).toBe(401)
  })
})

/** A provider without OpenID Connect, whose API answers this about its user. */
const plainProvider = async (id: unknown, status: number): Promise<string> => {
  const server = createServer((req, res) => {
    const url = new URL(req.url ?? '', 'http://localhost')
    if (url.pathname === '/authorize') {
      const back = new URL(url.searchParams.get('redirect_uri') ?? '')
      back.search = new URLSearchParams({ code: 'c', state: url.searchParams.get('state') ?? '' }).toString()
      return void res.writeHead(302, { Location: back.href }).end()
    }
    const [answer, own] =
      url.pathname === '/token' ? [{ access_token: 'plain-token', token_type: 'bearer' }, 200] : [{ id }, status]
    const isKnown = url.pathname === '/token' || req.headers.authorization === 'Bearer plain-token'
    res.writeHead(isKnown ? own : 418, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer))
  })
  const at = `http://127.0.0.1:${await listening(server)}`
  return JSON.stringify({
    ...{ authorize: `${at}/authorize`, token: `${at}/token`, user: `${at}/user` },
    ...{ clientId: 'plain', clientSecret: 'plain secret' },
  })
}

it.each([
  [7, 200, 'plain-7'],
  [0, 200, 'plain-0'],
  ['abc', 200, 'plain-abc'],
  ['', 200, 400],
  [null, 200, 400],
  [true, 200, 400],
  [['a'], 200, 400],
  [undefined, 200, 400],
  [7, 500, 503],
  [7, 429, 503],
  [7, 401, 400],
])('a provider without OpenID that answers the id %j and %i: %s', async (id, status, expected) => {
  const site = await shopSite({ env: { PLAIN: await plainProvider(id, status) } })
  const browser = userAgent()
  const { stopped } = await browser.open(`${site.origin}/sign-in/plain`, isCallback('plain'))
  const page = await browser.send(stopped, { headers: json })
  expect(page.status === 303 ? await meOf(site, browser) : page.status).toBe(expected)
})

describe('what a provider says of its user', () => {
  const signedInBy = async (more: object = {}) => {
    const provider = await wrongProvider()
    const site = await shopSite({ provider: async () => provider })
    const browser = userAgent()
    const through = async (url: string) => {
      const { stopped } = await browser.open(url, isCallback('provider'))
      return browser.send(stopped, { headers: json })
    }
    provider.claims = (given) => ({ ...given, ...more })
    await through(`${site.origin}/sign-in/provider`)
    return { provider, site, browser, through }
  }

  it.each([
    ['anna', 303],
    ['berta', 403],
  ])('is a fresh proof of the user who is signed in alone: of %s it is %i', async (sub, status) => {
    const { provider, site, browser, through } = await signedInBy()
    const asked = await browser.send(`${site.origin}/prove/provider`, { method: 'POST', headers: json })
    provider.claims = (given) => ({ ...given, sub, auth_time: Math.floor(Date.now() / 1000) })
    const to = asked.location ?? (JSON.parse(asked.body) as { location: string }).location
    expect([(await through(to)).status, provider.authorizationRequest().get('max_age')]).toEqual([status, '0'])
  })

  it.each([
    [{ sub: 'anna' }, 200, 401],
    [{ sub: 'anna', sid: 's1' }, 200, 401],
    [{ sub: 'anna', sid: 's2' }, 200, 'provider-anna'],
    [{ sub: 'unknown' }, 200, 'provider-anna'],
    [{ sub: 'anna', nonce: 'x' }, 400, 'provider-anna'],
  ])('ends by a logout token of %j: %i', async (claims, status, after) => {
    const { provider, site, browser } = await signedInBy({ sid: 's1' })
    const body = new URLSearchParams({ logout_token: await provider.logoutToken(claims) })
    const headers = { 'Sec-Fetch-Site': 'cross-site', Cookie: 'shop=x' }
    const page = await userAgent().send(`${site.origin}/sign-out/backchannel`, { method: 'POST', headers, body })
    expect([page.status, page.setCookie, await meOf(site, browser)]).toEqual([status, [], after])
  })
})

describe('passkeys', () => {
  const registered = async (site: ShopSite, user = 'anna') => {
    const visitor = await site.signedIn(user)
    const phone = softwareAuthenticator({ origin: site.origin })
    const created = phone.create((await visitor.post('/passkeys/options')).body as never)
    const reply = await visitor.post('/passkeys', created)
    expect([reply.status, member(reply, 'id')]).toEqual([201, created.id])
    return { visitor, phone, created }
  }
  const use = async (visitor: JsonClient, phone: ReturnType<typeof softwareAuthenticator>, path = '/sign-in/passkey') =>
    visitor.post(path, phone.get((await visitor.post(`${path}/options`, { returnTo: '/basket' })).body as never))

  it('are registered, sign in as both factors, and prove', async () => {
    const site = await shopSite()
    const { phone, visitor, created } = await registered(site)
    expect((await visitor.post('/passkeys', created)).status).toBe(400)
    const another = site.client()
    const used = await use(another, phone)
    expect([used.status, used.body]).toEqual([200, { returnTo: '/basket' }])
    expect((await another.get('/me')).body).toMatchObject({
      user: 'anna',
      proofs: [{ method: 'passkey', at: expect.any(Number) as unknown, userVerified: true, backedUp: true }],
    })
    expect((await another.get('/vault')).status).toBe(200)
    expect((await visitor.get('/vault')).status).toBe(403)
    expect((await use(visitor, phone, '/prove/passkey')).status).toBe(204)
    expect((await visitor.get('/vault')).status).toBe(200)
  })

  it('are removed by their user only, but for the last way to sign in', async () => {
    const site = await shopSite()
    const { visitor, created } = await registered(site)
    const bert = await site.signedIn('bert')
    expect((await bert.send('DELETE', `/passkeys/${created.id}`)).status).toBe(404)
    const second = await registered(site)
    expect((await visitor.send('DELETE', `/passkeys/${second.created.id}`)).status).toBe(204)
    expect((await visitor.send('DELETE', `/passkeys/${second.created.id}`)).status).toBe(404)
    expect((await use(site.client(), second.phone)).status).toBe(400)
    expect((await visitor.send('DELETE', '/password')).status).toBe(204)
    expect((await visitor.send('DELETE', `/passkeys/${created.id}`)).status).toBe(409)
    expect((await visitor.get('/passkeys')).body).toMatchObject([{ id: created.id }])
  })

  it('related origins are listed', async () => {
    const site = await shopSite({ env: { RELATED_ORIGINS: 'https://shop.example, https://shop.test' } })
    const { body } = await site.client().get('/.well-known/webauthn')
    expect(body).toEqual({ origins: ['https://shop.example', 'https://shop.test'] })
  })
})
