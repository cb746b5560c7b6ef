/** The pages of the shop say what became of each way, and why a password will not do; without a word for whoever sends JSON. One page has tokens of the provider. */
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type JsonClient, jsonClient } from '../../support/servers/jsonClient.js'
import { listening } from '../../support/servers/server.js'
import { html, outcome } from '../../support/sites/shopClient.js'
import { ANOTHER, pathOf, registeredAt, shopSite, type ShopSite } from '../../support/sites/shopSite.js'
import { startProvider } from '../../../examples/shop/provider.js'
import { stoppedClock } from '../../support/runs/clock.js'
import { userAgent, navigation, type UserAgent } from '../../support/servers/userAgent.js'

const said = (body: unknown) => /<p role="(?:status|alert)">([^<]+)<\/p>/.exec(String(body))?.[1]

/** Posts a form as a browser does, and resolves to where it leads, and to what the page there says. */
const pressed = async (visitor: JsonClient, path: string, body: object = {}) => {
  const { status, headers } = await visitor.send('POST', path, body, html)
  const location = headers.get('location') ?? ''
  const page = await visitor.send('GET', location, undefined, html)
  const again = await visitor.send('GET', location, undefined, html)
  return { status, location, says: said(page.body), saysAgain: said(again.body) }
}
const linkOf = async (site: ShopSite) => pathOf((await site.mail()).link)

describe('each way back has its own words, once', () => {
  const address = 'anna@shop.example'
  type Given = (site: ShopSite) => Promise<Parameters<typeof pressed>>
  const by =
    (...way: [path: string, body?: object]): Given =>
    async (site) => [await site.signedIn(), ...way]
  it.each<[string, string, string, Given]>([
    ['signing out', '/', 'You are signed out.', by('/sign-out')],
    ['signing out everywhere', '/', 'You are signed out on all devices.', by('/sign-out/everywhere')],
    [
      'asking for a reset',
      '/sign-in',
      'If the address has an account, a mail with a link is on its way.',
      async (site) => [site.client(), '/reset', { address }],
    ],
    [
      'a new password',
      '/sign-in',
      'The new password is set. Sign in with it.',
      async (site) => {
        await site.client().post('/reset', { address })
        return [site.client(), await linkOf(site), { password: ANOTHER }]
      },
    ],
    ['asking for a verification', '/', 'A mail with a link is on its way.', by('/verify')],
    [
      'a verification',
      '/',
      'The address is verified.',
      async (site) => {
        const visitor = await site.signedIn()
        await visitor.post('/verify')
        return [visitor, await linkOf(site)]
      },
    ],
    [
      'removing the authenticator app',
      '/',
      'The authenticator app is removed. Signing in asks for no code.',
      by('/factors/totp/remove'),
    ],
    [
      'a fresh proof',
      '/',
      'Thank you. For a few minutes you are not asked again.',
      by('/prove/password', { password: 'anna-secret' }),
    ],
  ])('%s', async (_, location, says, given) => {
    const site = await shopSite()
    const way = await pressed(...(await given(site)))
    expect(way).toEqual({ status: 303, location, says, saysAgain: undefined })
  })

  it('signing out at the provider', async () => {
    const site = await shopSite({ provider: registeredAt })
    const visitor = await site.signedIn()
    const out = await visitor.send('POST', '/sign-out/provider', {}, html)
    const state = new URL(out.headers.get('location') ?? '').searchParams.get('state')
    const back = await visitor.send('GET', `/signed-out?state=${state}`, undefined, html)
    expect([back.status, back.headers.get('location')]).toEqual([303, '/'])
    const page = await visitor.send('GET', '/', undefined, html)
    expect(said(page.body)).toBe('You are signed out, here and at the provider.')
  })

  it('no word for a wrong name in the cookie, and no cookie for JSON', async () => {
    const visitor = (await shopSite()).client()
    visitor.cookies.set('shop-notice', 'constructor')
    expect(said((await visitor.send('GET', '/', undefined, html)).body)).toBeUndefined()
    const reply = await visitor.post('/reset', { address: 'anna@shop.example' })
    expect([reply.status, reply.headers.getSetCookie()]).toEqual([204, []])
  })
})

// A list of leaked passwords that has one
const leaks = async (leaked: string): Promise<string> => {
  const digest = createHash('sha1').update(leaked).digest('hex').toUpperCase()
  const server = createServer((request, response) => {
    response.end(request.url === `/range/${digest.slice(0, 5)}` ? `${digest.slice(5)}:7\r\n` : '')
  })
  return `http://127.0.0.1:${await listening(server)}/range/`
}

// What the form of a page sends, and where
const formIn = (page: unknown) => {
  const [, action = '', inner = ''] = /<form method="post" action="([^"]+)">(.*?)<\/form>/s.exec(String(page)) ?? []
  const hidden = [...inner.matchAll(/type="hidden" name="(\w+)" value="([^"]*)"/g)]
  return { action, members: Object.fromEntries(hidden.map(([, name, value]) => [name, value] as const)) }
}

it.each([
  ['short', 'fourteen chars', 'too short'],
  ['long', 'x'.repeat(129), 'too long'],
  ['common', 'passwordpassword', 'Many people'],
  ['context', 'the long secret of Anna', 'your name'],
  ['context', 'nobody goes to the shop', 'your name'],
  ['breached', 'a secret that has leaked', 'has leaked'],
])('a password that will not do (%s, %j) is refused with the reason, and the link stays good', async (...given) => {
  const [reason, bad, says] = given
  const site = await shopSite({ env: { BREACHED: await leaks('a secret that has leaked') } })
  await site.client().post('/reset', { address: 'anna@shop.example' })
  const link = await linkOf(site)
  expect(outcome(await site.client().post(link, { password: bad }))).toEqual([400, reason])
  const visitor = site.client()
  const { action, members } = formIn((await visitor.send('GET', link, undefined, html)).body)
  const refused = await visitor.send('POST', action, { ...members, password: bad }, html)
  expect([refused.status, refused.headers.get('location')]).toEqual([303, `/sign-in?failed=${reason}`])
  const { body } = await visitor.send('GET', `/sign-in?failed=${reason}`, undefined, html)
  expect(said(body)).toContain(says)
  const again = formIn(body)
  expect((await visitor.post(again.action, { ...again.members, password: ANOTHER })).status).toBe(204)
  expect((await site.client().post('/sign-in/password', { username: 'anna', password: ANOTHER })).status).toBe(204)
})

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
