/** Signing in with a real OpenID provider over HTTP. */
import { oidc } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { openIdProvider, type ProviderSettings } from '../support/servers/openIdProvider.js'
import { reserved } from '../support/servers/server.js'
import { newBrowser, providerSite, shopAt, type SiteOptions } from '../support/sites/providerSite.js'
import { navigation, type UserAgent } from '../support/servers/userAgent.js'
import type { OidcOptions } from 'koa-with-auth/sign-in/oidc'

const CALLBACK = '/sign-in/provider/callback'

const start = async (
  over: Partial<OidcOptions> = {},
  settings: Partial<ProviderSettings> = {},
  options: Partial<SiteOptions> = {},
) => {
  const place = await reserved()
  const origin = options.origin?.(place.port) ?? `http://localhost:${place.port}`
  const provider = await openIdProvider({ redirectUris: [origin + CALLBACK], ...settings })
  const kinds: SiteOptions['kinds'] = (callback) => ({
    provider: oidc(shopAt(provider.issuer, callback('provider'), over)),
  })
  const site = await providerSite({ kinds, ...options }, place)
  return { site, provider, browser: newBrowser() }
}

const count = (asked: ReadonlyArray<string>, request: string): number => asked.filter((one) => one === request).length

const refusal = (page: { readonly status: number; readonly body: string }) => [
  page.status,
  (JSON.parse(page.body) as { reason?: string }).reason,
]

const finished = (url: string, browser: UserAgent) => browser.send(url, { headers: navigation })

