/**
 * Login CSRF and logout CSRF: a request that another site made the browser send is refused before the store is used.
 */
import { describe, expect, it } from 'vitest'
import { expectDenied, type Answer } from '../support/models/behavior.js'
import {
  anna,
  expectAnonymous,
  expectSignedIn,
  sessionsApp,
  signedInApp,
  setCookies,
} from '../support/sites/sessionsApp.js'
import { describeLastingStores } from '../support/stores/sessionStores.js'

const expectForged = (answer: Answer): void => {
  expectDenied(answer, 403, [], 'CSRF check Failed')
  expect(setCookies(answer)).toEqual([])
}

const foreign: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
  ['Sec-Fetch-Site: cross-site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['Sec-Fetch-Site: same-site', { 'Sec-Fetch-Site': 'same-site' }],
  ['an unknown Sec-Fetch-Site', { 'Sec-Fetch-Site': 'friendly' }],
  ['Sec-Fetch-Site sent twice', { 'Sec-Fetch-Site': 'same-origin, cross-site' }],
  ['a foreign Origin', { Origin: 'https://evil.example' }],
  ['an Origin of another port', { Origin: 'http://127.0.0.1:1' }],
  ['Origin: null', { Origin: 'null' }],
  ['a foreign Origin and a trusted-looking Referer', { Origin: 'https://evil.example', Referer: 'http://127.0.0.1/' }],
]

describeLastingStores((store) => {
  it.each(foreign)('signing in with %s is a 403, and the store is not used', async (_what, headers) => {
    const { visitor, store: watched } = await sessionsApp(store)
    const victim = visitor()
    expectForged(await victim.post('/login', headers))
    expect([watched.asked, victim.header()]).toEqual([[], ''])
    await expectAnonymous(victim)
  })

  it.each(foreign)(
    'signing out, or in as another user, with %s is a 403, and the session stays',
    async (_what, headers) => {
      const { store: watched, one: victim } = await signedInApp(store)
      watched.asked.length = 0
      expectForged(await victim.post('/logout', headers))
      expectForged(await victim.post('/login?user=root', headers))
      expectForged(await victim.post('/everywhere', headers))
      expect(watched.asked.filter((method) => method !== 'get')).toEqual([])
      await expectSignedIn(victim, anna)
    },
  )
})

it('what the operation wrote before it is not in the refusal', async () => {
  const { visitor } = await sessionsApp(undefined, {
    acts: {
      '/late': async (ctx, { logIn }) => {
        ctx.set('X-Own', 'half')
        await logIn(ctx, anna)
      },
    },
  })
  const answer = await visitor().post('/late', { 'Sec-Fetch-Site': 'cross-site' })
  expectForged(answer)
  expect(answer.headers).not.toHaveProperty('x-own')
})

describe('no CSRF', () => {
  it.each([
    ['the same origin by Sec-Fetch-Site', () => ({ 'Sec-Fetch-Site': 'same-origin' })],
    ['a bookmark', () => ({ 'Sec-Fetch-Site': 'none' })],
    ['the same origin by Origin', (port: number) => ({ Origin: `http://127.0.0.1:${port}` })],
    ['a client that is not a browser', () => ({})],
    ['a trusted origin', () => ({ Origin: 'https://app.example', 'Sec-Fetch-Site': 'cross-site' })],
  ] as const)('signing in and out from %s works', async (_what, headers) => {
    const { visitor, port } = await sessionsApp(undefined, { trustedOrigins: ['https://app.example'] })
    const one = visitor()
    expect((await one.post('/login', headers(port))).status).toBe(200)
    await expectSignedIn(one, anna)
    expect((await one.post('/logout', headers(port))).status).toBe(200)
    await expectAnonymous(one)
  })
})

