/** A sign-in that leads to another origin arrives there, from each plain page, in Chromium and in Firefox. */
import { createRequire } from 'node:module'
import { expect, it, onTestFinished } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { describeUnless, missingProgram, programPath } from '../support/projects/programs.js'
import { pagesSite } from '../support/sites/pagesSite.js'
import { running } from '../support/models/behavior.js'
import { pathOf } from '../support/sites/signInSite.js'

/** A page, as far as both drivers of browsers have it. */
interface Driven {
  readonly goto: (url: string) => Promise<unknown>
  readonly goBack: () => Promise<unknown>
  readonly goForward: () => Promise<unknown>
  readonly url: () => string
  readonly locator: (selector: string) => {
    readonly fill: (text: string) => Promise<void>
    readonly click: () => Promise<void>
  }
}

interface Puppeteer {
  readonly launch: (options: object) => Promise<{
    readonly newPage: () => Promise<Driven>
    readonly close: () => Promise<void>
  }>
}

const firefox = ['firefox-esr', 'firefox']

// Playwright drives a Firefox of its own only
const inFirefox = async (): Promise<Driven> => {
  // Safe: it is the package that .ci installs, whose types are not installed here
  const puppeteer = createRequire(new URL('../../.ci/package.json', import.meta.url))('puppeteer-core') as Puppeteer
  const executablePath = programPath(firefox, process.env)
  const browser = await puppeteer.launch({ browser: 'firefox', executablePath })
  onTestFinished(() => browser.close())
  return browser.newPage()
}

const leadsAway = async (page: Driven) => {
  const other = await running((app) => app.use((ctx) => (ctx.body = 'the other site')))
  const away = `http://127.0.0.1:${other.port}/`
  const { site, mail } = await pagesSite({ away })
  const at = (path: string) => page.goto(`http://localhost:${site.port}${path}`)
  const type = (name: string, text: string) => page.locator(`input[name=${name}]`).fill(text)
  const send = () => page.locator('main button').click()
  const arrives = () => expect.poll(() => page.url()).toBe(away)
  await at('/password?returnTo=/away')
  await type('username', 'anna')
  await type('password', 'anna-secret')
  await send()
  await type('code', '')
  await page.goBack()
  await type('password', '')
  await page.goForward()
  await type('code', '1')
  await send()
  await arrives()
  await at('/mail?returnTo=/away')
  await type('address', 'anna@shop.example')
  await send()
  await type('code', '')
  await page.goBack()
  await page.goForward()
  const sent = await mail()
  await type('code', sent?.code ?? '')
  await send()
  await arrives()
  // the mail is opened again, in the session that it made
  await at(pathOf(sent?.link ?? ''))
  await send()
  await arrives()
}

const title = 'from the page of a code, of a mail and of a link; back and forward ask for nothing'
const missing = missingBrowser()
const open = missing === undefined ? browsing() : undefined!

describeUnless(missing, 'a sign-in arrives at another site, in Chromium', () => {
  it(title, async () => leadsAway((await open({ locale: 'en-US' })).page))
})

describeUnless(missingProgram(firefox, process.env), 'a sign-in arrives at another site, in Firefox', () => {
  it(title, async () => leadsAway(await inFirefox()))
})
