/** The template "site" in Chromium: without scripts, on a phone, in German; a second factor and a passkey. */
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { templateSite, type TemplateSite } from '../support/sites/templateSite.js'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { describeUnless } from '../support/projects/programs.js'
import { codeOf } from '../support/servers/authenticatorApp.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

const email = 'anna@example.com'
const password = 'four words of some length'

/** Signs up by a mail, and signs in. */
const signUp = async (page: Page, { origin, link }: TemplateSite, path = '/account') => {
  await page.goto(`${origin}/sign-up`)
  await page.getByLabel('E-mail address').fill(email)
  await page.keyboard.press('Enter')
  await page.getByText('We have sent you a link.').waitFor()
  await page.goto(await link())
  // a password manager saves the password for it
  expect(await page.locator('[autocomplete=username]').inputValue()).toBe(email)
  await page.getByLabel('New password').fill('short')
  await page.keyboard.press('Enter')
  expect(await page.getByRole('alert').textContent()).toBe(
    'That is too short: at least 15 characters, such as four words.',
  )
  await page.getByLabel('New password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByText('The password is set').waitFor()
  await page.goto(origin + path)
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password').fill('wrong')
  await page.keyboard.press('Enter')
  expect(await page.getByRole('alert').textContent()).toBe('That was not right. Try again.')
  // a screen reader says it at the field
  const said = await page.getByLabel('Password').getAttribute('aria-describedby')
  expect(await page.locator(`#${said}`).getAttribute('role')).toBe('alert')
  await page.getByLabel('Password').fill(password)
  await page.getByLabel('Stay signed in').check()
  await page.keyboard.press('Enter')
  await page.getByText('Where you are signed in').waitFor()
}

describeUnless(missing, 'the template "site"', () => {
  it('signs up, leads back, asks for the code of an app, and takes a recovery code, without scripts', async () => {
    const served = await templateSite()
    const { page, complaints } = await open({ javaScriptEnabled: false })
    await signUp(page, served)
    await page.getByRole('button', { name: 'Set up' }).click()
    const secret = (await page.locator('img.qr').getAttribute('alt')) ?? ''
    await page.getByLabel('Code').fill(codeOf(secret, 0))
    await page.keyboard.press('Enter')
    const spare = (await page.getByRole('listitem').first().textContent()) ?? ''
    await page.goto(`${served.origin}/account`)
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    for (const typed of [codeOf(secret), spare]) {
      await page.goto(`${served.origin}/account`)
      await page.getByLabel('E-mail address').fill(email)
      await page.getByLabel('Password').fill(password)
      await page.keyboard.press('Enter')
      await page.getByLabel('Code').fill('000')
      await page.keyboard.press('Enter')
      expect(await page.getByRole('alert').textContent()).toBe('That was not right. Try again.')
      await page.getByLabel('Code').fill(typed)
      await page.keyboard.press('Enter')
      await page.getByText('Where you are signed in').waitFor()
      expect(new URL(page.url()).pathname).toBe('/account')
      await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    }
    // wrong passwords and codes are answered with 400 and 403
    expect(complaints.filter((one) => !/40[03]/.test(one))).toEqual([])
  })

  it('ends the session of another browser, and says so once', async () => {
    const served = await templateSite()
    const { page } = await open()
    await signUp(page, served)
    const { page: phone } = await open({ userAgent: 'A phone' })
    await phone.goto(`${served.origin}/sign-in?returnTo=/account`)
    await phone.getByLabel('E-mail address').fill(email)
    await phone.getByLabel('Password').fill(password)
    await phone.keyboard.press('Enter')
    await phone.getByText('Where you are signed in').waitFor()
    await page.reload()
    await page.locator('li:has(b:text-is("Browser"))').getByRole('button').click()
    expect(await page.getByRole('status').textContent()).toBe('That device is signed out.')
    await page.reload()
    expect(await page.getByRole('status').count()).toBe(0)
    await phone.reload()
    await phone.getByRole('heading', { name: 'Sign in' }).waitFor()
    await page.goto(`${served.origin}/admin`)
    expect(await page.getByRole('alert').textContent()).toBe('This page is not for you.')
    expect((await page.goto(`${served.origin}/nowhere`))?.status()).toBe(404)
    expect(await page.getByRole('alert').textContent()).toBe('There is no such page.')
  })

  it('signs in by a passkey, and speaks German', async () => {
    const served = await templateSite()
    const { page, complaints } = await open({ locale: 'en-US' })
    const devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
    await signUp(page, served)
    await Promise.all([page.waitForEvent('load'), page.getByRole('button', { name: 'Add a passkey' }).click()])
    expect(await page.getByRole('status').textContent()).toBe('The passkey is added.')
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.goto(`${served.origin}/sign-in?returnTo=/account`)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('Where you are signed in').waitFor()
    const passkey = page.locator('li:has(b:text-is("Passkey"))')
    expect(await passkey.textContent()).toContain('last used')
    await passkey.getByRole('button', { name: 'Remove' }).click()
    expect(await page.getByRole('status').textContent()).toBe('The passkey is removed.')
    expect(await passkey.count()).toBe(0)
    expect(complaints.filter((one) => !/40[03]/.test(one))).toEqual([])
    const { page: german } = await open({ locale: 'de-DE' })
    await german.goto(`${served.origin}/account`)
    expect(await german.getByRole('heading').textContent()).toBe('Anmelden')
    expect(await german.locator('html').getAttribute('lang')).toBe('de')
    // the heading above recovery codes breaks where it must
    await german.setViewportSize({ width: 390, height: 800 })
    await german.evaluate('document.querySelector("h1").textContent = "Wiederherstellungscodes"')
    expect(await german.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
  })
})
