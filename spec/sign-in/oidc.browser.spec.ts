/** Signing in with a provider of another site in Chromium: what cookies come with, and what the back button does. */
import { withAuth } from 'koa-with-auth'
import { begin } from 'koa-with-auth/sign-in'
import { oidc, type OidcKind, type OidcOptions } from 'koa-with-auth/sign-in/oidc'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { openIdProvider } from '../support/servers/openIdProvider.js'
import { providerSite, shopAt } from '../support/sites/providerSite.js'
import { describeUnless } from '../support/projects/programs.js'
import { reserved } from '../support/servers/server.js'

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
  const site = await providerSite(
    {
      kinds,
      routes: (router, { provider: kind }) => {
        router.get('/popup', withAuth(null), begin(kind as OidcKind, { display: 'popup' }))
        router.get('/opener', withAuth(null), (ctx) => {
          ctx.type = 'html'
          ctx.body = '<!doctype html><title>opener</title>'
        })
      },
    },
    place,
  )
  return { site, provider }
}

/** Opens a window from a page, which keeps the messages that it gets. */
const openWindow = async (page: Page, url: string, features = 'popup'): Promise<Page> => {
  await page.evaluate('window.got = []; addEventListener("message", ({ data, origin }) => got.push([data, origin]))')
  const opened = page.context().waitForEvent('page')
  await page.evaluate(`void window.open('${url}', '_blank', '${features}')`)
  return opened
}

const messages = (page: Page): Promise<unknown> => page.evaluate('got')

const tokensOf = (asked: ReadonlyArray<string>) => asked.filter((one) => one === 'POST /token').length

describeUnless(missing, 'signing in with a provider, in Chromium', () => {
  // O-13
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
    ])
  })

  // O-02
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

  // O-11
  it('in a popup posts the return path to the page that opened it, and closes the popup', async () => {
    const { site } = await start()
    const { page, complaints } = await open()
    await page.goto(`${site.origin}/opener`)
    const popup = await openWindow(page, `${site.origin}/popup?returnTo=/then`)
    await (popup.isClosed() ? undefined : popup.waitForEvent('close'))
    expect(await messages(page)).toEqual([['/then', site.origin]])
    expect(complaints).toEqual([])
    await page.goto(`${site.origin}/me`)
    expect(await page.textContent('body')).toContain('provider-anna')
  })

  it('in a popup of another site posts nothing, and leads on', async () => {
    const { site, provider } = await start()
    const { page } = await open()
    await page.goto(`${provider.issuer}/.well-known/openid-configuration`)
    const popup = await openWindow(page, `${site.origin}/popup?returnTo=/then`)
    await popup.waitForURL(`${site.origin}/then`)
    expect(await messages(page)).toEqual([])
  })

  it.each([
    ['whose opener was closed', 'popup', true],
    ['without an opener', 'popup,noopener', false],
  ])('in a popup %s leads on', async (_name, features, closes) => {
    const { site } = await start()
    const { page } = await open()
    await page.goto(`${site.origin}/opener`)
    const popup = await openWindow(page, `${site.origin}/first`, features)
    await popup.waitForURL(`${site.origin}/first`)
    if (closes) await page.close()
    await popup.goto(`${site.origin}/popup?returnTo=/then`)
    await popup.waitForURL(`${site.origin}/then`)
    expect(await popup.textContent('body')).toBe('page /then')
  })

  it('in a popup leads on without scripts', async () => {
    const { site } = await start()
    const { page } = await open({ javaScriptEnabled: false })
    await page.goto(`${site.origin}/popup?returnTo=/then`)
    await page.waitForURL(`${site.origin}/then`)
  })
})
