/** `begin(kind, { display: 'popup' })`: a sign-in in a window of its own ends on a page that leads its opener on. */
import { createHash } from 'node:crypto'
import { withAuth } from 'koa-with-auth'
import { begin } from 'koa-with-auth/sign-in'
import type { OidcKind } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { newBrowser, type ProviderSite, type SiteOptions } from '../support/sites/providerSite.js'
import { plainSite, wrongSite } from '../support/sites/wrongProviderSite.js'
import { navigation, type UserAgent } from '../support/servers/userAgent.js'

const routes: SiteOptions['routes'] = (router, kinds) => {
  // Safe: there is one
  router.get('/popup', withAuth(null), begin(Object.values(kinds)[0] as OidcKind, { display: 'popup' }))
}

const start = () => wrongSite({}, { routes })

const toCallback = async (site: ProviderSite, browser: UserAgent, query = ''): Promise<string> => {
  const { stopped } = await browser.open(`${site.origin}/popup${query}`, (url) => url.includes('/callback'))
  return stopped
}

const finished = (browser: UserAgent, url: string) => browser.send(url, { headers: navigation })

describe('O-11 a sign-in in a popup', () => {
  it('ends on a page that has the return path, also without scripts, one script that its policy names, and nothing else', async () => {
    const { provider, site, browser } = await start()
    const url = await toCallback(site, browser, '?returnTo=%2Fbasket%3Fpage%3D2')
    expect(provider.authorizationRequest().get('display')).toBe('popup')
    const page = await finished(browser, url)
    expect([page.status, page.location]).toEqual([200, undefined])
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page.headers.get('cache-control')).toContain('no-store')
    expect(page.headers.get('referrer-policy')).toBe('no-referrer')
    expect(page.headers.get('x-content-type-options')).toBe('nosniff')
    const scripts = [...page.body.matchAll(/<script>([^<]*)<\/script>/g)].map(([, script = '']) => script)
    expect([scripts.length, page.body.match(/<script/g)?.length]).toEqual([1, 1])
    const hash = createHash('sha256').update(scripts[0]!).digest('base64')
    expect(page.headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'sha256-${hash}'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
    )
    expect(page.body).toContain('<a href="/basket?page=2">')
    expect(page.body).toContain('<noscript><meta http-equiv="refresh" content="0;url=/basket?page=2"></noscript>')
    expect(page.body).not.toMatch(/ (?:on\w+|style|src)=|javascript:/)
    const asked = new URL(url).searchParams
    for (const secret of [asked.get('code')!, asked.get('state')!, 'an-access-token', 'anna', provider.issuer]) {
      expect(page.body).not.toContain(secret)
    }
    expect(await site.me(browser)).toBe('provider-anna')
  })

  it.each([
    ['//evil.example', '/'],
    ['/"><script>alert(1)</script>', '/&#34;&#62;&#60;script&#62;alert(1)&#60;/script&#62;'],
    [`/a'b&c;d`, '/a&#39;b&#38;c;d'],
  ])('writes the return path %s as %s', async (returnTo, written) => {
    const { site, browser } = await start()
    const page = await finished(browser, await toCallback(site, browser, `?returnTo=${encodeURIComponent(returnTo)}`))
    expect(page.body).toContain(`<a href="${written}">`)
    expect(page.body.match(/<script/g)).toHaveLength(1)
  })

  it('that comes again, or twice at once, ends on the same page, and the code is sent once', async () => {
    const { provider, site, browser } = await start()
    const url = await toCallback(site, browser, '?returnTo=/basket')
    const pages = await Promise.all([finished(browser, url), finished(browser, url)])
    pages.push(await finished(browser, url))
    for (const page of pages) expect([page.status, page.body]).toEqual([200, pages[0].body])
    expect([provider.asked('/token'), site.done.length]).toEqual([1, 1])
  })

  it('that fails is answered like any other, and in another tab a sign-in without it is a redirect', async () => {
    const { site, browser } = await start()
    const popup = await toCallback(site, browser)
    const tab = await site.toCallback(browser, 'provider', '?returnTo=/tab')
    const elsewhere = await finished(newBrowser(), popup)
    expect([elsewhere.status, JSON.parse(elsewhere.body)]).toMatchObject([400, { reason: 'unknown' }])
    expect(await finished(browser, tab)).toMatchObject({ status: 303, location: `${site.origin}/tab` })
    expect((await finished(browser, popup)).status).toBe(200)
  })

  it('works with plain OAuth 2.0, which has no such parameter', async () => {
    const { provider, site, browser } = await plainSite({}, { routes })
    const page = await finished(browser, await toCallback(site, browser))
    expect([page.status, await site.me(browser)]).toEqual([200, 'plain-7'])
    expect(provider.authorizationRequest().get('display')).toBeNull()
  })

  it('another display is a TypeError', () => {
    // @ts-expect-error there are two ways
    expect(() => begin({ name: 'a', check: () => {}, read: () => {} }, { display: 'touch' })).toThrow(/display.*popup/)
  })
})
