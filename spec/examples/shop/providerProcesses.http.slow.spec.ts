/** The shop as a program: settings, two processes, a proxy that ends TLS, outages, and what it logs. */
import { softwareAuthenticator } from 'koa-with-auth/testing'
import { describe, expect, it } from 'vitest'
import { jsonClient, type JsonClient, type JsonReply } from '../../support/servers/jsonClient.js'
import { describeWithRedis, freePort, redisServer } from '../../support/servers/redisServer.js'
import { missingTls, tlsProxy } from '../../support/servers/tlsProxy.js'
import { navigation, userAgent, type UserAgent } from '../../support/servers/userAgent.js'
import { SECRET, wrongProvider } from '../../support/servers/wrongProvider.js'
import { KEYS, shopProgram } from '../../support/sites/shopProgram.js'
import { describeUnless } from '../../support/projects/programs.js'

const program = shopProgram()
const asJson = { Accept: 'application/json' }
const isCallback = (url: string): boolean => url.includes('/callback?')
const member = ({ body }: JsonReply, name: string): unknown => (body as Record<string, unknown>)[name]

const provided = async () => {
  const provider = await wrongProvider()
  return { provider, env: { ISSUER: provider.issuer, CLIENT_ID: 'shop', CLIENT_SECRET: SECRET } }
}
const signedIn = async (url: string): Promise<JsonClient> => {
  const visitor = jsonClient(() => url)
  const { status } = await visitor.post('/sign-in/password', { username: 'anna', password: 'anna-secret' })
  expect(status).toBe(204)
  return visitor
}
type Phone = ReturnType<typeof softwareAuthenticator>
const registered = async (visitor: JsonClient, phone: Phone): Promise<void> => {
  const { body } = await visitor.post('/passkeys/options')
  expect((await visitor.post('/passkeys', phone.create(body as never))).status).toBe(201)
}
const answerOf = async (visitor: JsonClient, phone: Phone) =>
  phone.get((await visitor.post('/sign-in/passkey/options')).body as never)
const meOf = async (browser: UserAgent, url: string): Promise<unknown> => {
  const { status, body } = await browser.send(`${url}/me`, { headers: asJson })
  return status === 200 ? (JSON.parse(body) as { user: unknown }).user : status
}

describe('two processes with one file and one origin', () => {
  it('finish what the other began, and ask the provider once', async () => {
    const { provider, env } = await provided()
    const [DATABASE_URL, port] = [program.file(), await freePort()]
    const ORIGIN = `http://localhost:${port}`
    const one = await program.start({ ...env, DATABASE_URL, ORIGIN }, port)
    const other = await program.start({ ...env, DATABASE_URL, ORIGIN })
    const browser = userAgent()
    const { stopped } = await browser.open(`${one.url}/sign-in/provider?returnTo=/basket`, isCallback)
    const elsewhere = stopped.replace(one.url, other.url)
    // the cookies of one origin, behind a balancer
    const Cookie = [...browser.cookies(`localhost:${port}`)].map((pair) => pair.join('=')).join('; ')
    const pages = await Promise.all(
      [stopped, elsewhere, elsewhere].map((url) => userAgent().send(url, { headers: { ...navigation, Cookie } })),
    )
    expect(provider.asked('/token')).toBe(1)
    const winners = pages.filter(({ location }) => location?.endsWith('/basket'))
    expect(winners.length).toBeGreaterThan(0)
    for (const page of pages.filter((each) => !winners.includes(each))) {
      expect([page.status, page.location?.endsWith('/sign-in?failed=unknown')]).toEqual([303, true])
    }
  })

  it('share passkeys; of several answers with one counter at once, one is in', async () => {
    const [DATABASE_URL, port] = [program.file(), await freePort()]
    const { env } = await provided()
    const ORIGIN = `http://localhost:${port}`
    const one = await program.start({ ...env, DATABASE_URL, ORIGIN }, port)
    const other = await program.start({ ...env, DATABASE_URL, ORIGIN })
    const phone = softwareAuthenticator({ origin: ORIGIN, synced: false })
    await registered(await signedIn(one.url), phone)
    const visitors = [one, other, one, other].map(({ url }) => jsonClient(() => url))
    const answers = await Promise.all(
      visitors.map(async (visitor) => {
        const { body } = await visitor.post('/sign-in/passkey/options')
        return phone.get(body as never, { counter: 50 })
      }),
    )
    const replies = await Promise.all(visitors.map((visitor, at) => visitor.post('/sign-in/passkey', answers[at])))
    expect(replies.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400])
  })

  it('a passkey outlives a key of KEYS', async () => {
    const DATABASE_URL = program.file()
    const { env } = await provided()
    const port = await freePort()
    const phone = softwareAuthenticator({ origin: `http://localhost:${port}` })
    const optionsOf = async (visitor: JsonClient) =>
      (await visitor.post('/passkeys/options')).body as { user: { id: string } }
    const old = await program.start({ ...env, DATABASE_URL }, port)
    const visitor = await signedIn(old.url)
    await registered(visitor, phone)
    const { user } = await optionsOf(visitor)
    await old.stop()
    const next = await program.start({ ...env, DATABASE_URL, KEYS: KEYS.replace('a key', 'another') }, port)
    const again = jsonClient(() => next.url)
    expect((await again.post('/sign-in/passkey', await answerOf(again, phone))).status).toBe(200)
    expect((await optionsOf(again)).user.id).toBe(user.id)
  })
})

