/** Signing in with a provider of another site in Chromium: what cookies come with, and what the back button does. */
import { oidc, type OidcOptions } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/browser.js'
import { openIdProvider } from '../support/openIdProvider.js'
import { providerSite, reserved, shopAt } from '../support/providerSite.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

// The provider is at 127.0.0.1, the site at localhost: two sites
const start = async (over: Partial<OidcOptions> = {}) => {
  const place = await reserved()
  const origin = `http://localhost:${place.port}`
  const provider = await openIdProvider({ redirectUris: [`${origin}/sign-in/provider/callback`] })
  const kinds = (callback: (name: string) => string) => ({
    provider: oidc(shopAt(provider.issuer, callback('provider'), over)),
  })
  return { site: await providerSite({ kinds }, place), provider }
}

const tokensOf = (asked: ReadonlyArray<string>) => asked.filter((one) => one === 'POST /token').length

describe.skipIf(missing !== undefined)('signing in with a provider, in Chromium', () => {
  // P23
  it.each(['query', 'form_post'] as const)('works with %s and a cookie that is Lax', async (responseMode) => {
    const { site, provider } = await start({ responseMode })
    const { page } = await open()
    await page.goto(`${site.origin}/sign-in/provider?returnTo=/basket/page`)
    await page.waitForURL(`${site.origin}/basket/page`)
    await page.goto(`${site.origin}/me`)
    expect(await page.textContent('body')).toContain('provider-anna')
    expect(tokensOf(provider.asked)).toBe(1)
    const cookies = await page.context().cookies(site.origin)
    expect(cookies.map(({ name, sameSite, httpOnly }) => [name, sameSite, httpOnly]).sort()).toEqual([
      ['browser', 'Lax', true],
      ['session', 'Lax', true],
      ['session.sig', 'Lax', true],
    ])
  })

  // P24
  it('sends no code again when the user goes back, and shows no error', async () => {
    const { site, provider } = await start()
    const { page } = await open()
    await page.goto(`${site.origin}/first`)
    await page.goto(`${site.origin}/sign-in/provider?returnTo=/then`)
    await page.waitForURL(`${site.origin}/then`)
    await page.goto(`${site.origin}/later`)
    await page.goBack()
    expect(await page.textContent('body')).toBe('page /then')
    await page.goBack()
    expect(await page.textContent('body')).toBe('page /first')
    await page.goForward()
    await page.reload()
    expect(await page.textContent('body')).toBe('page /then')
    expect([tokensOf(provider.asked), site.done.length]).toEqual([1, 1])
  })
})
