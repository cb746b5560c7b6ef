/** The shop: passwords, mails, second factors, sessions, devices and what another site sends, over HTTP. */
import { describe, expect, it } from 'vitest'
import { anna, enrolled, html, member, outcome, userOf } from '../../support/sites/shopClient.js'
import { codeOf } from '../../support/servers/authenticatorApp.js'
import { pathOf, shopSite, type ShopSite } from '../../support/sites/shopSite.js'

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

describe('passwords', () => {
  it('sign in, keep the basket, and make another session', async () => {
    const site = await shopSite()
    const visitor = site.client()
    expect((await visitor.post('/basket', { item: 'tea' })).status).toBe(204)
    const before = visitor.cookies.get('session')
    expect((await visitor.post('/sign-in/password', anna)).status).toBe(204)
    expect(visitor.cookies.get('session')).not.toBe(before)
    expect((await visitor.get('/basket')).body).toEqual({ items: ['tea'] })
    expect((await visitor.get('/me')).body).toMatchObject({
      user: 'anna',
      verified: false,
      proofs: [{ method: 'password' }],
    })
    expect((await visitor.post('/sign-out')).status).toBe(204)
    expect(outcome(await visitor.get('/me'))).toEqual([401, 'absent'])
  })
})

describe('mail', () => {
  it('signs in by the code or by the link, once, in the browser that asked', async () => {
    const site = await shopSite()
    const visitor = site.client()
    const handle = member(await visitor.post('/sign-in/mail', { address: ' Anna@Shop.example ' }), 'handle')
    const { to, link, code } = await site.mail()
    expect(to).toBe('anna@shop.example')
    const elsewhere = await site.client().post(pathOf(link))
    expect(outcome(elsewhere)).toEqual([403, 'anotherBrowser'])
    const page = await site.client().send('POST', pathOf(link), {}, html)
    expect([page.status, page.body]).toEqual([403, expect.stringContaining('Type the code')])
    expect((await visitor.get(pathOf(link))).status).toBe(200)
    expect(outcome(await visitor.post('/sign-in/mail/code', { handle, code: 'x' }))).toEqual([403, 'wrong'])
    expect((await visitor.post(pathOf(link))).status).toBe(204)
    expect(await userOf(visitor)).toBe('anna')
    // it comes again, and leads on
    expect(outcome(await visitor.post('/sign-in/mail/code', { handle, code }))).toEqual([200, undefined])
  })

  it('verifies the address', async () => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    expect((await visitor.post('/verify')).status).toBe(204)
    const { link } = await site.mail()
    expect((await site.client().post(pathOf(link))).status).toBe(204)
    expect(member(await visitor.get('/me'), 'verified')).toBe(true)
    // it comes again, and leads on
    expect(outcome(await site.client().post(pathOf(link)))).toEqual([200, undefined])
  })
})

describe('second factors', () => {
  it('are asked after the password and after a mail; no user is signed in before', async () => {
    const site = await shopSite()
    const { secret, used, recovery } = await enrolled(site)
    expect(recovery).toHaveLength(10)
    const visitor = site.client()
    const half = await visitor.post('/sign-in/password', anna)
    expect(half.body).toEqual({ next: 'code', handle: expect.any(String) as unknown })
    expect((await visitor.get('/me')).status).toBe(401)
    const handle = member(half, 'handle')
    expect(outcome(await visitor.post('/sign-in/code', { handle, code: used }))).toEqual([403, 'wrong'])
    expect((await visitor.post('/sign-in/code', { handle, code: codeOf(secret) })).status).toBe(204)
    expect(await userOf(visitor)).toBe('anna')
    // it comes again, and leads on
    expect(outcome(await visitor.post('/sign-in/code', { handle, code: codeOf(secret, 1) }))).toEqual([200, undefined])

    const another = site.client()
    await another.post('/sign-in/mail', { address: 'anna@shop.example' })
    const byMail = await another.post(pathOf((await site.mail()).link))
    expect(byMail.body).toMatchObject({ next: 'code' })
    const answered = await another.post('/sign-in/recovery', { handle: member(byMail, 'handle'), code: recovery[0] })
    expect(answered.status).toBe(204)
    expect((await another.get('/vault')).status).toBe(200)
  })

  it('are confirmed by a code that is spent, and replaced and removed with a fresh proof', async () => {
    const site = await shopSite({ env: { FRESH_MS: '100000' } })
    const { visitor, secret, used } = await enrolled(site)
    expect(outcome(await visitor.post('/prove/code', { code: used }))).toEqual([403, 'wrong'])
    expect((await visitor.get('/vault')).status).toBe(403)
    expect((await visitor.post('/prove/code', { code: ` ${codeOf(secret)} ` })).status).toBe(204)
    expect((await visitor.get('/vault')).status).toBe(200)
    expect(member(await visitor.post('/factors/recovery'), 'recovery')).toHaveLength(10)
    expect((await visitor.send('DELETE', '/factors/totp')).status).toBe(204)
    expect((await site.client().post('/sign-in/password', anna)).status).toBe(204)
  })
})

