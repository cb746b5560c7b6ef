/** Login CSRF and logout CSRF: what another site made the browser send is refused before the store is touched. */
import { describe, expect, it } from 'vitest'
import { expectDenied, type Answer } from '../support/behavior.js'
import { expectAnonymous, expectSignedIn, sessionsApp, setCookies } from '../support/sessionsApp.js'
import { describeLastingStores } from '../support/sessionStores.js'

const anna = { username: 'anna', isActive: true }

const expectForged = (answer: Answer): void => {
  expectDenied(answer, 403, [], 'CSRF check Failed')
  expect(setCookies(answer)).toEqual([])
}

const foreign: ReadonlyArray<readonly [string, Readonly<Record<string, string>>]> = [
  ['Sec-Fetch-Site: cross-site', { 'Sec-Fetch-Site': 'cross-site' }],
  ['Sec-Fetch-Site: same-site', { 'Sec-Fetch-Site': 'same-site' }],
  ['Sec-Fetch-Site: a word unknown', { 'Sec-Fetch-Site': 'friendly' }],
  ['Sec-Fetch-Site sent twice', { 'Sec-Fetch-Site': 'same-origin, cross-site' }],
  ['a foreign Origin', { Origin: 'https://evil.example' }],
  ['an Origin of another port', { Origin: 'http://127.0.0.1:1' }],
  ['Origin: null', { Origin: 'null' }],
  ['a foreign Origin and a trusted-looking Referer', { Origin: 'https://evil.example', Referer: 'http://127.0.0.1/' }],
]

describeLastingStores((store) => {
  it.each(foreign)('signing in with %s: 403 as problem details, and the store is not asked', async (_what, headers) => {
    const { visitor, store: watched } = await sessionsApp(store)
    const victim = visitor()
    expectForged(await victim.post('/login', headers))
    expect([watched.asked, victim.header()]).toEqual([[], ''])
    await expectAnonymous(victim)
  })

  it.each(foreign)('signing out with %s: 403, and the session goes on', async (_what, headers) => {
    const { visitor, store: watched } = await sessionsApp(store)
    const victim = visitor()
    await victim.post('/login')
    watched.asked.length = 0
    expectForged(await victim.post('/logout', headers))
    expectForged(await victim.post('/everywhere', headers))
    expect(watched.asked.filter((method) => !['read', 'markOf'].includes(method))).toEqual([])
    await expectSignedIn(victim, anna)
  })
})

describe('login CSRF', () => {
  it('signing in as somebody else over a session: 403, and the session stays whose it was', async () => {
    const { visitor } = await sessionsApp()
    const victim = visitor()
    await victim.post('/login')
    expectForged(await victim.post('/login?user=root', { 'Sec-Fetch-Site': 'cross-site' }))
    await expectSignedIn(victim, anna)
  })

  it.each([
    ['the own origin by Sec-Fetch-Site', () => ({ 'Sec-Fetch-Site': 'same-origin' })],
    ['a bookmark', () => ({ 'Sec-Fetch-Site': 'none' })],
    ['the own origin by Origin', (port: number) => ({ Origin: `http://127.0.0.1:${port}` })],
    ['no browser', () => ({})],
    ['a trusted origin', () => ({ Origin: 'https://app.example', 'Sec-Fetch-Site': 'cross-site' })],
  ] as const)('from %s: signed in, and out', async (_what, headers) => {
    const { visitor, port } = await sessionsApp(undefined, { trustedOrigins: ['https://app.example'] })
    const one = visitor()
    expect((await one.post('/login', headers(port))).status).toBe(200)
    await expectSignedIn(one, anna)
    expect((await one.post('/logout', headers(port))).status).toBe(200)
    await expectAnonymous(one)
  })

  it('a type of content that needs no preflight changes nothing (A-12)', async () => {
    const { visitor, store } = await sessionsApp()
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', '']) {
      const headers = { 'Content-Type': type, 'Sec-Fetch-Site': 'cross-site' }
      expectForged(await visitor().post('/login', headers))
    }
    expect(store.asked).toEqual([])
  })

  it('is told as CSRF in an outage, too', async () => {
    const { visitor, store } = await sessionsApp()
    Object.assign(store.instead, { markOf: () => Promise.reject(new Error('down')) })
    expectForged(await visitor().post('/login', { 'Sec-Fetch-Site': 'cross-site' }))
  })
})
