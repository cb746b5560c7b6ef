/** The shop as processes: two on one file, database or Redis, an outage of Redis, a mailer that fails, and what is logged. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { JsonClient, JsonReply } from '../../support/servers/jsonClient.js'
import { describeWithRedis, redisServer } from '../../support/servers/redisServer.js'
import { anna, enrolled, html, member, outcome, userOf } from '../../support/sites/shopClient.js'
import { codeOf } from '../../support/servers/authenticatorApp.js'
import { sqlPort } from '../../support/runs/sqlOfRun.js'
import { describeWithSql, USER } from '../../support/servers/sqlServer.js'
import { asOwner, newName } from '../../support/stores/databases.js'
import { navigation, userAgent } from '../../support/servers/userAgent.js'
import { SECRET, wrongProvider } from '../../support/servers/wrongProvider.js'
import { KEY, shopMachines, type ShopProcess } from '../../support/sites/shopProcess.js'
import { ANOTHER, pathOf } from '../../support/sites/shopSite.js'

const machines = shopMachines()

const wrong = { username: 'anna', password: 'wrong' }
const statusesOf = (replies: ReadonlyArray<JsonReply>) => replies.map(({ status }) => status).sort()
const many = <A>(length: number, f: (at: number) => Promise<A>) => Promise.all(Array.from({ length }, (_, at) => f(at)))

const signedIn = async (shop: ShopProcess, user = 'anna'): Promise<JsonClient> => {
  const visitor = shop.client()
  const reply = await visitor.post('/sign-in/password', { username: user, password: `${user}-secret` })
  expect(reply.status).toBe(204)
  return visitor
}

const describeTwo = (env: () => Readonly<Record<string, string>>, hasSignals = false): void => {
  const two = async () => {
    const machine = machines()
    const [one, other] = [await machine.start(env()), await machine.start(env())]
    /** A client of one of them, in turn, with the cookies of another client. */
    const at = (turn: number, from?: JsonClient) => (turn % 2 === 0 ? one : other).client(from)
    return { machine, one, other, at }
  }

  it('count wrong passwords together', async () => {
    const { at } = await two()
    const replies = await many(24, (turn) => at(turn).post('/sign-in/password', wrong))
    expect(statusesOf(replies)).toEqual([...Array<number>(10).fill(403), ...Array<number>(14).fill(429)])
    expect((await at(0).post('/sign-in/password', { username: 'bert', password: 'bert-secret' })).status).toBe(204)
  })

  it('confirm a secret once', async () => {
    const { one, at } = await two()
    const visitor = await signedIn(one)
    const secret = String(member(await visitor.post('/factors/totp'), 'secret'))
    const confirmed = await many(6, (turn) =>
      at(turn, visitor).post('/factors/totp/confirm', { code: codeOf(secret, turn % 2 === 0 ? -1 : 0) }),
    )
    expect(statusesOf(confirmed)).toEqual([200, ...Array<number>(5).fill(403)])
  })

  it('let one of two new passwords in, which ends the sessions of both', async () => {
    const { machine, one, other, at } = await two()
    const visitors = [await signedIn(one, 'bert'), await signedIn(other, 'bert')]
    const links: string[] = []
    for (const shop of [one, other]) {
      await shop.client().post('/reset', { address: 'bert@shop.example' })
      links.push(pathOf((await machine.mail()).link))
    }
    const pressed = await many(4, (turn) => at(turn).post(links[turn % 2]!, { password: `${ANOTHER} ${turn}` }))
    expect(statusesOf(pressed)).toEqual([204, 400, 400, 400])
    for (const visitor of visitors) expect((await at(0, visitor).get('/me')).status).toBe(401)
  })

  it('give an identity one account, and take a recovery code once', async () => {
    const { one, at } = await two()
    const { recovery } = await enrolled({ signedIn: () => signedIn(one) })
    const halves = await many(4, async (turn) => {
      const half = at(turn)
      return { half, handle: member(await half.post('/sign-in/password', anna), 'handle') }
    })
    const used = halves.map(({ half, handle }) => half.post('/sign-in/recovery', { handle, code: recovery[0] }))
    expect(statusesOf(await Promise.all(used))).toEqual([204, 403, 403, 403])
  })

  it('refuse names that a database may take for another one', async () => {
    const { one } = await two()
    for (const username of ['anna ', 'Anna', 'ann\u00e1', 'anna\0', 'anna\ud800', '\u{1f99c}', 'a'.repeat(300)]) {
      const reply = await one.client().post('/sign-in/password', { ...anna, username })
      expect([username, ...outcome(reply)]).toEqual([username, 403, 'wrong'])
    }
  })

  it('end a stream with its session, and at SIGTERM', async () => {
    const { one, other } = await two()
    const [away, here] = [await signedIn(one), await signedIn(other)]
    const streamOf = (shop: ShopProcess, visitor: JsonClient) =>
      fetch(`${shop.url}/live`, { headers: { cookie: [...visitor.cookies].map((pair) => pair.join('=')).join('; ') } })
    const stream = await streamOf(other, here)
    if (hasSignals) {
      await away.post('/sign-out/everywhere')
      expect(await stream.text()).toBe(': open\n\n')
      expect((await here.get('/me')).status).toBe(401)
    }
    const last = hasSignals ? await streamOf(other, await signedIn(other)) : stream
    const stopped = other.stop()
    expect(await last.text()).toBe(': open\n\n')
    expect(await stopped).toBe(0)
    expect(other.log()).not.toContain('Error')
  })
}