describe('fresh proofs and sessions', () => {
  it('T10 an old proof changes no way to sign in', async () => {
    const site = await shopSite({ env: { FRESH_MS: '1' } })
    const visitor = await site.signedIn()
    await pause(5)
    for (const line of [
      ...['POST /factors/totp', 'POST /factors/totp/confirm', 'POST /factors/recovery', 'DELETE /factors/totp'],
      ...['POST /factors/totp/remove', 'DELETE /password', 'POST /accounts/provider'],
      ...['POST /passkeys/options', 'DELETE /passkeys/x'],
    ]) {
      const [method = '', path = ''] = line.split(' ')
      const refused = await visitor.send(method, path)
      expect([line, ...outcome(refused), member(refused, 'proof')]).toEqual([
        line,
        403,
        'insufficient',
        { maxAge: 0.001 },
      ])
    }
    expect((await visitor.get('/me')).status).toBe(200)
  })

  it('the last way to sign in stays', async () => {
    const site = await shopSite()
    expect(outcome(await (await site.signedIn()).send('DELETE', '/password'))).toEqual([409, 'lastWay'])
    await site.accounts.link('bert', { issuer: 'https://provider.example', subject: 'bert' })
    expect((await (await site.signedIn('bert')).send('DELETE', '/password')).status).toBe(204)
    expect((await site.client().post('/sign-in/password', { username: 'bert', password: 'bert-secret' })).status).toBe(
      403,
    )
  })
})

describe('another site', () => {
  const routes = [
    '/sign-in/password /sign-in/code /sign-in/recovery /sign-in/mail /sign-in/mail/code /sign-in/mail/link',
    '/sign-in/passkey/options /sign-in/passkey /passkeys/options /passkeys /prove/password /prove/code /transfer',
    '/prove/passkey/options /prove/passkey /factors/totp /factors/totp/confirm /factors/recovery /reset /reset/link',
    '/verify /verify/link /sessions/x /accounts/provider /sign-out /sign-out/everywhere /sign-out/provider',
    '/factors/totp/remove',
  ].flatMap((line) => line.split(' '))

  it.each([
    ['Sec-Fetch-Site', { 'sec-fetch-site': 'cross-site' }],
    ['Origin', { origin: 'https://evil.example' }],
    ['an Origin that is only the Host', { origin: 'http://127.0.0.1:1' }],
  ])('gets a 403 on every route, by %s, and nothing happens', async (_name, headers) => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    for (const path of routes) {
      const reply = await visitor.send('POST', path, { ...anna, address: 'anna@shop.example' }, headers)
      expect([path, ...outcome(reply), reply.headers.getSetCookie()]).toEqual([path, 403, 'forged', []])
    }
    for (const path of ['/password', '/factors/totp', '/sessions/x', '/passkeys/x']) {
      expect((await visitor.send('DELETE', path, undefined, headers)).status).toBe(403)
    }
    expect((await visitor.send('POST', '/basket', { item: 'tea' }, headers)).status).toBe(204)
    expect([await userOf(visitor), site.mails]).toEqual(['anna', []])
  })
})

it('an unknown page is a page of its own for whoever asks, and titles name the shop once', async () => {
  const site = await shopSite()
  const [signedIn, stranger] = [await site.signedIn(), site.client()]
  for (const visitor of [signedIn, stranger]) {
    const lost = await visitor.send('GET', '/nowhere', undefined, html)
    expect(lost.status).toBe(404)
    expect(String(lost.body)).toMatch(
      /<title>That did not work · Shop<\/title>.*There is no such page\..*<a href="\/">/s,
    )
    expect(String(lost.body)).not.toContain('action="/sign-in/password"')
    expect(String((await visitor.send('GET', '/', undefined, html)).body)).toContain('<title>Shop</title>')
  }
  const headings = [...String((await signedIn.send('GET', '/', undefined, html)).body).matchAll(/<h2>([^<]*)/g)].map(
    ([, heading]) => heading,
  )
  expect(headings).toEqual(['Basket', 'E-mail address', 'Ways to sign in', 'A fresh proof', 'Sessions'])
})

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
