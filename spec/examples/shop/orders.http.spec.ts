/** The shop and its own provider: a page calls an API by tokens that the shop keeps, whose refresh tokens are each good once. */
import { expect, it, onTestFinished } from 'vitest'
import { startProvider } from '../../../examples/shop/provider.js'
import { stoppedClock } from '../../support/runs/clock.js'
import { jsonClient } from '../../support/servers/jsonClient.js'
import { userAgent, navigation, type UserAgent } from '../../support/servers/userAgent.js'
import { shopSite, type ShopSite } from '../../support/sites/shopSite.js'

const json = { Accept: 'application/json' }
const ownNavigation = { ...navigation, 'Sec-Fetch-Site': 'same-origin' }

const provided = async () => {
  const site = await shopSite({
    provider: async (origin) => {
      const provider = await startProvider(origin, 0)
      onTestFinished(provider.close)
      return provider
    },
  })
  return { site, browser: userAgent() }
}

/** Signs in at the provider, and resolves to what the shop answered in the end. */
const throughProvider = async (site: ShopSite, browser: UserAgent, path: string, method = 'GET') => {
  const begun = await browser.send(site.origin + path, { method, headers: ownNavigation })
  const asked = await browser.open(begun.location ?? '', (url) => url.startsWith(site.origin))
  if (asked.status !== 200) return browser.send(asked.stopped, { headers: navigation })
  const answered = await browser.send(asked.url, { method: 'POST', body: new URLSearchParams({ login: 'carol' }) })
  const back = await browser.open(answered.location ?? '', (url) => url.startsWith(site.origin))
  return browser.send(back.stopped, { headers: navigation })
}

const ordersOf = async (site: ShopSite, browser: UserAgent) => {
  const { status, body } = await browser.send(`${site.origin}/orders`, { headers: json })
  return { status, ...(JSON.parse(body) as { orders?: unknown; token?: { issuedAt: number }; why?: string }) }
}

it('shows what the API answers, and refreshes the token when it is over, many times', async () => {
  const clock = stoppedClock()
  const { site, browser } = await provided()
  const back = await throughProvider(site, browser, '/sign-in/provider?returnTo=/orders')
  expect([back.status, back.location]).toEqual([303, `${site.origin}/orders`])
  const made = new Set<number | undefined>()
  for (let round = 0; round < 4; round++) {
    const both = await Promise.all([ordersOf(site, browser), ordersOf(site, browser)])
    for (const { status, orders } of both) {
      expect([status, orders]).toEqual([200, expect.arrayContaining([{ item: 'tea for carol', date: '2026-11-01' }])])
    }
    made.add(both[0].token?.issuedAt)
    clock.move(55_000)
  }
  expect(made.size).toBe(4)
  const page = await browser.send(`${site.origin}/orders`, { headers: ownNavigation })
  expect(page.body).toContain('<td>honey for carol</td>')
})

it('asks to sign in again when the permission was taken back, and then shows the orders', async () => {
  const { site, browser } = await provided()
  await throughProvider(site, browser, '/sign-in/provider')
  const shown = await browser.send(`${site.origin}/orders`, { headers: ownNavigation })
  const permissions = /href="([^"]+\/permissions)"/.exec(shown.body)?.[1] ?? ''
  expect((await browser.send(permissions)).body).toContain('Take it back')
  await browser.send(permissions, { method: 'POST' })
  expect(await ordersOf(site, browser)).toMatchObject({ status: 401, why: 'upstream' })
  const page = await browser.send(`${site.origin}/orders`, { headers: ownNavigation })
  expect([page.status, page.body]).toEqual([200, expect.stringContaining('no permission')])
  const again = /href="(\/sign-in\/provider[^"]*)"/.exec(page.body)?.[1] ?? ''
  const back = await throughProvider(site, browser, again)
  expect(back.location).toBe(`${site.origin}/orders`)
  expect((await ordersOf(site, browser)).status).toBe(200)
})

it('asks a user who came by a password to link the provider, and leads back to the orders', async () => {
  const { site, browser } = await provided()
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ username: 'anna', password: 'anna-secret' })
  await browser.send(`${site.origin}/sign-in/password`, { method: 'POST', headers, body })
  const page = await browser.send(`${site.origin}/orders`, { headers: ownNavigation })
  expect(page.body).toContain('Link your provider')
  const back = await throughProvider(site, browser, '/accounts/provider?returnTo=/orders', 'POST')
  expect(back.location).toBe(`${site.origin}/orders`)
  expect((await ordersOf(site, browser)).status).toBe(200)
})

it('is no page where the provider has no API', async () => {
  const site = await shopSite()
  expect((await jsonClient(() => site.origin).get('/orders')).status).toBe(404)
})
