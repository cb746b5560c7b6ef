/** The library's own pages in Chromium: on a phone, without scripts, for a screen reader, in two languages. */
import { mkdirSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { describeUnless } from '../support/projects/programs.js'
import { pagesSite } from '../support/sites/pagesSite.js'
import { pathOf } from '../support/sites/signInSite.js'

const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

const german = {
  begin: 'Anmelden',
  // too long for one line of a phone
  failed: 'Wiederherstellungscodefehler',
  username: 'Name',
  password: 'Passwort',
  remember: 'Angemeldet bleiben',
  send: 'Weiter',
  wrong: 'Das stimmte nicht.',
}

/** What a screen reader finds, and how the page fits the window. For whoever looks at the pages, a picture. */
const lookAt = async (page: Page, name: string) => {
  const folder = process.env['SCREENSHOTS']
  if (folder !== undefined) {
    mkdirSync(folder, { recursive: true })
    await page.screenshot({ path: `${folder}/plain-${name}.png`, fullPage: true })
  }
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  expect(await page.title()).toBe(await page.getByRole('heading', { level: 1 }).textContent())
  return (await page.locator('body').ariaSnapshot()).split('\n').map((line) => line.trim())
}

const sendForm = (page: Page) => Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')])

describeUnless(missing, 'a page of the library', () => {
  it('Q-04 has one heading, labelled fields, and what was wrong at each field, on a phone without scripts', async () => {
    const { site, mail } = await pagesSite({ texts: { de: german } })
    const { page, complaints } = await open({
      javaScriptEnabled: false,
      locale: 'en-US',
      viewport: { width: 390, height: 800 },
    })
    const at = (path: string) => page.goto(`http://localhost:${site.port}${path}`)
    await at('/password')
    expect(await lookAt(page, '1-sign-in')).toEqual([
      '- main:',
      '- heading "Sign in" [level=1]',
      '- paragraph:',
      '- text: Name',
      '- textbox "Name"',
      '- paragraph:',
      '- text: Password',
      '- textbox "Password"',
      '- paragraph:',
      '- checkbox "Stay signed in"',
      '- text: Stay signed in',
      '- button "Continue"',
    ])
    // the keyboard alone
    await page.keyboard.press('Tab')
    await page.keyboard.type('anna')
    await page.keyboard.press('Tab')
    await page.keyboard.type('wrong')
    await sendForm(page)
    const wrong = 'That was not right. Check what you typed, and try again.'
    expect(await lookAt(page, '2-wrong')).toContain(`- alert: ${wrong}`)
    for (const name of ['Name', 'Password']) {
      const field = page.getByRole('textbox', { name, exact: true })
      expect(await field.getAttribute('aria-invalid')).toBe('true')
      expect(await page.locator(`#${await field.getAttribute('aria-describedby')}`).textContent()).toBe(wrong)
    }
    expect(await page.getByRole('textbox', { name: 'Name' }).inputValue()).toBe('anna')
    await page.getByRole('textbox', { name: 'Password' }).fill('anna-secret')
    await sendForm(page)
    expect(await lookAt(page, '3-code')).toContain('- textbox "Code"')
    await at('/reset')
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('anna@shop.example')
    await sendForm(page)
    expect(await lookAt(page, '4-sent')).toContain('- link "Continue":')
    await at(pathOf((await mail())?.link ?? ''))
    await page.getByRole('textbox', { name: 'New password' }).fill('short')
    await sendForm(page)
    expect(await lookAt(page, '5-weak')).toContain(
      '- alert: This password is too short, or too common. Choose another one.',
    )
    await page.getByRole('textbox', { name: 'New password' }).fill('a longer one')
    await sendForm(page)
    expect(await lookAt(page, '6-done')).toContain('- heading "The new password is set" [level=1]')
    expect(complaints.filter((one) => !/40[03]/.test(one))).toEqual([])
  })

  it('shows a password manager the account of a new password', async () => {
    const { site, mail } = await pagesSite()
    const { page } = await open({ javaScriptEnabled: false, locale: 'en-US' })
    await page.goto(`http://localhost:${site.port}/reset`)
    await page.getByRole('textbox', { name: 'E-mail address' }).fill('anna@shop.example')
    await sendForm(page)
    await page.goto(`http://localhost:${site.port}${pathOf((await mail())?.link ?? '')}`)
    for (const password of ['short', 'a longer one']) {
      const account = page.locator('[autocomplete=username]')
      expect([await account.inputValue(), await account.getAttribute('readonly')]).toEqual(['anna@shop.example', ''])
      await page.getByRole('textbox', { name: 'New password' }).fill(password)
      await sendForm(page)
    }
    expect(await page.title()).toBe('The new password is set')
  })

  it('Q-04 is in the language of the request', async () => {
    const { site } = await pagesSite({ texts: { de: german } })
    const { page } = await open({ javaScriptEnabled: false, locale: 'de-AT', viewport: { width: 390, height: 800 } })
    await page.goto(`http://localhost:${site.port}/password`)
    await page.getByRole('textbox', { name: 'Name' }).fill('anna')
    await page.getByRole('textbox', { name: 'Passwort' }).fill('wrong')
    await sendForm(page)
    expect(await lookAt(page, '7-german')).toEqual(
      expect.arrayContaining(['- heading "Wiederherstellungscodefehler" [level=1]', '- alert: Das stimmte nicht.']),
    )
    expect(await page.locator('html').getAttribute('lang')).toBe('de')
  })
})
