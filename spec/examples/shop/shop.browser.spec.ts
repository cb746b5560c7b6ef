/** The shop in Chromium: without scripts by password, by a passkey without a click, by a provider; and how it looks. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../../support/servers/browser.js'
import { enrolled } from '../../support/sites/shopClient.js'
import { codeOf } from '../../support/servers/authenticatorApp.js'
import { ANOTHER, registeredAt, shopSite } from '../../support/sites/shopSite.js'
import { describeUnless } from '../../support/projects/programs.js'

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

describeUnless(missing, 'the shop in a browser', () => {
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
    await page.getByLabel('Something else').fill('tea')
    await page.getByRole('button', { name: 'Add it' }).click()
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

  it('asks for a code again after a wrong one, and says what became of a reset, without scripts', async () => {
    const site = await shopSite()
    const { secret } = await enrolled(site)
    const { page, complaints } = await open({ javaScriptEnabled: false })
    await page.goto(`${site.origin}/sign-in`)
    await byPassword(page)
    await page.getByLabel('Code of your authenticator app').fill('000000')
    await page.keyboard.press('Enter')
    expect(await page.getByRole('alert').textContent()).toContain('not right')
    await page.getByLabel('Code of your authenticator app').fill(codeOf(secret))
    await page.keyboard.press('Enter')
    await signedInAs(page, 'anna')
    await page.goto(`${site.origin}/sign-in`)
    await page.getByText('Forgot the password?').click()
    await page.getByLabel('E-mail address').last().fill('anna@shop.example')
    await page.getByRole('button', { name: 'Set a new password' }).click()
    expect(await page.getByRole('status').first().textContent()).toContain('is on its way')
    await page.goto((await site.mail()).link ?? '')
    await page.getByLabel('New password').fill(ANOTHER)
    await page.getByRole('button', { name: 'Save' }).click()
    expect(await page.getByRole('status').first().textContent()).toContain('Sign in with it')
    // a password that is wrong is no wrong code
    await byPassword(page)
    expect(await page.getByRole('alert').textContent()).toContain('not right')
    expect(await page.getByLabel('Password', { exact: true }).count()).toBe(1)
    expect(complaints).toEqual([])
  })

  it('sets an authenticator app up, and signs in by it and by a recovery code, without scripts', async () => {
    const site = await shopSite()
    const { page, complaints } = await open({ javaScriptEnabled: false, viewport: { width: 320, height: 900 } })
    await page.goto(`${site.origin}/sign-in`)
    await byPassword(page)
    await page.getByRole('button', { name: 'Set up an authenticator app' }).click()
    const secret = ((await page.locator('code').textContent()) ?? '').replaceAll(' ', '')
    expect(secret).toMatch(/^[A-Z2-7]{32}$/)
    const link = page.getByRole('link', { name: 'Open it in an app on this device' })
    expect(await link.getAttribute('href')).toContain(`secret=${secret}`)
    const scrolls = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    expect(await page.evaluate(scrolls)).toBe(false)
    // a wrong code asks again, without the secret
    await page.getByLabel('Code of your authenticator app').fill('000000')
    await page.keyboard.press('Enter')
    expect(await page.getByRole('alert').textContent()).toContain('not right')
    expect(await page.locator('code').count()).toBe(0)
    await page.getByLabel('Code of your authenticator app').fill(codeOf(secret, 0))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Recovery codes' }).waitFor()
    const codes = await page.getByRole('listitem').allTextContents()
    expect(codes).toHaveLength(10)
    expect(await page.evaluate(scrolls)).toBe(false)
    await page.getByRole('link', { name: 'Back to the shop' }).click()
    await page.getByText('Signing in asks for a code').waitFor()
    for (const code of [codeOf(secret), codes[0] ?? '']) {
      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
      await page.goto(`${site.origin}/sign-in`)
      await byPassword(page)
      await page.getByLabel('or a recovery code').fill(code)
      await page.keyboard.press('Enter')
      await signedInAs(page, 'anna')
    }
    await page.getByRole('button', { name: 'New recovery codes' }).click()
    expect(await page.getByRole('listitem').allTextContents()).not.toContain(codes[1])
    await page.getByRole('link', { name: 'Back to the shop' }).click()
    await page.getByRole('button', { name: 'Remove the authenticator app' }).click()
    await page.getByRole('button', { name: 'Set up an authenticator app' }).waitFor()
    expect(complaints).toEqual([])
  })

  it('lists sessions, and ends one of them, without scripts', async () => {
    const site = await shopSite()
    const elsewhere = await site.signedIn()
    const { page, complaints } = await open({ javaScriptEnabled: false })
    await page.goto(`${site.origin}/sign-in`)
    await byPassword(page)
    await page.getByRole('link', { name: 'Where you are signed in' }).click()
    expect(await page.locator('.card h2').count()).toBe(2)
    await page.getByRole('button', { name: 'End it' }).click()
    await page.getByRole('heading', { name: 'This browser' }).waitFor()
    expect(await page.locator('.card h2').count()).toBe(1)
    expect(await page.getByRole('status').textContent()).toBe('That device is signed out.')
    expect((await elsewhere.get('/me')).status).toBe(401)
    expect(complaints).toEqual([])
  })

  const withPasskey = async (origin: string) => {
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
    return { page, complaints }
  }

  it('registers a passkey, and signs in by conditional UI without a click', async () => {
    const { origin } = await shopSite()
    const { page, complaints } = await withPasskey(origin)
    await page.goto(`${origin}/sign-in?returnTo=/me`)
    await page.waitForURL(`${origin}/me`)
    expect(await page.textContent('body')).toContain('"userVerified":true')
    expect(complaints).toEqual([])
  })

  it('asks again by itself if the answer of a passkey was late', async () => {
    const { origin } = await shopSite()
    const { page } = await withPasskey(origin)
    let answers = 0
    await page.route('**/sign-in/passkey', (route) =>
      ++answers === 1 ? route.fulfill({ status: 400, json: { reason: 'late' } }) : route.continue(),
    )
    await page.goto(`${origin}/sign-in?returnTo=/me`)
    await page.waitForURL(`${origin}/me`)
    expect(answers).toBe(2)
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
      }
      // each good, and the basket, is a card
      const styles =
        "[...document.querySelectorAll('.goods article, .card')].map((one) => getComputedStyle(one).borderTopStyle)"
      expect(await page.evaluate(styles)).toEqual(Array(4).fill('solid'))
    }
  })
})
