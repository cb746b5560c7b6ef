/** Chromium for the suites that need a real browser: the one on the PATH, as Debian installs it. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'

const names = ['chromium', 'chromium-browser', 'google-chrome']

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** What is missing, or `undefined`. Where `CI` is set it is an error: nothing may be skipped there. */
export const missingBrowser = (env: NodeJS.ProcessEnv = process.env): string | undefined => {
  if (browserPath(env) !== undefined) return undefined
  const fix = 'no chromium on the PATH; apt-get install chromium'
  if (env['CI']) throw new Error(fix)
  console.warn(`skipped: ${fix}`)
  return fix
}

/** Where the browser is. */
export const browserPath = (env: NodeJS.ProcessEnv = process.env): string | undefined =>
  (env['PATH'] ?? '')
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isExecutable)

/** What went wrong on a page, and whom it asked. */
export interface Watched {
  readonly page: Page
  /** Errors and warnings of the console, errors that nothing caught, and violations of the page's policy. */
  readonly complaints: string[]
  /** The origins of all requests. */
  readonly origins: Set<string>
  /** Prompts that the browser opened. */
  readonly dialogs: string[]
}

/** A browser while the surrounding suite runs; each page has a profile of its own. */
export const browsing = () => {
  let browser: Browser | undefined
  beforeAll(async () => {
    browser = await chromium.launch({
      executablePath: browserPath() ?? '',
      args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    })
  }, 60_000)
  afterAll(() => browser?.close())
  return async (options: BrowserContextOptions = {}): Promise<Watched> => {
    const context = await browser!.newContext(options)
    const page = await context.newPage()
    const watched: Watched = { page, complaints: [], origins: new Set(), dialogs: [] }
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) watched.complaints.push(message.text())
    })
    page.on('pageerror', (error) => watched.complaints.push(String(error)))
    page.on('request', (request) => watched.origins.add(new URL(request.url()).origin))
    page.on('dialog', (dialog) => {
      watched.dialogs.push(dialog.message())
      void dialog.dismiss()
    })
    return watched
  }
}
