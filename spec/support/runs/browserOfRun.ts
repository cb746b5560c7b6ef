/** The one browser of a run: the global setup of the browser specs starts it, and each page has a context of its own. */
import { chromium } from 'playwright-core'
import { browserOptions, browserVariable } from '../servers/browser.js'

/** The global setup of the browser specs. It starts nothing without a Chromium. */
export const setup = async (): Promise<(() => Promise<void>) | undefined> => {
  const options = browserOptions(process.env)
  if (options === undefined) return undefined
  const server = await chromium.launchServer(options)
  process.env[browserVariable] = server.wsEndpoint()
  return () => server.close()
}
