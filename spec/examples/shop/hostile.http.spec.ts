/** The shop, as a hostile client sees it: malformed bodies, strange names, wrong methods, and answers sent at once. */
import { gzipSync } from 'node:zlib'
import { memoryStore, type Store } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { anna, enrolled, html, member, outcome } from '../../support/sites/shopClient.js'
import { codeOf } from '../../support/servers/authenticatorApp.js'
import { jsonClient } from '../../support/servers/jsonClient.js'
import { ANOTHER, pathOf, shopSite } from '../../support/sites/shopSite.js'

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const json = { 'content-type': 'application/json' }

describe('what is no request of a client', () => {
  const cases: ReadonlyArray<readonly [name: string, body: string, headers: Readonly<Record<string, string>>]> = [
    ['no JSON', '{', json],
    ['JSON null', 'null', json],
    ['a JSON number', '5', json],
    ['a JSON string', '"anna"', json],
    ['a JSON array', '["anna"]', json],
    ['no body', '', json],
    ['members of the prototype', '{"__proto__":{"username":"anna","password":"anna-secret"}}', json],
    ['other members', '{"user":"anna","password":"anna-secret"}', json],
    ['members of another case', '{"Username":"anna","Password":"anna-secret"}', json],
    ['arrays', '{"username":["anna"],"password":["anna-secret"]}', json],
    ['objects', '{"username":{"a":1},"password":{}}', json],
    ['numbers', '{"username":1,"password":2}', json],
    ['nulls', '{"username":null,"password":null}', json],
    ['doubled fields', 'username=anna&username=anna&password=anna-secret', form],
    ['fields of the prototype', '__proto__[username]=anna&__proto__[password]=anna-secret', form],
    ['nested fields', 'username[a]=anna&password=anna-secret', form],
    ['thousands of fields', 'a=1&'.repeat(5000), form],
    ['a deep field', `a${'[b]'.repeat(3000)}=1`, form],
    ['another type', '{"username":"anna","password":"anna-secret"}', { 'content-type': 'text/plain' }],
    ['another charset', '{}', { 'content-type': 'application/json; charset=utf-16' }],
    ['gzip that is none', '{}', { ...json, 'content-encoding': 'gzip' }],
    ['brotli that is none', '{}', { ...json, 'content-encoding': 'br' }],
    ['an unknown encoding', '{}', { ...json, 'content-encoding': 'nonsense' }],
  ]

  it.each(cases)('%s is a 4xx that counts no guess and is no exception', async (_name, body, headers) => {
    const site = await shopSite()
    const reply = await site.client().send('POST', '/sign-in/password', body, headers)
    expect([400, 413, 415]).toContain(reply.status)
    expect(member(reply, 'reason')).toBe('malformed')
    expect(site.exceptions).toEqual([])
  })

  it('a body of 10 MB is refused on every route, also when it was compressed', async () => {
    const site = await shopSite()
    const large = 'x'.repeat(10 * 1024 * 1024)
    for (const path of ['/sign-in/password', '/sign-in/code', '/sign-in/mail', '/reset', '/reset/link', '/basket']) {
      for (const [body, headers] of [
        [JSON.stringify({ username: large }), json],
        [`username=${large}`, form],
      ] as const) {
        const { status } = await site.client().send('POST', path, body, headers)
        // an answer that cannot be read is as wrong as any other
        expect([path, status]).toEqual([path, ['/sign-in/code', '/reset/link'].includes(path) ? 400 : 413])
      }
    }
    const bomb = await fetch(`${site.origin}/sign-in/password`, {
      method: 'POST',
      headers: { ...json, 'content-encoding': 'gzip' },
      body: gzipSync(JSON.stringify({ username: large })),
    })
    expect([bomb.status, site.exceptions]).toEqual([400, []])
  })

  it('a name of a prototype or with strange characters is a wrong name', async () => {
    const site = await shopSite()
    const names = ['__proto__', 'constructor', 'anna\0', '\ud800', 'Anna', 'anna ', '\u{1d41a}nna', "' or 1=1 --", '%']
    for (const username of [...names, 'a'.repeat(60_000)]) {
      const reply = await site.client().post('/sign-in/password', { username, password: 'anna-secret' })
      expect([username.slice(0, 20), ...outcome(reply)]).toEqual([username.slice(0, 20), 403, 'wrong'])
    }
    expect(site.exceptions).toEqual([])
  })

  it('another method is a 404 or 405, and does nothing', async () => {
    const site = await shopSite()
    const visitor = await site.signedIn()
    const paths = ['/sign-in/password', '/sign-in/mail', '/reset', '/verify', '/sign-out', '/transfer', '/factors/totp']
    for (const path of paths) {
      for (const method of ['GET', 'HEAD', 'PUT', 'PATCH']) {
        expect([path, method, (await visitor.send(method, path)).status]).toEqual([path, method, 405])
      }
    }
    expect([member(await visitor.get('/me'), 'user'), site.mails]).toEqual(['anna', []])
  })
})

