/** Chromium for the suites that need a real browser: the one on the PATH, as Debian installs it. */
import { chromium, type Browser, type BrowserContextOptions } from 'playwright-core'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import { missingProgram, programPath } from '../projects/programs.js'

const names = ['chromium', 'chromium-browser', 'google-chrome']

/** What is missing, or `undefined`. If `CI` is set, it is an error, because nothing may be skipped there. */
export const missingBrowser = (env: NodeJS.ProcessEnv = process.env): string | undefined => missingProgram(names, env)

/** The environment variable that has the address of the browser of a run. */
export const browserVariable = 'KOA_WITH_AUTH_BROWSER'

/** How it is started; `undefined` without a Chromium. */
export const browserOptions = (env: NodeJS.ProcessEnv) => {
  const executablePath = programPath(names, env)
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking']
  return executablePath === undefined ? undefined : { executablePath, args }
}

/** A browser while the surrounding suite runs. Each page has its own profile, and is closed after its test. */
export const browsing = () => {
  let browser: Browser | undefined
  beforeAll(async () => {
    const known = process.env[browserVariable]
    browser = await (known === undefined ? chromium.launch(browserOptions(process.env)) : chromium.connect(known))
  })
  afterAll(() => browser?.close())
  return async (options: BrowserContextOptions = {}) => {
    const context = await browser!.newContext(options)
    onTestFinished(() => context.close())
    const page = await context.newPage()
    // A click waits until its target stops moving, and Swagger UI's buttons move for half a second
    const devtools = await context.newCDPSession(page)
    await devtools.send('Animation.enable')
    await devtools.send('Animation.setPlaybackRate', { playbackRate: 1000 })
    /** Errors and warnings of the console, uncaught errors, and violations of the page's policy. */
    const complaints: string[] = []
    /** Those of all requests. */
    const origins = new Set<string>()
    /** Prompts that the browser opened. */
    const dialogs: string[] = []
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
    })
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('request', (request) => origins.add(new URL(request.url()).origin))
    page.on('dialog', (dialog) => {
      dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    return { page, complaints, origins, dialogs }
  }
}
