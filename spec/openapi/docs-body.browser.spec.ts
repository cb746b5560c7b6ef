/** The docs page has a field for the body of an operation whose `requestBody` is a schema or a codec, and a test call sends it. */
import { bodyParser } from '@koa/bodyparser'
import * as t from 'io-ts'
import Koa from 'koa'
import { apiApp, operation, type Schema } from 'koa-with-auth'
import * as v from 'valibot'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { block, openDocs, tryOut } from '../support/sites/docsPage.js'
import { listen } from '../support/servers/server.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()

const bodies: Readonly<Record<string, Schema<unknown>>> = {
  '/zod': z.object({ name: z.string() }),
  '/io-ts': t.type({ name: t.string }),
  // it has no JSON Schema
  '/valibot': v.object({ name: v.string() }),
}

describeUnless(missing, 'bodies on the docs page', () => {
  const open = browsing()

  it('each has a field, and what is typed there is sent as JSON', async () => {
    const api = apiApp({ title: 'Pets', version: '1', prefix: '/api', auth: null })
    const app = new Koa().use(bodyParser())
    for (const [path, requestBody] of Object.entries(bodies)) {
      api.post(path, operation({ requestBody }), (ctx) => {
        ctx.body = { got: ctx.request.body }
      })
    }
    app.use(api.routes())
    const { url } = await listen(app)
    const { page, complaints } = await open()
    await openDocs(page, `${url}/api/docs`)
    for (const path of Object.keys(bodies)) {
      const operation = block(page, 'post', `/api${path}`)
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('.try-out__btn').click()
      const field = operation.locator('textarea.body-param__text')
      await field.waitFor()
      const shown: unknown = JSON.parse(await field.inputValue())
      expect(shown, path).toEqual(path === '/valibot' ? {} : { name: 'string' })
      await field.fill('{"name":"Rex"}')
      const { status, response } = await tryOut(page, 'post', `/api${path}`)
      expect([status, await response.json()], path).toEqual([200, { got: { name: 'Rex' } }])
    }
    expect(complaints).toEqual([])
  })
})