describe('two processes on one file', () => describeTwo(() => ({})))

for (const [kind, scheme] of [
  ['postgres', 'postgres'],
  ['mariadb', 'mysql'],
] as const) {
  describeWithSql(kind, `two processes on one database, ${kind}`, () => {
    let DATABASE_URL = ''
    beforeEach(async () => {
      const name = newName()
      await asOwner(kind, `create database ${name}`)
      DATABASE_URL = `${scheme}://${USER}@127.0.0.1:${await sqlPort(kind)}/${name}`
    })
    describeTwo(() => ({ DATABASE_URL }), kind === 'postgres')
  })
}

describeWithRedis('two processes on one Redis', () => {
  const redis = redisServer()
  beforeEach(() => redis().send('FLUSHALL'))
  describeTwo(() => ({ REDIS_URL: redis().url }), true)
})

describeWithRedis('without Redis', () => {
  const redis = redisServer()
  const requests = (handle: unknown) =>
    [
      ['GET', '/', 503],
      ['GET', '/me', 503],
      ['GET', '/basket', 503],
      ['POST', '/basket', 503, { item: 'tea' }],
      ['GET', '/sessions', 503],
      ['DELETE', '/sessions/x', 503],
      ['POST', '/transfer', 503],
      ['GET', '/vault', 503],
      ['POST', '/sign-in/password', 503, anna],
      ['POST', '/sign-in/mail', 503, { address: 'anna@shop.example' }],
      ['POST', '/sign-in/mail/code', 503, { handle, code: '00000000' }],
      ['POST', '/reset', 503, { address: 'anna@shop.example' }],
      ['POST', '/prove/password', 503, { password: 'anna-secret' }],
      ['POST', '/factors/totp', 503],
      ['POST', '/sign-out', 503],
      ['POST', '/sign-out/everywhere', 503],
      ['POST', '/sign-in/passkey/options', 200, {}],
      ['GET', '/sign-in', 200],
      ['GET', '/sign-in/mail/link', 200],
    ] as const

  it.each(['stop', 'pause'] as const)('%s: what needs it is a 503 within 10 seconds, and it recovers', async (how) => {
    const shop = await machines().start({ REDIS_URL: redis().url })
    const visitor = await signedIn(shop, 'bert')
    const handle = member(await visitor.post('/sign-in/mail', { address: 'bert@shop.example' }), 'handle')
    await redis()[how]()
    for (const headers of [{}, html]) {
      const replies = requests(handle).map(async ([method, path, status, body]) => {
        const start = Date.now()
        const reply = await shop.client(visitor).send(method, path, body, headers)
        expect([method, path, reply.status]).toEqual([method, path, status])
        expect(Date.now() - start).toBeLessThan(10_000)
        if (status === 503 && headers === html) expect(reply.headers.get('content-type')).toContain('text/html')
      })
      await Promise.all(replies)
    }
    if (how === 'stop') await redis().start()
    else redis().continue()
    const signsIn = async () => (await shop.client().post('/sign-in/password', anna)).status
    await expect.poll(signsIn, { timeout: 20_000, interval: 200 }).toBe(204)
    expect(shop.log()).not.toMatch(/secret|shop\.example/)
  })

  it('it starts, and signs in when Redis is there', async () => {
    await redis().stop()
    const shop = await machines().start({ REDIS_URL: redis().url })
    expect((await shop.client().post('/sign-in/password', anna)).status).toBe(503)
    await redis().start()
    const signsIn = async () => (await shop.client().post('/sign-in/password', anna)).status
    await expect.poll(signsIn, { timeout: 20_000, interval: 200 }).toBe(204)
  })
})