describe('answers at once', () => {
  // the store waits, so every request has read before one has written
  const slowly = (): Store => {
    const store = memoryStore()
    return {
      ...store,
      insert: async (key, text, lifetime) => {
        if (key.includes('/once/')) await new Promise((resolve) => setTimeout(resolve, 20))
        return store.insert(key, text, lifetime)
      },
    }
  }

  it('of several codes that confirm a secret, one makes it active, and its recovery codes work', async () => {
    const site = await shopSite({ store: slowly() })
    const visitor = await site.signedIn()
    const secret = String(member(await visitor.post('/factors/totp'), 'secret'))
    const confirming = [-1, 0, 1].map((offset) =>
      visitor.post('/factors/totp/confirm', { code: codeOf(secret, offset) }),
    )
    const confirmed = (await Promise.all(confirming)).filter(({ status }) => status === 200)
    expect(confirmed).toHaveLength(1)
    const [code] = member(confirmed[0]!, 'recovery') as string[]
    const another = site.client()
    const handle = member(await another.post('/sign-in/password', anna), 'handle')
    expect((await another.post('/sign-in/recovery', { handle, code })).status).toBe(204)
  })

  it('of a code at several routes, one is in', async () => {
    const site = await shopSite({ store: slowly() })
    const { visitor, secret } = await enrolled(site)
    const half = site.client()
    const handle = member(await half.post('/sign-in/password', anna), 'handle')
    const code = codeOf(secret)
    const replies = await Promise.all([
      ...[0, 1, 2].map(() => jsonClient(() => site.origin, half).post('/sign-in/code', { handle, code })),
      ...[0, 1].map(() => jsonClient(() => site.origin, visitor).post('/prove/code', { code })),
    ])
    // a code that comes after the right one is wrong; so is a handle that was finished meanwhile
    expect(replies.map(({ status }) => (status === 400 ? 403 : status)).sort()).toEqual([204, 403, 403, 403, 403])
  })

  it('of two links that set a password, one is in, and the other is unknown', async () => {
    const site = await shopSite()
    const links: string[] = []
    for (let at = 0; at < 2; at++) {
      await site.client().post('/reset', { address: 'bert@shop.example' })
      links.push(pathOf((await site.mail()).link))
    }
    const pressed = await Promise.all(links.map((link) => site.client().post(link, { password: ANOTHER })))
    expect(pressed.map(outcome).sort()).toEqual([
      [204, undefined],
      [400, 'unknown'],
    ])
  })

  it('of the link and the code of one mail, one is in', async () => {
    const site = await shopSite()
    const visitor = site.client()
    const handle = member(await visitor.post('/sign-in/mail', { address: 'anna@shop.example' }), 'handle')
    const { link, code } = await site.mail()
    const replies = await Promise.all([
      ...[0, 1].map(() => jsonClient(() => site.origin, visitor).post(pathOf(link))),
      ...[0, 1].map(() => jsonClient(() => site.origin, visitor).post('/sign-in/mail/code', { handle, code })),
    ])
    const outcomes = replies.map((reply) => String(outcome(reply)))
    expect(outcomes.filter((one) => one === '204,')).toHaveLength(1)
    // the others are too late, or lead on because this browser is signed in by it
    for (const one of outcomes) expect(['204,', '200,', '400,unknown']).toContain(one)
  })
})

const arabic = (digits: string): string => digits.replace(/\d/g, (digit) => String.fromCharCode(0x660 + Number(digit)))

describe('codes and addresses', () => {
  const strange: ReadonlyArray<readonly [name: string, of: (code: string) => unknown]> = [
    ['a number', Number],
    ['an array', (code) => [code]],
    ['an object', (code) => ({ code })],
    ['null', () => null],
    ['empty', () => ''],
    ['longer', (code) => `${code}0`],
    ['letters', () => 'abcdefgh'],
  ]

  it.each(strange)('a code that is %s is wrong; it may be typed in other ways', async (_name, of) => {
    const site = await shopSite()
    const visitor = site.client()
    const handle = member(await visitor.post('/sign-in/mail', { address: 'anna@shop.example' }), 'handle')
    const { code = '' } = await site.mail()
    expect(outcome(await visitor.post('/sign-in/mail/code', { handle, code: of(code) }))).toEqual([403, 'wrong'])
    // as people type it: blanks, a dash, digits of another script
    const typed = ` ${code.slice(0, 4)}-${arabic(code.slice(4))} `
    expect((await visitor.post('/sign-in/mail/code', { handle, code: typed })).status).toBe(204)
  })

  it('what is not exactly one address gets no mail', async () => {
    const site = await shopSite()
    const strange = [
      ...['anna@shop.example,evil@x.example', 'anna@shop.example evil@x.example', 'anna@shop.example;evil@x.example'],
      ...[
        'Anna <anna@shop.example>',
        '<anna@shop.example>',
        '"anna"@shop.example',
        'anna@shop.example\nBcc: e@x.example',
      ],
      ...['\u0430nna@shop.example', 'anna\uff20shop.example', `${'a'.repeat(1000)}@shop.example`, 'anna@[127.0.0.1]'],
      ...[['anna@shop.example'], { address: 'anna@shop.example' }, 5, null, '', 'anna', '__proto__'],
    ]
    for (const address of strange) {
      for (const path of ['/sign-in/mail', '/reset']) {
        const { status } = await site.client().post(path, { address })
        expect([path, address, status >= 500]).toEqual([path, address, false])
      }
    }
    // A mail that was asked for later comes, and no other one
    await site.client().post('/sign-in/mail', { address: 'anna@shop.example' })
    await site.mail()
    expect([site.mails, site.exceptions]).toEqual([[], []])
  })

  it('a form with a wrong address leads back to the page, which says so', async () => {
    const visitor = (await shopSite()).client()
    const reply = await visitor.send('POST', '/sign-in/mail', 'address=anna', { ...form, ...html })
    expect([reply.status, reply.headers.get('location')]).toEqual([303, '/sign-in?failed=address'])
  })
})
