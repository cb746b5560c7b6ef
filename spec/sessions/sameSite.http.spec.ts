/** Sessions in frames, and for front ends on other sites: only over https, and only for the origins that are trusted. */
import Koa from 'koa'
import { authSettings, type AuthSettings } from 'koa-with-auth'
import { sessions, type SessionsOptions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it } from 'vitest'
import { processWarnings } from '../support/servers/identityProvider.js'
import { expectSignedIn, sessionsApp, setCookies, strongKey } from '../support/sites/sessionsApp.js'

const FRONT = 'https://app.front.example'

const make = (options: Partial<SessionsOptions<unknown>>, settings: AuthSettings = { trustedOrigins: [FRONT] }) => {
  const app = new Koa({ keys: [strongKey] })
  app.use(authSettings(settings))
  sessions(app, {
    loadUser: () => undefined,
    identify: () => 'x',
    store: memoryStore(),
    name: 'x',
    ...options,
  })
}

describe("sameSite: 'none'", () => {
  it.each<readonly [string, Partial<SessionsOptions<unknown>>, AuthSettings | undefined, RegExp]>([
    ['without https', { sameSite: 'none' }, undefined, /sameSite: 'none' \}\) needs https: true/],
    ['with https: false', { sameSite: 'none', https: false }, undefined, /needs https: true/],
    ['without trusted origins', { sameSite: 'none', https: true }, {}, /needs the origins that may use the session/],
    ['partitioned, and lax', { partitioned: true, https: true }, undefined, /partitioned \}\) is only for sameSite/],
    ['another word', { sameSite: 'None' as never, https: true }, undefined, /sameSite/],
  ])('is a TypeError %s', (_case, options, settings, message) => {
    expect(() => make(options, settings)).toThrow(TypeError)
    expect(() => make(options, settings)).toThrow(message)
  })

  it.each([true, false])('the cookie goes to other sites; partitioned: %s', async (partitioned) => {
    const { visitor } = await sessionsApp(undefined, {
      sameSite: 'none',
      partitioned,
      https: true,
      above: (app) => {
        app.proxy = true
        app.use(authSettings({ trustedOrigins: [FRONT] }))
      },
      trustedOrigins: [FRONT],
    })
    const one = visitor()
    const headers = { 'X-Forwarded-Proto': 'https', Origin: FRONT, 'Sec-Fetch-Site': 'cross-site' }
    const answer = await one.post('/login', headers)
    expect(answer.status).toBe(200)
    const lines = setCookies(answer)
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) {
      expect(line).toMatch(/samesite=none/i)
      expect(/; partitioned/i.test(line)).toBe(partitioned)
      expect(line).toMatch(/; secure/i)
    }
    const write = await one.ask('/me', { method: 'POST', headers })
    expect([write.status, write.seen.length]).toEqual([200, 1])
    const evil = await one.ask('/me', { method: 'POST', headers: { ...headers, Origin: 'https://evil.example' } })
    expect([evil.status, evil.seen.length]).toEqual([403, 0])
    await expectSignedIn(one, { username: 'anna', isActive: true }).catch(() => undefined)
  })
})

describe('a trusted origin of another site, with a Lax cookie', () => {
  it.each<[string, string, boolean, string?]>([
    ['another site', 'https://shop.example', true],
    ['another scheme', 'http://api.front.example', true],
    ['another address', 'https://10.0.2.3', true, 'https://11.0.2.3'],
    ['the same site', 'https://api.front.example', false],
  ])('is reported at start: %s', async (_case, origin, isReported, trusted = FRONT) => {
    const warnings = processWarnings()
    make({ origin }, { trustedOrigins: [trusted] })
    await new Promise(setImmediate)
    const found = warnings().filter((one) => one.includes(`${trusted} is trusted, and is another site than ${origin}`))
    expect(found).toHaveLength(isReported ? 1 : 0)
  })
})
