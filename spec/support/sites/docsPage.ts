/** What a user does on the docs page, in a real browser. */
import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'

/** Opens the page, and waits until it shows the operations. */
export const openDocs = async (page: Page, url: string): Promise<void> => {
  await page.goto(url)
  await page.locator('.opblock').first().waitFor()
}

/** The block of an operation. */
export const block = (page: Page, method: string, path: string): Locator =>
  page.locator(`.opblock.opblock-${method}`, { has: page.locator(`[data-path="${path}"]`) })

/** `get /api/bearer` of every operation with a padlock. */
export const padlocked = (page: Page): Promise<string[]> =>
  page.locator('.opblock:has(.authorization__btn)').evaluateAll((blocks) =>
    // Safe: this runs in the browser, whose elements Node's types do not have
    (blocks as unknown as ReadonlyArray<BrowserElement>).map((one) =>
      [
        one.querySelector('.opblock-summary-method').textContent.toLowerCase(),
        one.querySelector('[data-path]').getAttribute('data-path'),
      ].join(' '),
    ),
  )

interface BrowserElement {
  readonly textContent: string
  querySelector(selectors: string): BrowserElement
  getAttribute(name: string): string
}

const inDialog = async (page: Page, scheme: string, act: (container: Locator) => Promise<void>): Promise<void> => {
  await page.locator('.auth-wrapper .btn.authorize').first().click()
  await act(page.locator('.auth-container', { has: page.locator(`h4 code:text-is("${scheme}")`) }))
  await page.locator('.modal-ux .close-modal').click()
}

const applying = (container: Locator): Locator => container.locator('button', { hasText: 'Authorize' })
const removing = (container: Locator): Locator => container.locator('button', { hasText: 'Logout' })

/** Enters credentials for a scheme in the Authorize dialog. */
export const authorize = (page: Page, scheme: string, ...values: ReadonlyArray<string>): Promise<void> =>
  inDialog(page, scheme, async (container) => {
    for (const [at, value] of values.entries()) await container.locator('input').nth(at).fill(value)
    await applying(container).click()
    await removing(container).waitFor()
  })

/** Removes credentials. */
export const logOut = (page: Page, scheme: string): Promise<void> =>
  inDialog(page, scheme, async (container) => {
    await removing(container).click()
    await applying(container).waitFor()
  })

/** A test call: the status that the page shows, and what the browser sent. */
export const tryOut = async (page: Page, method: string, path: string) => {
  const operation = block(page, method, path)
  const execute = operation.locator('.btn.execute')
  if (!(await operation.getAttribute('class'))?.includes('is-open')) {
    await operation.locator('.opblock-summary-control').click()
    await operation.locator('.try-out__btn').click()
    await execute.waitFor()
  }
  const clear = operation.locator('.btn-clear')
  if (await clear.isVisible()) await clear.click()
  const answered = page.waitForResponse((one) => new URL(one.url()).pathname === path)
  await execute.click()
  const response = await answered
  const shown = operation.locator('.live-responses-table tbody .response-col_status').first()
  await expect.poll(() => shown.textContent()).toContain(String(response.status()))
  const request = response.request()
  return { status: response.status(), url: request.url(), headers: await request.allHeaders(), response }
}
