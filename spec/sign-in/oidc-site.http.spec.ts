/** What a site adds to a provider that does everything right: return paths, cookies, processes, and a proxy with TLS. */
import { oidc, type OidcProof } from 'koa-with-auth/sign-in/oidc'
import type { Done } from 'koa-with-auth/sign-in'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { newBrowser, providerSite, shopAt } from '../support/sites/providerSite.js'
import { wrongSite as start } from '../support/sites/wrongProviderSite.js'
import { missingTls, tlsProxy } from '../support/servers/tlsProxy.js'
import { navigation } from '../support/servers/userAgent.js'
import { wrongProvider } from '../support/servers/wrongProvider.js'
import { describeUnless } from '../support/projects/programs.js'
import { reserved } from '../support/servers/server.js'

describe('O-09 an e-mail address', () => {
  it('is in no proof, so that no user can be found by it', () => {
    expectTypeOf<Extract<keyof OidcProof, `email${string}` | 'name' | 'preferred_username'>>().toBeNever()
    // @ts-expect-error there is no option that takes an address for an account
    expect(() => oidc({ ...shopAt('https://provider.example', '/callback'), subject: 'email' })).toThrow('subject')
  })

  it('of somebody else, verified or not, leads to no other account', async () => {
    const { provider, site } = await start()
    for (const [sub, verified] of [
      ['anna', true],
      ['mallory', true],
      ['eve', false],
    ] as const) {
      provider.claims = (given) => ({ ...given, sub, email: 'anna@shop.example', email_verified: verified })
      const browser = newBrowser()
      await site.signIn(browser)
      expect(await site.me(browser)).toBe(`provider-${sub}`)
    }
    expect(site.done.map(({ proof }: Done) => JSON.stringify(proof)).join()).not.toContain('@')
  })
})

describe('O-11 the path that follows', () => {
  it('is that of the beginning, if it comes once; what the callback says about it is not read', async () => {
    const { site, browser } = await start()
    for (const [query, late, path] of [
      ['?returnTo=/one&returnTo=//evil.example', '', '/'],
      ['?returnTo=/one', '', '/one'],
      ['?returnTo[]=/one', '', '/'],
      [`?returnTo=/${'a'.repeat(3000)}`, '', '/'],
      ['', '&returnTo=/late', '/'],
    ] as const) {
      const url = `${await site.toCallback(browser, 'provider', query)}${late}`
      expect((await browser.send(url, { headers: navigation })).location, query).toBe(`${site.origin}${path}`)
    }
  })
})

describeUnless(missingTls(), 'O-06 behind a proxy that ends TLS', () => {
  const started = async (proxied: boolean) => {
    const place = await reserved()
    const { origin } = await tlsProxy(() => place.port)
    const provider = await wrongProvider()
    const kinds = (callback: (name: string) => string) => ({
      provider: oidc(shopAt(provider.issuer, callback('provider'))),
    })
    const site = await providerSite({ kinds, origin: () => origin, https: true }, place)
    site.app.proxy = proxied
    return { provider, site, origin }
  }

  it('signs in at the https origin, with cookies that are Secure and of this host', async () => {
    const { provider, site, origin } = await started(true)
    const browser = newBrowser()
    const url = await site.toCallback(browser)
    expect(url.startsWith(`${origin}/sign-in/provider/callback?`)).toBe(true)
    expect(provider.authorizationRequest().get('redirect_uri')).toBe(`${origin}/sign-in/provider/callback`)
    const page = await browser.send(url, { headers: navigation })
    expect([page.status, page.headers.get('location'), await site.me(browser)]).toEqual([303, '/', 'provider-anna'])
    const cookies = browser.cookies(new URL(origin).host)
    expect([...cookies.keys()].sort()).toEqual(['__Host-browser', '__Host-session'])
    for (const line of page.setCookie)
      expect(line).toMatch(/^__Host-(?=.*; path=\/)(?=.*; secure)(?=.*; httponly)(?!.*domain)/i)
  })
})