describe('mail and log', () => {
  it('a mailer that fails changes no answer, and reports no address', async () => {
    const shop = await machines().start({ MAIL_DIR: '/nowhere/at/all' })
    const visitor = await signedIn(shop)
    for (const address of ['anna@shop.example', 'stranger@shop.example']) {
      const asked = await shop.client().post('/sign-in/mail', { address })
      expect([asked.status, Object.keys(asked.body as object)]).toEqual([200, ['handle']])
      expect((await shop.client().post('/reset', { address })).status).toBe(204)
    }
    expect((await visitor.post('/verify')).status).toBe(204)
    expect((await visitor.get('/me')).status).toBe(200)
    await expect.poll(() => shop.log()).toContain('emailVerification')
    expect(shop.log()).not.toMatch(/@shop|link\?|secret/)
  })

  it('nothing secret is written to the log', async () => {
    const machine = machines()
    const shop = await machine.start()
    const visitor = await signedIn(shop)
    const secret = String(member(await visitor.post('/factors/totp'), 'secret'))
    const confirmed = await visitor.post('/factors/totp/confirm', { code: codeOf(secret, 0) })
    const half = shop.client()
    const handle = String(member(await half.post('/sign-in/password', anna), 'handle'))
    await half.post('/sign-in/code', { handle, code: '000000' })
    await half.post('/sign-in/code', { handle, code: codeOf(secret) })
    await half.post('/sign-in/mail', { address: 'bert@shop.example' })
    const mail = await machine.mail()
    await half.post(pathOf(mail.link))
    await half.send('POST', '/sign-in/password', '{"password":"anna-secret"', { 'content-type': 'application/json' })
    expect(await userOf(half)).toBe('bert')
    const secrets = [handle, secret, mail.link, mail.code, ...half.cookies.values(), ...visitor.cookies.values()]
    const recovery = member(confirmed, 'recovery') as string[]
    for (const one of [...secrets, ...recovery, 'anna-secret']) expect(shop.log()).not.toContain(one)
    expect(await shop.stop()).toBe(0)
  })

  const provided = async () => {
    const provider = await wrongProvider()
    const own = { ORIGIN: undefined, ISSUER: provider.issuer, CLIENT_ID: 'shop', CLIENT_SECRET: SECRET }
    return { provider, shop: await machines().start(own) }
  }
  const json = { Accept: 'application/json' }
  const isCallback = (url: string): boolean => url.includes('/callback?')

  it('nothing secret is written to the log, whatever fails at the provider', async () => {
    const { provider, shop } = await provided()
    const browser = userAgent()
    const { stopped } = await browser.open(`${shop.origin}/sign-in/provider`, isCallback)
    await browser.send(stopped, { headers: navigation })
    const sent = [stopped]
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
      sent.push((await next.open(`${shop.origin}/sign-in/provider`, isCallback)).stopped)
      expect((await next.send(sent.at(-1)!, { headers: json })).body).not.toContain('a-hidden-word')
    }
    // the refused client is for the operator
    expect(shop.log()).toContain('invalid_client')
    const codes = sent.flatMap((url) => ['code', 'state'].map((name) => new URL(url).searchParams.get(name) ?? '-'))
    const cookies = browser.cookies(new URL(shop.origin).host).values()
    for (const secret of [...codes, ...cookies, SECRET, KEY, 'an-access-token', 'a-refresh-token', 'a-hidden-word']) {
      expect(shop.log().includes(secret), secret).toBe(false)
    }
  })

  it('the shop starts a provider of its own, and signs in with it', async () => {
    const shop = await machines().start({ ORIGIN: undefined, ISSUER: undefined })
    const browser = userAgent()
    const asking = await browser.open(`${shop.origin}/sign-in/provider`)
    expect([asking.status, asking.body.includes('Your name here')]).toEqual([200, true])
    const body = new URLSearchParams({ login: 'carol' })
    const sent = await browser.send(asking.stopped, { method: 'POST', body })
    await browser.open(sent.location ?? '')
    expect((await browser.send(`${shop.origin}/me`, { headers: json })).body).toContain('provider-carol')
  })
})
