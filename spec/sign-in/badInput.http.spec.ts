/** What is no request of a page: every operation that has pages answers it with a 4xx, signs no user in, and loses nothing. */
import { describe, expect, it } from 'vitest'
import { pagesSite as start } from '../support/sites/pagesSite.js'
import { expectUser } from '../support/sites/signedIn.js'
import { pathOf } from '../support/sites/signInSite.js'

const mailboxes = ['/mail', '/popup', '/reset', '/verify']
const posted = ['/password', ...mailboxes, '/code', '/mail/link', '/reset/link', '/verify/link']
const json = 'application/json'
const form = 'application/x-www-form-urlencoded'

const handleIn = (body: unknown): string => /name="handle" value="([^"]*)"/.exec(String(body))?.[1] ?? ''

const long = 'x'.repeat(8192)
const parts = '--b\r\nContent-Disposition: form-data; name="address"\r\n\r\nanna@shop.example\r\n--b--'

const bodies: ReadonlyArray<readonly [name: string, type: string, body: string]> = [
  ['garbage', json, '{"username":'],
  ['null', json, 'null'],
  ['nothing', form, ''],
  ['1 MB of JSON', json, JSON.stringify({ username: 'anna', address: 'x'.repeat(1_000_000) })],
  ['1 MB of a form', form, `username=anna&handle=${'x'.repeat(1_000_000)}`],
  ['thousands of fields', form, 'a=1&'.repeat(5000)],
  ['a hundred fields more', form, `${'a=1&'.repeat(100)}address=anna@shop.example`],
  ['a form of several parts', 'multipart/form-data; boundary=b', parts],
  ['a form as plain text', 'text/plain', 'username=anna&password=anna-secret&address=anna@shop.example'],
  [
    'double fields',
    form,
    ['username=anna', 'password=anna-secret', 'address=anna@shop.example', 'handle=x', 'key=x', 'code=1']
      .flatMap((one) => [one, one])
      .join('&'),
  ],
  ['other types', json, '{"username":{"a":1},"password":[1],"address":{},"handle":[],"key":5,"code":{}}'],
  ['members of the prototype', json, '{"__proto__":{"username":"anna","password":"anna-secret"}}'],
]

describe('what no page sends', () => {
  it.each(bodies)('Q-02 is a 4xx everywhere, and a page for a browser: %s', async (_name, type, body) => {
    const { site, mails, errors, mail, send, hooks } = await start()
    const visitor = site.visitor()
    const asked = await send(visitor, '/mail', form, 'address=anna@shop.example', 'text/html')
    const { code } = (await mail()) ?? {}
    await send(visitor, '/reset', form, 'address=anna@shop.example', 'text/html')
    const reset = pathOf((await mail())?.link ?? '')
    for (const path of posted) {
      for (const accept of ['application/json', 'text/html,*/*;q=0.8']) {
        const answer = await send(visitor, path, type, body, accept)
        expect([path, accept, Math.floor(answer.status / 100)]).toEqual([path, accept, 4])
        expect(answer.headers['set-cookie'] ?? [], path).not.toContainEqual(expect.stringMatching(/^(?!browser=)/))
        if (accept === 'application/json') continue
        expect([path, answer.headers['content-type']]).toEqual([path, 'text/html; charset=utf-8'])
        expect(answer.body).toMatch(/<html lang="en">.*<h1>.+<\/h1>.*<p role="alert">[^<]+<\/p>/s)
      }
    }
    expect((await visitor.ask('/me')).status).toBe(401)
    expect([hooks(), mails, errors]).toEqual([0, [], []])
    // what had begun goes on, also after a password that is weak
    const [path = '', members] = reset.split('?')
    const weak = await send(site.visitor(), path, form, `${members}&password=short`, 'text/html')
    expect([weak.status, handleIn(weak.body) !== '']).toEqual([400, true])
    const isSet = await send(site.visitor(), reset, form, 'password=a long one', 'application/json')
    expect([isSet.status, hooks()]).toEqual([200, 1])
    await send(visitor, '/mail/link', form, `handle=${handleIn(asked.body)}&code=${code}`, 'text/html')
    await expectUser(visitor, 'anna')
  })

  it('is a 4xx for a link, whose page shows what was sent as text', async () => {
    const { site, send, errors, hooks } = await start()
    const strange = ['', 'x', long.slice(0, 6000), '%00', '%ff', '"><script>alert(1)</script>']
    for (const path of ['/mail/link', '/reset/link', '/verify/link']) {
      for (const value of strange) {
        const query = `?handle=${value}&key=${value}&handle=other`
        const page = await site.visitor().ask(path + query, { headers: { Accept: 'text/html' } })
        expect([path, page.status, /<script|<form[^>]*(?:script|evil)/.test(String(page.body))]).toEqual([
          path,
          200,
          false,
        ])
        const answer = await send(site.visitor(), path + query, form, 'password=a long one', 'text/html')
        expect([path, answer.status]).toEqual([path, 400])
      }
    }
    expect([hooks(), errors]).toEqual([0, []])
  })
})

describe('a failure after a hook has answered', () => {
  it('Q-01 is a page of its own, and leads nowhere', async () => {
    const { site, mail, send } = await start()
    const visitor = site.visitor()
    const asked = await send(visitor, '/mail', form, 'address=anna@shop.example', 'text/html')
    const { code } = (await mail()) ?? {}
    site.store.instead.get = async () => Promise.reject(new Error('down'))
    const body = `handle=${handleIn(asked.body)}&code=${code}`
    const answer = await send(visitor, '/mail/link?redirects', form, body, 'text/html')
    expect([answer.status, answer.headers['location']]).toEqual([503, undefined])
    expect(answer.body).toContain('<p role="alert">That is not possible at the moment.')
    // the same code may be sent again
    expect([handleIn(answer.body) !== '', String(answer.body).includes('name="code"')]).toEqual([true, true])
  })
})

describe('the form of another site', () => {
  const good = 'username=anna&password=anna-secret&address=anna@shop.example'
  it.each<[string, Readonly<Record<string, string>>]>([
    ['Sec-Fetch-Site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['Origin', { Origin: 'https://evil.example' }],
    ['an opaque Origin', { Origin: 'null' }],
  ])('Q-03 is a 403 everywhere, and a page for a browser, by %s', async (_name, headers) => {
    const { site, mails, errors, hooks } = await start()
    const visitor = site.visitor()
    for (const path of posted) {
      for (const Accept of ['application/json', 'text/html']) {
        const sent = { ...headers, 'Content-Type': form, Accept }
        const answer = await visitor.ask(path, { method: 'POST', headers: sent, body: good })
        expect([path, answer.status, answer.headers['set-cookie']]).toEqual([path, 403, undefined])
        if (Accept === 'text/html') expect(answer.body).toContain('Another site sent this request')
        else expect(answer.body).toMatchObject({ status: 403, detail: 'CSRF check Failed' })
      }
    }
    expect((await visitor.ask('/me')).status).toBe(401)
    expect([hooks(), mails, errors]).toEqual([0, [], []])
  })
})
