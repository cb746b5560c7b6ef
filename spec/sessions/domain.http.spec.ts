/**
 * B-26 `sessions(app, { domain })`: the cookie of a product with subdomains. Every line that sets or deletes it has the domain, no name
 * begins with `__Host-`, and anything but a bare host name is a TypeError.
 */
import Koa from 'koa'
import { sessions } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { askPort, expectPassed, type Answer } from '../support/models/behavior.js'
import { anna, sessionsApp, setCookies, strongKey, type SessionsAppOptions } from '../support/sites/sessionsApp.js'
import { signInSite } from '../support/sites/signInSite.js'
import { pollute } from '../support/runs/pollute.js'

const domain = 'shop.example'
const overTls = { 'X-Forwarded-Proto': 'https' }
const proxied: SessionsAppOptions = {
  domain,
  https: true,
  above: (app) => {
    app.proxy = true
  },
}

const expectShared = (answer: Pick<Answer, 'headers'>, lines: number): void => {
  const sent = answer.headers['set-cookie'] ?? []
  expect(sent).toHaveLength(lines)
  for (const line of sent) {
    expect(line).toMatch(/; domain=shop\.example(?:;|$)/i)
    expect(line.match(/domain=/gi)).toHaveLength(1)
    expect(line).not.toMatch(/^__Host-/i)
    expect(line).toMatch(/; path=\//)
  }
}

describe('the cookie', () => {
  it('has the domain when it is set, prolonged and deleted', async () => {
    const { visitor } = await sessionsApp(undefined, { domain })
    const one = visitor()
    expectShared(await one.post('/set?basket=pear'), 1)
    expectShared(await one.post('/login'), 1)
    expectPassed(await one.ask('/me'), anna)
    expectShared(await one.post('/logout'), 1)
    expect(one.cookies.has('session')).toBe(false)
  })

  it.each([undefined, '__Secure-id', 'sid'])(
    'is Secure, without __Host-, with https: true and the name %s',
    async (cookieName) => {
      const { visitor } = await sessionsApp(undefined, { ...proxied, ...(cookieName !== undefined && { cookieName }) })
      const one = visitor()
      const answers = [await one.post('/login', overTls)]
      expectPassed(await one.ask('/me', { headers: overTls }), anna)
      // its deletion is, too
      answers.push(await one.post('/logout', overTls))
      for (const answer of answers) {
        expectShared(answer, 1)
        for (const line of setCookies(answer)) {
          expect([line.split('=')[0], /; secure;/.test(line)]).toEqual([cookieName ?? '__Secure-session', true])
        }
      }
    },
  )

  it('has the domain where it is sealed with a newer key', async () => {
    const newer = 'a newer signing key that is long enough'
    const kept = await sessionsApp(undefined, { domain })
    const one = kept.visitor()
    await one.post('/set?basket=pear')
    kept.app.keys = [newer, strongKey]
    const answer = await one.ask('/read')
    expect(answer.body).toEqual({ basket: 'pear' })
    expectShared(answer, 1)
  })

  it('leaves the cookies of the application as they are', async () => {
    const { visitor } = await sessionsApp(undefined, {
      domain,
      acts: { '/own': (ctx) => ctx.cookies.set('sessions', 'a', { signed: false }) },
    })
    expect(setCookies(await visitor().ask('/own'))).toEqual(['sessions=a; path=/; httponly'])
  })

  it('has no domain without the option, even from a polluted prototype', async () => {
    pollute({ domain })
    const { visitor } = await sessionsApp()
    for (const line of setCookies(await visitor().post('/login'))) expect(line).not.toMatch(/domain/i)
  })
})

describe('the cookie that ties a ceremony to a browser', () => {
  it('stays with its host, __Host- over https: no subdomain needs it, and none may write it', async () => {
    const { port } = await signInSite(undefined, { sessions: proxied })
    const headers = { ...overTls, 'Content-Type': 'application/json' }
    const body = JSON.stringify({ address: 'anna@shop.example' })
    const answer = await askPort(port, '/sign-in/mail', { method: 'POST', headers, body })
    const lines = answer.headers['set-cookie'] ?? []
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/^__Host-browser=[^;]+; path=\/; .*secure; httponly$/)
    expect(lines[0]).not.toMatch(/domain/i)
  })
})

describe('sessions(app, { domain })', () => {
  // Safe: a program without types could write this
  const call = (options: object) => () => sessions(new Koa({ keys: [strongKey] }), { loadUser: () => anna, ...options })

  it.each([
    ['a scheme', 'https://shop.example'],
    ['a port', 'shop.example:443'],
    ['a leading dot', '.shop.example'],
    ['a dot at the end', 'shop.example.'],
    ['a path', 'shop.example/'],
    ['a wildcard', '*.shop.example'],
    ['a blank at the end', 'shop.example '],
    ['another attribute', 'shop.example; HttpOnly'],
    ['a label of 64 characters', `${'a'.repeat(64)}.example`],
    ['a name of 254 characters', `${'a.'.repeat(125)}abcd`],
    ['a name that is not written in ASCII', 'bücher.example'],
    ['a top level', 'example'],
    ['nothing', ''],
    ['an IPv4 address', '127.0.0.1'],
    ['an IPv6 address', '::1'],
    ['an IPv6 address in brackets', '[::1]'],
    ['null', null],
    ['a number', 7],
    ['true', true],
    ['an object', { toString: () => 'shop.example' }],
  ])('is a TypeError for %s', (_what, wrong) => {
    expect(call({ domain: wrong })).toThrow(TypeError)
    expect(call({ domain: wrong })).toThrow(/^sessions\(app, \{ domain \}\) must be a host name .*"shop\.example"/)
  })

  it.each(['__Host-session', '__host-a', '__Host-Http-session'])(
    'is a TypeError beside cookieName: %s',
    (cookieName) => {
      for (const https of [true, false, undefined]) {
        expect(call({ domain, https, cookieName })).toThrow(TypeError)
        expect(call({ domain, https, cookieName })).toThrow(/^sessions\(app, \{ cookieName, domain \}\): .*__Secure-/)
      }
    },
  )

  it.each(['shop.example', 'eu.shop.example', 'SHOP.example', 'xn--bcher-kva.example', '7.example', 'localhost'])(
    'accepts %s',
    (name) => {
      expect(call({ domain: name })).not.toThrow()
    },
  )

  it('accepts undefined, which is no domain', () => {
    expect(call({ domain: undefined, https: true, cookieName: '__Host-session' })).not.toThrow()
  })
})
