/** O-17: what a provider's proof is worth, when an operation asks for a fresh one. */
import type Router from '@koa/router'
import { sessionAuth, withAuth } from 'koa-with-auth'
import { oidc } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { newBrowser, providerSite, shopAt, type ProviderSite } from '../support/sites/providerSite.js'
import { plainKind } from '../support/sites/wrongProviderSite.js'
import { seconds } from '../support/servers/identityProvider.js'
import { navigation, type UserAgent } from '../support/servers/userAgent.js'
import { wrongProvider, type WrongProvider } from '../support/servers/wrongProvider.js'

const HOUR = 3600

const start = async () => {
  const provider = await wrongProvider()
  const site = await providerSite({
    kinds: (callback) => ({
      provider: oidc(shopAt(provider.issuer, callback('provider'))),
      plain: plainKind(provider.issuer, callback('plain')),
    }),
    routes: (router: Router) => {
      const fresh = withAuth(sessionAuth({ proof: { maxAge: 300_000 } }))
      router.post('/transfer', fresh, (ctx) => (ctx.body = { done: true }))
      router.post('/hour', withAuth(sessionAuth({ proof: { maxAge: 3 * HOUR * 1000 } })), (ctx) => (ctx.body = {}))
      router.post(
        '/method',
        withAuth(sessionAuth({ proof: { methods: ['oidc', 'oauth2'] } })),
        (ctx) => (ctx.body = {}),
      )
    },
  })
  return { provider, site, browser: newBrowser() }
}

const asked = async (site: ProviderSite, browser: UserAgent, ...paths: ReadonlyArray<string>) => {
  const statuses: number[] = []
  for (const path of paths) statuses.push((await browser.send(`${site.origin}${path}`, { method: 'POST' })).status)
  return statuses
}

const saying = (provider: WrongProvider, said: object) => {
  provider.claims = (claims) => ({ ...claims, ...said })
}

describe('O-05 a provider whose discovery document lacks an endpoint', () => {
  it.each(['token_endpoint', 'authorization_endpoint'])('%s is a 503 at the beginning', async (name) => {
    const { provider, site, browser } = await start()
    provider.metadata = { [name]: undefined }
    const page = await browser.send(`${site.origin}/sign-in/provider`, { headers: { Accept: 'application/json' } })
    expect([page.status, page.headers.get('retry-after'), provider.asked('/authorize')]).toEqual([
      503,
      expect.any(String),
      0,
    ])
  })
})

describe('O-17 a sign-in at a provider', () => {
  it.each([
    ['that says nothing of the time', () => ({}), [403, 403, 200]],
    ['that asked the user two hours ago', () => ({ auth_time: seconds() - 2 * HOUR }), [403, 200, 200]],
    ['that asked the user now', () => ({ auth_time: seconds() }), [200, 200, 200]],
  ])('%s', async (_name, said, expected) => {
    const { provider, site, browser } = await start()
    saying(provider, said())
    await site.signIn(browser)
    expect(await asked(site, browser, '/transfer', '/hour', '/method')).toEqual(expected)
  })

  it('without OpenID Connect says nothing of the time', async () => {
    const { site, browser } = await start()
    await site.signIn(browser, 'plain')
    expect(await asked(site, browser, '/transfer', '/hour', '/method')).toEqual([403, 403, 200])
  })

  it('that a link of another site began renews nothing', async () => {
    const { provider, site, browser } = await start()
    saying(provider, { auth_time: seconds() - 2 * HOUR })
    await site.signIn(browser)
    const headers = { ...navigation, 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }
    const begun = await browser.send(`${site.origin}/sign-in/provider`, { headers })
    const { stopped } = await browser.open(begun.location ?? '', (url) => url.startsWith(site.origin))
    expect((await browser.send(stopped, { headers: navigation })).status).toBe(303)
    expect(await asked(site, browser, '/transfer', '/hour')).toEqual([403, 200])
  })
})
