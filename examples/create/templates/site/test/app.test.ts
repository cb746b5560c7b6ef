import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { chromium } from 'playwright-core'
import { site } from '../src/app.js'
import { settingsIn } from '../src/settings.js'
import { openDatabase } from '../src/store.js'

const origin = 'http://localhost:4173'
const password = 'four words of some length'

test('who signs up by a mail is signed in, in a browser', async (t: TestContext) => {
  const executablePath = process.env['CHROMIUM'] ?? '/usr/bin/chromium'
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] }).catch(() => undefined)
  if (browser === undefined) return t.skip('no browser; set CHROMIUM')
  const mails: string[] = []
  const database = await openDatabase('file::memory:')
  const app = await site(settingsIn({ ORIGIN: origin }), database, async (_to, _subject, text) => void mails.push(text))
  const server = app.listen(4173, '127.0.0.1')
  t.after(async () => {
    await browser.close()
    server.close().closeAllConnections()
    await database.close()
  })
  const page = await browser.newPage({ locale: 'en-US' })
  await page.goto(`${origin}/account`) // leads to the sign-in page
  await page.getByText('New here').click()
  await page.getByLabel('E-mail address').fill('anna@example.com')
  await page.keyboard.press('Enter')
  await page.getByText('We have sent you a link.').waitFor()
  await page.goto(/http\S+/.exec(mails[0] ?? '')?.[0] ?? '')
  await page.getByLabel('New password').fill('too short')
  await page.keyboard.press('Enter')
  await page.getByText('That is too short').waitFor()
  await page.getByLabel('New password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByText('The password is set').waitFor()
  await page.goto(`${origin}/account`)
  await page.getByLabel('E-mail address').fill('anna@example.com')
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByText('Where you are signed in').waitFor()
  assert.equal(new URL(page.url()).pathname, '/account')
})
