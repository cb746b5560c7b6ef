/** The shop: one list of the browsers that have a cookie and of the programs that have a token, which end alike. */
import { describe, expect, it } from 'vitest'
import { anna, enrolled, html, member, outcome } from '../../support/sites/shopClient.js'
import { codeOf } from '../../support/servers/authenticatorApp.js'
import { shopSite, type ShopSite } from '../../support/sites/shopSite.js'

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

const tokenOf = async (site: ShopSite, body: object = anna) => {
  const reply = await site.client().send('POST', '/device/sign-in', body, { 'user-agent': 'curl/8.1' })
  expect([reply.status, reply.headers.getSetCookie()]).toEqual([200, []])
  return String(member(reply, 'access_token'))
}
const by = (token: string) => ({ authorization: `Bearer ${token}` })
const meBy = async (site: ShopSite, token: string) =>
  (await site.client().send('GET', '/me', undefined, by(token))).status

describe('devices', () => {
  it('are listed with their kind and their program, on a page, too', async () => {
    const site = await shopSite()
    const visitor = site.client()
    await visitor.send('POST', '/sign-in/password', anna, { 'user-agent': firefox })
    await tokenOf(site)
    const { body } = await visitor.get('/devices')
    expect(body).toEqual((await visitor.get('/sessions')).body)
    const list = (body as ReadonlyArray<Record<string, unknown>>).map(({ kind, label, current, methods }) => [
      kind,
      label,
      current,
      methods,
    ])
    expect(new Set(list)).toEqual(
      new Set([
        ['cookie', 'Firefox on Linux', true, ['password']],
        ['bearer', 'curl', false, ['password']],
      ]),
    )
    const page = String((await visitor.send('GET', '/devices', undefined, html)).body)
    const cards = [...page.matchAll(/<h2>([^<]*)<\/h2>\n<p><span class="badge">([^<]*)/g)].map(([, ...card]) => card)
    expect(cards.sort()).toEqual([
      ['This browser', 'cookie'],
      ['curl', 'token'],
    ])
  })

  it.each([
    ['its own sign-out', (site: ShopSite, token: string) => site.client().send('POST', '/sign-out', {}, by(token))],
    [
      'the list of a browser',
      async (site: ShopSite) => {
        const visitor = await site.signedIn()
        const list = (await visitor.get('/devices')).body as ReadonlyArray<{ id: string; kind: string }>
        return visitor.send('DELETE', `/sessions/${list.find(({ kind }) => kind === 'bearer')?.id}`)
      },
    ],
    ['everywhere', async (site: ShopSite) => (await site.signedIn()).post('/sign-out/everywhere')],
  ] as const)('of a token end by %s, and with them their stream', async (_, end) => {
    const site = await shopSite()
    const token = await tokenOf(site)
    const stream = await fetch(`${site.origin}/live`, { headers: by(token) })
    expect((await end(site, token)).status).toBe(204)
    expect(await stream.text()).toBe(': open\n\n')
    expect([await meBy(site, token), site.exceptions]).toEqual([401, []])
  })

  it('with a token need the second factor, too, and no cookie of a browser counts beside one', async () => {
    const site = await shopSite()
    const { visitor, secret } = await enrolled(site)
    const half = await site.client().post('/device/sign-in', anna)
    expect([half.status, member(half, 'next'), member(half, 'access_token')]).toEqual([200, 'code', undefined])
    const answer = { handle: member(half, 'handle'), code: codeOf(secret) }
    // what began for a token is finished for one
    expect(outcome(await visitor.post('/sign-in/code', answer))).toEqual([400, 'unknown'])
    const reply = await site.client().post('/device/code', answer)
    expect([reply.status, await meBy(site, String(member(reply, 'access_token')))]).toEqual([200, 200])
    expect((await visitor.send('GET', '/me', undefined, by('shop_wrong'))).status).toBe(401)
  })

  it('count wrong passwords with those of browsers, and refuse other sites', async () => {
    const site = await shopSite()
    const wrong = { username: 'anna', password: 'wrong' }
    for (let at = 0; at < 10; at++) {
      const path = at % 2 === 0 ? '/device/sign-in' : '/sign-in/password'
      expect(outcome(await site.client().post(path, wrong))).toEqual([403, 'wrong'])
    }
    expect((await site.client().post('/device/sign-in', wrong)).status).toBe(429)
    const forged = await site.client().send('POST', '/device/sign-in', anna, { 'sec-fetch-site': 'cross-site' })
    expect(outcome(forged)).toEqual([403, 'forged'])
  })
})
