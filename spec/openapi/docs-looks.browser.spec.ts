/**
 * How the docs page looks: narrow and wide, light and dark. Screenshots are written to the folder of SCREENSHOTS, if it
 * is set.
 */
import { mkdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { block, openDocs } from '../support/sites/docsPage.js'
import { exampleSite } from '../support/sites/exampleSite.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()
const folder = process.env['SCREENSHOTS']
if (folder) mkdirSync(folder, { recursive: true })

const brightness = (colour: string): number =>
  colour
    .match(/\d+/g)!
    .slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0) / 3

describeUnless(missing, 'the looks of the docs page', () => {
  const open = browsing()
  const site = exampleSite()

  // Each switches to the other colours at its end
  it.each([
    { width: 'wide', colorScheme: 'light', viewport: { width: 1280, height: 900 } },
    { width: 'narrow', colorScheme: 'dark', viewport: { width: 360, height: 760 } },
  ] as const)(
    '$width, $colorScheme: nothing is cut off, and the colours are those of the system',
    async ({ width, colorScheme, viewport }) => {
      const { page } = await open({ viewport, colorScheme })
      const shot = async (name: string, fullPage = false) => {
        if (folder) await page.screenshot({ path: `${folder}/${width}-${colorScheme}-${name}.png`, fullPage })
      }
      const overflow = () =>
        page
          .locator('html')
          .evaluate((html) => Number(Reflect.get(html, 'scrollWidth')) - Number(Reflect.get(html, 'clientWidth')))
      const background = () =>
        page.locator('html').evaluate((html) => {
          const style = (
            Reflect.get(globalThis, 'getComputedStyle') as (of: unknown) => { readonly backgroundColor: string }
          )(html)
          return style.backgroundColor
        })
      await page.goto(site.now().url)
      await shot('home')
      expect(await overflow()).toBe(0)

      await openDocs(page, `${site.now().url}/api/docs`)
      await shot('page', true)
      expect(await overflow()).toBe(0)
      expect(brightness(await background()) > 128).toBe(colorScheme === 'light')
      // A description next to its heading would become a column of single letters
      for (const description of await page.locator('.opblock-tag small').all()) {
        expect((await description.boundingBox())!.height).toBeLessThan(100)
      }

      const operation = block(page, 'post', '/api/token')
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('.try-out__btn').click()
      await operation.locator('.btn.execute').click()
      await operation.locator('.live-responses-table').waitFor()
      if (folder) await operation.screenshot({ path: `${folder}/${width}-${colorScheme}-operation.png` })
      expect(await overflow()).toBe(0)

      await page.locator('.auth-wrapper .btn.authorize').click()
      const dialog = (await page.locator('.modal-ux').boundingBox())!
      await shot('dialog')
      expect([dialog.x >= 8, dialog.x + dialog.width <= viewport.width - 8]).toEqual([true, true])

      await page.emulateMedia({ colorScheme: colorScheme === 'light' ? 'dark' : 'light' })
      await expect.poll(async () => brightness(await background()) > 128).toBe(colorScheme === 'dark')
    },
  )
})