describe('signing in with a provider', () => {
  it('goes there and back, and is led to where the user wanted to go', async () => {
    const { site, provider, browser } = await start()
    const url = await site.toCallback(browser, 'provider', '?returnTo=%2Fbasket%3Fpage%3D2')
    const page = await finished(url, browser)
    expect([page.status, page.location]).toEqual([303, `${site.origin}/basket?page=2`])
    expect(page.headers.get('cache-control')).toContain('no-store')
    expect(await site.me(browser)).toBe('provider-anna')
    expect(site.done[0]?.proof).toMatchObject({ method: 'oidc', issuer: provider.issuer, subject: 'anna' })
    expect(site.answers[0]).toMatchObject({ claims: { sub: 'anna' }, tokens: { token_type: 'bearer' } })
    expect(count(provider.asked, 'POST /token')).toBe(1)
  })

  // O-01
  it.each([2, 20])('signs in from each of %i tabs, in any order, with one cookie', async (tabs) => {
    const { site, browser } = await start()
    const urls: string[] = []
    for (let tab = 0; tab < tabs; tab++) urls.push(await site.toCallback(browser, 'provider', `?returnTo=/tab/${tab}`))
    const cookies = browser.cookies(`localhost:${site.port}`)
    expect([...cookies.keys()]).toEqual(['browser'])
    const order = urls.map((url, tab) => ({ url, tab })).sort((a, b) => ((a.tab * 7) % tabs) - ((b.tab * 7) % tabs))
    for (const { url, tab } of order) {
      expect(await finished(url, browser)).toMatchObject({ status: 303, location: `${site.origin}/tab/${tab}` })
    }
    expect(await site.me(browser)).toBe('provider-anna')
    expect(site.done).toHaveLength(tabs)
  })

  // O-13: OpenID Connect Core §3.1.2.6
  it('prompt=none asks once, and a refusal begins nothing by itself', async () => {
    const { site, provider, browser } = await start({ prompt: 'none' })
    const page = await site.signIn(browser)
    expect(refusal(page)).toEqual([400, 'provider'])
    expect(count(provider.asked, 'GET /auth')).toBe(1)
    expect([count(provider.asked, 'POST /token'), site.done.length, await site.me(browser)]).toEqual([0, 0, undefined])
  })

  // O-02
  it('leads a callback that is loaded again to where the first one led, without asking the provider', async () => {
    const { site, provider, browser } = await start()
    const url = await site.toCallback(browser, 'provider', '?returnTo=/basket')
    await finished(url, browser)
    const asked = provider.asked.length
    expect(await finished(url, browser)).toMatchObject({ status: 303, location: `${site.origin}/basket` })
    expect([provider.asked.length, provider.reported, site.done.length]).toEqual([asked, [], 1])
    expect(await site.me(browser)).toBe('provider-anna')
    await browser.send(`${site.origin}/sign-out`, { method: 'POST' })
    expect(refusal(await finished(url, browser))).toEqual([400, 'unknown'])
  })

  // C-01
  it('is tied to the browser by one cookie, HttpOnly and Lax, that each beginning renews, and no secret twice', async () => {
    const { site, browser } = await start()
    const begun = await browser.send(`${site.origin}/sign-in/provider`)
    expect(begun.setCookie).toEqual([
      expect.stringMatching(/^browser=[\w-]{43}; path=\/; expires=[^;]+; samesite=lax; httponly$/),
    ])
    expect(begun.headers.get('cache-control')).toBe('no-store')
    const value = browser.cookies(`localhost:${site.port}`).get('browser') ?? ''
    expect((await browser.send(`${site.origin}/sign-in/provider`)).setCookie[0]).toContain(value)
    const longer = { headers: { Cookie: `browser=${value}x` } }
    expect((await newBrowser().send(`${site.origin}/sign-in/provider`, longer)).setCookie[0]).not.toContain(value)
    const url = await site.toCallback(browser)
    for (const Cookie of [`browser=${value}; browser=${'a'.repeat(43)}`, 'browser=short']) {
      expect((await newBrowser().send(url, { headers: { ...navigation, Cookie } })).status).toBe(400)
    }
    expect((await finished(url, browser)).status).toBe(303)
    await browser.send(`${site.origin}/sign-out`, { method: 'POST' })
    expect(browser.cookies(`localhost:${site.port}`).get('browser')).toBe(value)
  })

  // O-02
  it('asks for tokens once when a callback comes five times at once, and leads all to the same place', async () => {
    const { site, provider, browser } = await start()
    const url = await site.toCallback(browser)
    const pages = await Promise.all([1, 2, 3, 4, 5].map(() => finished(url, browser)))
    expect(pages.map(({ status, location }) => [status, location])).toEqual(pages.map(() => [303, `${site.origin}/`]))
    expect(pages.filter(({ setCookie }) => setCookie.some((line) => line.startsWith('session=')))).toHaveLength(1)
    expect(count(provider.asked, 'POST /token')).toBe(1)
    expect([provider.reported, site.done.length]).toEqual([[], 1])
    expect(await site.me(browser)).toBe('provider-anna')
  })

  // O-03
  it('refuses a callback in another browser, or one without cookies, which uses nothing up', async () => {
    const { site, provider, browser } = await start()
    const url = await site.toCallback(browser)
    const other = newBrowser()
    const without = await finished(url, other)
    expect([...refusal(without), without.location, without.setCookie]).toEqual([400, 'unknown', undefined, []])
    expect(without.body).toMatch(/"detail":"[^"]*cookie/)
    await site.toCallback(other)
    expect(refusal(await finished(url, other))).toEqual([400, 'unknown'])
    expect(await site.me(other)).toBeUndefined()
    expect([count(provider.asked, 'POST /token'), site.done.length, site.errors]).toEqual([0, 0, []])
    await finished(url, browser)
    expect(await site.me(browser)).toBe('provider-anna')
  })

  // O-05
  it('starts without its provider, answers 503, and recovers', async () => {
    const { site, provider, browser } = await start({ keys: { retry: 1 } })
    await provider.stop()
    const down = await newBrowser().send(`${site.origin}/sign-in/provider`)
    expect([down.status, Number(down.headers.get('retry-after')) <= 10]).toEqual([503, true])
    await provider.start()
    await site.signIn(browser)
    expect(await site.me(browser)).toBe('provider-anna')
  })

  // O-06
  it.each([true, false])('sends the configured redirect URI behind a proxy, with app.proxy %s', async (proxy) => {
    const { site } = await start({}, {}, { origin: () => 'https://shop.example' })
    site.app.proxy = proxy
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', 'X-Forwarded-Proto': 'https' }
    const page = await newBrowser().send(`http://127.0.0.1:${site.port}/sign-in/provider`, { headers })
    expect(new URL(page.location ?? '').searchParams.get('redirect_uri')).toBe(`https://shop.example${CALLBACK}`)
  })

  // O-12
  it('gives the session another id, and keeps no data that were not named', async () => {
    const { site, browser } = await start()
    await browser.send(`${site.origin}/basket/apple`, { method: 'POST' })
    const before = browser.copy()
    const id = browser.cookies(`localhost:${site.port}`).get('session')
    await site.signIn(browser)
    expect(browser.cookies(`localhost:${site.port}`).get('session')).not.toBe(id)
    expect(await site.me(before)).toBeUndefined()
    expect((await browser.send(`${site.origin}/basket`)).body).toBe('{"basket":null}')
  })

  // O-13
  it.each([
    ['HEAD', { method: 'HEAD' }],
    ['a prefetch', { headers: { 'Sec-Purpose': 'prefetch', 'Sec-Fetch-Site': 'same-origin' } }],
    ['a prefetch of an older browser', { headers: { Purpose: 'prefetch' } }],
    ['a preview', { headers: { 'X-Purpose': 'preview' } }],
    ['a prefetch of an older Firefox', { headers: { 'X-Moz': 'prefetch' } }],
    ['an image', { headers: { 'Sec-Fetch-Dest': 'image', 'Sec-Fetch-Site': 'cross-site' } }],
    [
      'a frame',
      { headers: { 'Sec-Fetch-Dest': 'iframe', 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': 'cross-site' } },
    ],
    ['a script', { headers: { 'Sec-Fetch-Dest': 'empty', 'Sec-Fetch-Mode': 'cors', 'Sec-Fetch-Site': 'cross-site' } }],
  ])('does not begin and does not finish by %s', async (_name, init: RequestInit) => {
    const { site, provider } = await start()
    const page = await newBrowser().send(`${site.origin}/sign-in/provider`, init)
    expect([page.status, page.setCookie, provider.asked]).toEqual([403, [], []])
    const browser = newBrowser()
    const url = await site.toCallback(browser)
    expect((await browser.send(url, init)).status).toBe(403)
    expect(count(provider.asked, 'POST /token')).toBe(0)
    expect((await finished(url, browser)).status).toBe(303)
  })

  // O-13
  it('does not begin by a form in a frame of the same site, nor by a form of another site', async () => {
    const { site, provider, browser } = await start()
    await browser.send(`${site.origin}/sign-in/as/bert`, { method: 'POST' })
    const begun = async (destination: string, from = 'same-origin') => {
      const headers = { 'Sec-Fetch-Dest': destination, 'Sec-Fetch-Mode': 'navigate', 'Sec-Fetch-Site': from }
      return browser.send(`${site.origin}/accounts/provider`, { method: 'POST', headers })
    }
    const page = await begun('iframe')
    expect([page.status, page.setCookie, provider.asked]).toEqual([403, [], []])
    expect((await begun('document', 'cross-site')).status).toBe(403)
    expect((await begun('document')).status).toBe(303)
  })

  // O-15
  it('pushes the authorization request where the provider demands it', async () => {
    const features = { pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests: true } }
    const { site, provider, browser } = await start({}, { features })
    const page = await browser.send(`${site.origin}/sign-in/provider`)
    expect([...new URL(page.location ?? '').searchParams.keys()].sort()).toEqual(['client_id', 'request_uri'])
    await site.signIn(browser)
    expect(await site.me(browser)).toBe('provider-anna')
    expect(provider.asked).toContain('POST /request')
  })

  // O-13, without a browser
  it('answers a posted response with a redirect that changes nothing by itself', async () => {
    const { site, provider, browser } = await start({ responseMode: 'form_post' })
    const begun = await browser.send(`${site.origin}/sign-in/provider`)
    expect(new URL(begun.location ?? '').searchParams.get('response_mode')).toBe('form_post')
    const form = await browser.open(begun.location ?? '')
    const fields = new URLSearchParams(
      [...form.body.matchAll(/name="([^"]+)" value="([^"]*)"/g)].map(
        ([, name = '', value = '']) => [name, value] as [string, string],
      ),
    )
    fields.set('error_description', 'from a stranger')
    const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: provider.issuer, Cookie: '' }
    const page = await browser.send(site.origin + CALLBACK, { method: 'POST', body: fields, headers })
    expect([page.status, page.setCookie, count(provider.asked, 'POST /token')]).toEqual([303, [], 0])
    expect([...new URL(page.location ?? '').searchParams.keys()].sort()).toEqual(['code', 'iss', 'state'])
    await browser.open(page.location ?? '')
    expect(await site.me(browser)).toBe('provider-anna')
    const big = await fetch(site.origin + CALLBACK, {
      method: 'POST',
      body: `state=${'a'.repeat(1_000_000)}`,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    }).catch(() => ({ status: 413 }))
    expect(big.status).toBe(413)
  })
})
