/** Two processes on one Redis, which know of each other by nothing else: a callback is good in one of them. */
import { testIssuer } from 'koa-with-auth/testing'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openIdProvider, SECRET } from '../support/servers/openIdProvider.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { buildSite, startProgram } from '../support/sites/sessionSite.js'
import { strongKey } from '../support/sites/sessionsApp.js'
import { navigation, userAgent } from '../support/servers/userAgent.js'

const ORIGIN = 'http://shop.localhost:1'

describeWithRedis('O-02 two processes on one Redis', () => {
  const redis = redisServer()
  let built: ReturnType<typeof buildSite> | undefined
  beforeAll(() => {
    built = buildSite(['spec/support/sites/providerSiteApp'])
  })
  afterAll(() => built?.remove())

  it('sign in once for a callback that comes to both at once, and ask the provider once', async () => {
    const provider = await openIdProvider({ redirectUris: [`${ORIGIN}/callback`] })
    const env = { KEYS: strongKey, ORIGIN, ISSUER: provider.issuer, SECRET, REDIS_PORT: String(redis().port) }
    const run = () => startProgram(built!.folder, 'spec/support/sites/providerSiteApp', env)
    const processes = await Promise.all([run(), run()])
    try {
      const at = (index: number, url: string) => url.replace(ORIGIN, `http://127.0.0.1:${processes[index]!.port}`)
      for (let round = 0; round < 4; round++) {
        const asked = provider.asked.length
        const browser = userAgent()
        const begun = await browser.send(at(round % 2, `${ORIGIN}/sign-in?returnTo=/basket`), { headers: navigation })
        const [cookie = ''] = begun.setCookie[0]?.split(';') ?? []
        const { stopped } = await browser.open(begun.location ?? '', (url) => url.startsWith(ORIGIN))
        const send = (index: number, more = '') =>
          userAgent().send(at(index, stopped), { headers: { ...navigation, Cookie: cookie + more } })
        const pages = await Promise.all([send(0), send(1), send(0), send(1)])
        const winners = pages.filter(({ setCookie }) => setCookie.some((line) => line.startsWith('session=')))
        expect(winners.map(({ status }) => status)).toEqual([303])
        for (const { status } of pages) expect([303, 400]).toContain(status)
        expect(provider.asked.slice(asked).filter((one) => one === 'POST /token')).toHaveLength(1)
        const session = winners[0]!.setCookie.map((line) => `; ${line.split(';')[0]}`).join('')
        for (const index of [0, 1]) {
          const headers = { Cookie: cookie + session }
          expect((await userAgent().send(at(index, `${ORIGIN}/me`), { headers })).body).toBe('anna')
          const again = await send(index, session)
          expect([again.status, again.headers.get('location')]).toEqual([303, '/basket'])
        }
      }
      expect(provider.reported).toEqual([])
    } finally {
      await Promise.all(processes.map(({ stop }) => stop()))
    }
  })

  it('refresh once for twenty requests in four processes, and all get the token', async () => {
    const issuer = await testIssuer()
    // less than the ten seconds that a token must be good for
    issuer.expiresIn = 5
    const env = { KEYS: strongKey, ORIGIN, ISSUER: issuer.issuer, SECRET, REDIS_PORT: String(redis().port) }
    const run = () => startProgram(built!.folder, 'spec/support/sites/providerSiteApp', env)
    const processes = await Promise.all([run(), run(), run(), run()])
    try {
      const at = (index: number, url: string) => url.replace(ORIGIN, `http://127.0.0.1:${processes[index]!.port}`)
      const begun = await userAgent().send(at(0, `${ORIGIN}/sign-in`), { headers: navigation })
      const cookie = begun.setCookie[0]?.split(';')[0] ?? ''
      const { stopped } = await userAgent().open(begun.location ?? '', (url) => url.startsWith(ORIGIN))
      const signedIn = await userAgent().send(at(1, stopped), { headers: { ...navigation, Cookie: cookie } })
      const Cookie = signedIn.setCookie.map((line) => line.split(';')[0]).join('; ')
      issuer.expiresIn = 300
      const asked = issuer.tokenRequests.length
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, n) => userAgent().send(at(n % 4, `${ORIGIN}/token`), { headers: { Cookie } })),
      )
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
      expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
      expect(issuer.tokenRequests.length - asked).toBe(1)
    } finally {
      await Promise.all(processes.map(({ stop }) => stop()))
      await issuer.stop()
    }
  })
})