describeUnless(missingTls(), 'behind a proxy that ends TLS', () => {
  it('is at its https origin, whatever a client sends about the host', async () => {
    const { provider, env } = await provided()
    const port = await freePort()
    const { origin } = await tlsProxy(() => port)
    await program.start({ ...env, DATABASE_URL: program.file(), ORIGIN: origin }, port)
    const browser = userAgent()
    const foreign = { 'X-Forwarded-Host': 'evil.example', Host: 'evil.example', Forwarded: 'host=evil.example' }
    const begun = await browser.send(`${origin}/sign-in/provider`, { headers: { ...navigation, ...foreign } })
    expect(new URL(begun.location ?? '').searchParams.get('redirect_uri')).toBe(`${origin}/sign-in/provider/callback`)
    for (const cookie of begun.setCookie) expect(cookie).toMatch(/^__Host-.*; secure/i)
    expect(begun.setCookie).not.toEqual([])
    const { stopped } = await browser.open(`${origin}/sign-in/provider`, isCallback)
    const page = await browser.send(stopped, { headers: navigation })
    expect([page.status, page.location]).toEqual([303, `${origin}/`])
    for (const cookie of page.setCookie) expect(cookie).toMatch(/^__Host-.*; secure/i)
    expect(await meOf(browser, origin)).toBe('provider-anna')
    expect(provider.asked('/token')).toBe(1)
  })
})

describeWithRedis('with sessions in Redis', () => {
  const redis = redisServer()

  it('two processes finish what the other began; while it is stopped, what needs it is 503', async () => {
    const { provider, env } = await provided()
    const [DATABASE_URL, port] = [program.file(), await freePort()]
    const ORIGIN = `http://localhost:${port}`
    const shared = { ...env, DATABASE_URL, ORIGIN, REDIS_URL: redis().url }
    const one = await program.start(shared, port)
    const other = await program.start(shared)
    const phone = softwareAuthenticator({ origin: ORIGIN })
    const visitor = await signedIn(one.url)
    await registered(visitor, phone)
    const elsewhere = jsonClient(() => other.url)
    expect((await elsewhere.post('/sign-in/passkey', await answerOf(elsewhere, phone))).status).toBe(200)
    const browser = userAgent()
    const { stopped } = await browser.open(`${one.url}/sign-in/provider`, isCallback)
    const { body: creation } = await visitor.post('/passkeys/options')

    await redis().stop()
    const asked = provider.asked('/token')
    const stranger = jsonClient(() => one.url)
    const options = await stranger.post('/sign-in/passkey/options')
    expect(options.status).toBe(200)
    const answers = await Promise.all([
      stranger.post('/sign-in/passkey', phone.get(options.body as never)),
      visitor.post(
        '/passkeys',
        softwareAuthenticator({ origin: ORIGIN }).create({
          ...(creation as never as Parameters<Phone['create']>[0]),
          excludeCredentials: [],
        }),
      ),
      browser.send(stopped, { headers: navigation }),
      browser.send(stopped, { headers: asJson }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503])
    expect(provider.asked('/token')).toBe(asked)

    await redis().start()
    let status = 0
    while (status !== 303) {
      await new Promise((resolve) => setTimeout(resolve, 200))
      status = (await browser.send(stopped, { headers: navigation })).status
    }
    expect([status, await meOf(browser, one.url)]).toEqual([303, 'provider-anna'])
  })
})

it('logs nothing secret, whatever fails at the provider', async () => {
  const { provider, env } = await provided()
  const { url, log } = await program.start({ ...env, DATABASE_URL: program.file() })
  const browser = userAgent()
  const { stopped } = await browser.open(`${url}/sign-in/provider`, isCallback)
  await browser.send(stopped, { headers: navigation })
  const codes = [new URL(stopped).searchParams.get('code') ?? '-']
  for (const [status, error] of [
    [400, 'invalid_grant'],
    [401, 'invalid_client'],
    [500, 'internal-secret'],
  ] as const) {
    provider.answers['/token'] = (res) =>
      res
        .writeHead(status, { 'Content-Type': 'application/json' })
        .end(JSON.stringify({ error, error_description: 'a-hidden-word' }))
    const next = userAgent()
    const page = await next.open(`${url}/sign-in/provider`, isCallback)
    codes.push(
      new URL(page.stopped).searchParams.get('code') ?? '-',
      new URL(page.stopped).searchParams.get('state') ?? '-',
    )
    const answer = await next.send(page.stopped, { headers: asJson })
    expect(answer.body).not.toContain('a-hidden-word')
  }
  // the refused client is for the operator
  expect(log()).toContain('invalid_client')
  const secrets = [...codes, SECRET, KEYS, 'an-access-token', 'a-refresh-token', 'a-hidden-word']
  for (const [, value] of browser.cookies(new URL(url).host)) secrets.push(value)
  for (const secret of secrets) expect(log().includes(secret), secret).toBe(false)
})

it('starts a provider of its own, and signs in with it', async () => {
  const { url } = await program.start({ DATABASE_URL: program.file() })
  const browser = userAgent()
  const asking = await browser.open(`${url}/sign-in/provider`)
  expect([asking.status, asking.body.includes('Your name here')]).toEqual([200, true])
  const body = new URLSearchParams({ login: 'carol' })
  const sent = await browser.send(asking.stopped, { method: 'POST', body })
  await browser.open(sent.location ?? '')
  expect(await meOf(browser, url)).toBe('provider-carol')
})

it('names no passkey in the options of a sign-in', async () => {
  const { env } = await provided()
  const { url } = await program.start({ ...env, DATABASE_URL: program.file() })
  const reply = await jsonClient(() => url).post('/sign-in/passkey/options', { username: 'anna' })
  expect([member(reply, 'rpId'), member(reply, 'userVerification')]).toEqual(['localhost', 'required'])
  expect(member(reply, 'allowCredentials') ?? []).toEqual([])
})
