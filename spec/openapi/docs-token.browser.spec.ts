/** The docs page of an API with tokens of a provider: Authorize asks for a token, and a test call sends it. */
import { apiApp } from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import Koa from 'koa'
import { expect, it } from 'vitest'
import { browsing, missingBrowser } from '../support/servers/browser.js'
import { authorize, openDocs, tryOut } from '../support/sites/docsPage.js'
import { API, identityProvider } from '../support/servers/identityProvider.js'
import { listen } from '../support/servers/server.js'
import { describeUnless } from '../support/projects/programs.js'

const missing = missingBrowser()

describeUnless(missing, 'tokens on the docs page', () => {
  const open = browsing()

  it('the page offers http bearer JWT, even if discovery is used', async () => {
    const provider = await identityProvider()
    const api = apiApp({
      title: 'Files',
      version: '1',
      prefix: '/api',
      auth: httpJwt({ issuer: provider.issuer, audience: API }),
    })
    api.get('/me', (ctx) => {
      ctx.body = { sub: ctx.request.auth.sub }
    })
    const app = new Koa()
    app.use(api.routes())
    const { url } = await listen(app)
    const { page } = await open()
    await openDocs(page, `${url}/api/docs`)
    expect(await tryOut(page, 'get', '/api/me')).toMatchObject({ status: 401 })
    await authorize(page, 'bearer_JWT', await provider.token())
    expect(await tryOut(page, 'get', '/api/me')).toMatchObject({ status: 200 })
  })
})
