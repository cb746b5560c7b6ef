/**
 * B-26, D-S12: over https the cookie is `__Host-` and Secure, on a TLS server and behind a proxy; over http it is not.
 */
import { createServer } from 'node:https'
import Koa from 'koa'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { expectPassed } from '../support/models/behavior.js'
import { anna, sessionsApp, setCookies, strongKey, type SessionsAppOptions } from '../support/sites/sessionsApp.js'
import { certificates } from '../support/servers/certificates.js'
import { exchange, listening } from '../support/servers/server.js'

const askOverTls = (port: number, method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
  exchange({ port, method, path, headers, rejectUnauthorized: false }).then(({ text, ...answer }) => ({
    ...answer,
    body: text,
  }))

const inEnv = (env: string | undefined): SessionsAppOptions => ({
  above: (app) => {
    if (env !== undefined) app.env = env
  },
})
const proxied = (proxy = true): SessionsAppOptions => ({ above: (app) => void (app.proxy = proxy) })

const warned = () => {
  const emitted = vi.spyOn(process, 'emitWarning').mockReturnValue(undefined)
  onTestFinished(() => emitted.mockRestore())
  return emitted.mock
}

describe('on a TLS server', () => {
  const serveTls = async (options: Parameters<typeof sessionsApp>[1]): Promise<number> => {
    const { app } = await sessionsApp(undefined, options)
    // Safe: Koa's callback accepts what the server passes
    return listening(createServer(certificates().server, app.callback() as Parameters<typeof createServer>[1]))
  }

  it.each([
    ['https: true', { https: true }],
    ['production', inEnv('production')],
  ])('%s: the cookie is __Host-, Secure, HttpOnly, SameSite=Lax, with Path=/ and no Domain', async (_how, options) => {
    const port = await serveTls(options)
    const { status, headers } = await askOverTls(port, 'POST', '/login')
    const lines = headers['set-cookie'] ?? []
    expect([status, lines.length]).toEqual([200, 1])
    for (const line of lines) {
      expect(line.split('=')[0]).toBe('__Host-session')
      expect(line).toMatch(/; path=\/; expires=[^;]+; samesite=lax; secure; httponly$/)
      expect(line).not.toMatch(/domain/i)
    }
    const Cookie = lines.map((line) => line.split(';')[0]).join('; ')
    expect(await askOverTls(port, 'GET', '/me', { Cookie })).toMatchObject({ status: 200, body: '{"ok":true}' })
    const gone = await askOverTls(port, 'POST', '/logout', { Cookie })
    for (const line of gone.headers['set-cookie'] ?? []) expect(line).toMatch(/expires=Thu, 01 Jan 1970.*; secure;/)
    expect((await askOverTls(port, 'GET', '/me', { Cookie })).status).toBe(401)
  })

  it.each([undefined, 'test', 'staging', 'prod', 'Production', 'development'])(
    'R11 NODE_ENV %s: the cookie is Secure if the request is, like that of koa-session',
    async (env) => {
      const port = await serveTls(inEnv(env))
      for (const path of ['/login', '/set?basket=pear']) {
        const { status, headers } = await askOverTls(port, 'POST', path)
        const lines = headers['set-cookie'] ?? []
        expect([status, lines.length]).toEqual([200, 1])
        for (const line of lines) expect(line).toMatch(/^session=.*; samesite=lax; secure; httponly$/)
      }
      // The same application over http
      const { visitor } = await sessionsApp(undefined, inEnv(env))
      for (const line of setCookies(await visitor().post('/login'))) expect(line).not.toMatch(/secure/)
    },
  )

  it('R11 only https: false switches this off, with one warning for an application', async () => {
    const { calls } = warned()
    const port = await serveTls({ https: false })
    for (let at = 0; at < 3; at++) {
      const { headers } = await askOverTls(port, 'POST', '/login')
      for (const line of headers['set-cookie'] ?? []) expect(line).toMatch(/^session.*; samesite=lax; httponly$/)
    }
    const text = expect.stringMatching(
      /^sessions\(app, \{ https: false \}\): .* never Secure.*; leave https out/,
    ) as string
    expect(calls).toEqual([[text, 'SessionWarning']])
  })
})

describe('behind a proxy that ends TLS', () => {
  it.each([
    ['without app.proxy', false, { 'X-Forwarded-Proto': 'https' }],
    ['over http all the way', true, { 'X-Forwarded-Proto': 'http' }],
    ['without the proxy’s header', true, {}],
  ])('%s: a 500 that names the fix, before the store is used', async (_how, proxy, headers) => {
    const { visitor, store, errors } = await sessionsApp(undefined, { https: true, ...proxied(proxy) })
    const one = visitor()
    for (const path of ['/login', '/set?basket=pear']) {
      const answer = await one.post(path, headers)
      expect([answer.status, answer.body, setCookies(answer)]).toEqual([500, 'Internal Server Error', []])
    }
    expect(store.asked.filter((method) => method !== 'read')).toEqual([])
    expect(errors).toHaveLength(2)
    for (const error of errors) expect(String(error)).toMatch(/app\.proxy = true.*https: false/)
    // Requests that need no cookie are served
    expect((await one.ask('/open')).status).toBe(200)
    expect((await one.ask('/me')).status).toBe(401)
  })

  it('a sign-out over http is a 500, and the session does not end', async () => {
    const { visitor } = await sessionsApp(undefined, { https: true, ...proxied() })
    const one = visitor()
    const headers = { 'X-Forwarded-Proto': 'https' }
    await one.post('/login', headers)
    const { status } = await one.copy().post('/logout')
    expect(status).toBe(500)
    expectPassed(await one.ask('/me', { headers }), anna)
  })
})

describe('in production, a session that ends within a minute is one warning: its idle was written in seconds', () => {
  it('that of a sign-in', async () => {
    const { calls } = warned()
    const warningsIn = async (env: string, ...idles: ReadonlyArray<number>) => {
      const { visitor } = await sessionsApp(undefined, {
        name: 'shop',
        https: false,
        ...inEnv(env),
        acts: { '/stay': (ctx, { logIn }) => logIn(ctx, anna, { idle: Number(ctx.query['idle']) }) },
      })
      calls.length = 0
      for (const idle of idles) expect((await visitor().post(`/stay?idle=${idle}`)).status).toBe(200)
      return calls.map(([text]) => text)
    }
    expect(await warningsIn('development', 3600)).toEqual([])
    expect(await warningsIn('production', 3_600_000, 3600, 600)).toEqual([
      'logIn(ctx, user, { idle }): a session ends after 3.6 s without use; idle is in milliseconds',
    ])
  })

  it('that of the application', () => {
    const { calls } = warned()
    const call = (env: string, idle: number) =>
      sessions(new Koa({ env, keys: [strongKey] }), {
        loadUser: (username) => ({ username }),
        name: 'shop',
        store: memoryStore(),
        idle,
      })
    call('development', 3600)
    call('production', 3_600_000)
    expect(calls).toEqual([])
    call('production', 3600)
    const text = 'sessions(app, { idle }): a session ends after 3.6 s without use; idle is in milliseconds'
    expect(calls).toEqual([[text, 'SessionWarning']])
  })
})