describe('R19 signing in and out by GET', () => {
  const byLink = (trustedOrigins: ReadonlyArray<string> = []) =>
    sessionsApp(undefined, {
      trustedOrigins,
      acts: { '/magic': (ctx, { logIn }) => logIn(ctx, anna), '/leave': (ctx, { logOut }) => logOut(ctx) },
    })
  const from = (site: string, mode: string, dest: string, more: Readonly<Record<string, string>> = {}) => ({
    'Sec-Fetch-Site': site,
    'Sec-Fetch-Mode': mode,
    'Sec-Fetch-Dest': dest,
    ...more,
  })

  const refused: ReadonlyArray<readonly [what: string, headers: Readonly<Record<string, string>>, method?: string]> = [
    ['an image', from('cross-site', 'no-cors', 'image')],
    ['a fetch', from('cross-site', 'cors', 'empty')],
    ['a frame', from('cross-site', 'navigate', 'iframe')],
    ['an object', from('cross-site', 'navigate', 'object')],
    ['a WebSocket', from('cross-site', 'websocket', 'websocket')],
    ['a prefetch of a document', from('cross-site', 'navigate', 'document', { 'Sec-Purpose': 'prefetch' })],
    ['an image of a sibling domain', from('same-site', 'no-cors', 'image')],
    ['a mode without a destination', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' }],
    ['a destination without a mode', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'document' }],
    ['only Sec-Fetch-Site', { 'Sec-Fetch-Site': 'cross-site' }],
    ['an unknown Sec-Fetch-Site', from('friendly', 'no-cors', 'image')],
    ['an older browser that sends an Origin', { Origin: 'https://evil.example' }],
    ['a hidden Origin', { Origin: 'null' }],
    ['an image by HEAD', from('cross-site', 'no-cors', 'image'), 'HEAD'],
    ['an image by OPTIONS', from('cross-site', 'no-cors', 'image'), 'OPTIONS'],
    ['a navigation that writes', from('cross-site', 'navigate', 'document'), 'POST'],
    ['a navigation that upgrades', from('cross-site', 'navigate', 'document', { Upgrade: 'x', Connection: 'Upgrade' })],
  ]
  it.each(refused.map(([what, headers, method = 'GET']) => ({ what, headers, method })))(
    '$what of another site is a 403, and nothing changes',
    async ({ headers, method }) => {
      const { visitor, store } = await byLink()
      const victim = visitor()
      for (const path of ['/magic', '/leave']) {
        const answer = await victim.ask(path, { method, headers })
        expect([answer.status, setCookies(answer)]).toEqual([403, []])
      }
      expect(store.asked).toEqual([])
      await victim.post('/login')
      expect((await victim.ask('/leave', { method, headers })).status).toBe(403)
      await expectSignedIn(victim, anna)
    },
  )

  const passed: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
    ['a link in an email', from('none', 'navigate', 'document')],
    ['a link on another site, such as a redirect of an OAuth provider', from('cross-site', 'navigate', 'document')],
    ['a link on a sibling domain', from('same-site', 'navigate', 'document')],
    ['an image of its own site', from('same-origin', 'no-cors', 'image')],
    ['a client that is not a browser, or is older than Fetch Metadata', {}],
    ['a trusted origin', from('cross-site', 'cors', 'empty', { Origin: 'https://app.example' })],
  ]
  it.each(passed)('signing in and out by %s works', async (_what, headers) => {
    const { visitor } = await byLink(['https://app.example'])
    const one = visitor()
    expect((await one.ask('/magic', { headers })).status).toBe(200)
    await expectSignedIn(one, anna)
    expect((await one.ask('/leave', { headers })).status).toBe(200)
    await expectAnonymous(one)
  })
})

describe('an Upgrade request', () => {
  it.each(['GET', 'HEAD', 'OPTIONS'])(
    'is not safe: %s from another site is a 403 if a session passes',
    async (method) => {
      const { one } = await signedInApp()
      // A server without an upgrade listener passes such a request to Koa
      for (const Upgrade of ['websocket', 'h2c', '']) {
        const headers = { Upgrade, Connection: 'Upgrade', 'Sec-Fetch-Site': 'cross-site' }
        const answer = await one.ask('/me', { method, headers })
        expect([answer.status, answer.seen]).toEqual([403, []])
        const older = { Upgrade, Connection: 'Upgrade', Origin: 'https://evil.example' }
        expect((await one.ask('/me', { method, headers: older })).status).toBe(403)
        const own = { Upgrade, Connection: 'Upgrade', 'Sec-Fetch-Site': 'same-origin' }
        expect((await one.ask('/me', { method, headers: own })).status).toBe(200)
      }
      expect((await one.ask('/me', { method, headers: { 'Sec-Fetch-Site': 'cross-site' } })).status).toBe(200)
    },
  )
})
