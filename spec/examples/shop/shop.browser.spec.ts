/** The shop in Chromium: without scripts by password, by a passkey without a click, by a provider; and how it looks. */
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { browsing, missingBrowser } from '../../support/servers/browser.js'
import { registeredAt, shopSite } from '../../support/sites/shopSite.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

const signedInAs = async (page: Page, user: string): Promise<void> => {
  await page.waitForSelector(`text=You are signed in as ${user}`)
}
const byPassword = async (page: Page): Promise<void> => {
  await page.getByLabel('Name').fill('anna')
  await page.getByLabel('Password', { exact: true }).fill('anna-secret')
  await page.keyboard.press('Enter')
}

describe.skipIf(missing !== undefined)('the shop in a browser', () => {
  it('signs in by the keyboard without scripts, and says what was wrong', async () => {
    const { origin } = await shopSite()
    const { page, complaints } = await open({ javaScriptEnabled: false })
    await page.goto(`${origin}/sign-in`)
    await page.keyboard.type('anna')
    await page.keyboard.press('Tab')
    await page.keyboard.type('wrong')
    await page.keyboard.press('Enter')
    expect(await page.getByRole('alert').textContent()).toContain('not right')
    await byPassword(page)
    await signedInAs(page, 'anna')
    await page.getByLabel('Item').fill('tea')
    await page.getByRole('button', { name: 'Put it in' }).click()
    expect(await page.getByRole('listitem').textContent()).toBe('tea')
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByRole('link', { name: 'Sign in' }).waitFor()
    expect(complaints).toEqual([])
  })

  it('signs in by a mail without scripts', async () => {
    const site = await shopSite()
    const { page } = await open({ javaScriptEnabled: false })
    await page.goto(`${site.origin}/sign-in`)
    await page.getByLabel('E-mail address').first().fill('bert@shop.example')
    await page.getByRole('button', { name: 'Send me a code' }).click()
    await page.getByLabel('Code of 8 digits').fill((await site.mail()).code ?? '')
    await page.keyboard.press('Enter')
    await signedInAs(page, 'bert')
    // the link of another mail, in the same browser
    await page.goto(`${site.origin}/sign-in`)
    await page.getByLabel('E-mail address').first().fill('anna@shop.example')
    await page.getByRole('button', { name: 'Send me a code' }).click()
    await page.goto((await site.mail()).link ?? '')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await signedInAs(page, 'anna')
  })

  it('registers a passkey, and signs in by conditional UI without a click', async () => {
    const { origin } = await shopSite()
    const { page, complaints } = await open()
    const session = await page.context().newCDPSession(page)
    await session.send('WebAuthn.enable', { enableUI: false })
    await session.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        ctap2Version: 'ctap2_1',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    await page.goto(`${origin}/sign-in`)
    await byPassword(page)
    await signedInAs(page, 'anna')
    await page.getByRole('button', { name: 'Add a passkey' }).click()
    await page.waitForSelector('text=The passkey was added.')
    await page.context().clearCookies()
    await page.goto(`${origin}/sign-in?returnTo=/me`)
    await page.waitForURL(`${origin}/me`)
    expect(await page.textContent('body')).toContain('"userVerified":true')
    expect(complaints).toEqual([])
  })

  it('signs in by the provider', async () => {
    const { origin } = await shopSite({ provider: registeredAt })
    const { page, complaints } = await open()
    await page.goto(`${origin}/sign-in`)
    await page.getByRole('link', { name: 'Continue with your provider' }).click()
    await signedInAs(page, 'provider-anna')
    expect(complaints).toEqual([])
  })

  it.each(['light', 'dark'] as const)('fits a phone and a screen, %s', async (colorScheme) => {
    const { origin } = await shopSite()
    for (const width of [320, 1200]) {
      const { page } = await open({ colorScheme, viewport: { width, height: 900 } })
      for (const path of ['/sign-in?failed=wrong', '/']) {
        await page.goto(origin + path)
        const scrolls = await page.evaluate(
          'document.documentElement.scrollWidth > document.documentElement.clientWidth',
        )
        expect([path, width, scrolls]).toEqual([path, width, false])
        const folder = process.env['SCREENSHOTS']
        if (folder === undefined) continue
        mkdirSync(folder, { recursive: true })
        await page.screenshot({ path: `${folder}/${colorScheme}-${width}${path === '/' ? '-home' : ''}.png` })
      }
      if (colorScheme === 'light' || width === 320) continue
      await page.goto(`${origin}/sign-in`)
      await byPassword(page)
      await signedInAs(page, 'anna')
      const folder = process.env['SCREENSHOTS']
      if (folder !== undefined) await page.screenshot({ path: `${folder}/${colorScheme}-account.png`, fullPage: true })
    }
  })
})
