/** The templates "site" and "keys" on each database: accounts, what their page changes, several processes, and what production needs. */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type Koa from 'koa'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { settingsIn } from '../../examples/create/templates/site/src/settings.js'
import { sqlPort } from '../support/runs/sqlOfRun.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { listen } from '../support/servers/server.js'
import { describeWithSql, USER, type Sql } from '../support/servers/sqlServer.js'
import { browserAt, fieldsOf, signUp, templateSite, type BrowserAtSite } from '../support/sites/templateSite.js'
import { expectGracefulEnd } from '../support/sites/templateProcess.js'
import { repository } from '../support/projects/typecheck.js'
import { userProject } from '../support/projects/userProject.js'
import { asOwner, newName } from '../support/stores/databases.js'

const anna = 'anna@example.com'
const password = 'four words of some length'

const file = (): string => {
  const path = join(tmpdir(), `site-${randomUUID()}.db`)
  onTestFinished(() => ['', '-wal', '-shm'].forEach((end) => rmSync(path + end, { force: true })))
  return `file:${path}`
}

const databaseOf = async (kind: Sql): Promise<string> => {
  const name = newName()
  await asOwner(kind, `create database ${name}`)
  return `${kind === 'postgres' ? 'postgres' : 'mysql'}://${USER}@127.0.0.1:${await sqlPort(kind)}/${name}`
}

const signIn = (browser: BrowserAtSite, email: string, typed: string) =>
  browser.post('/sign-in', { email, password: typed, returnTo: '/account' })

interface Engine {
  readonly url: () => string | Promise<string>
  readonly redis?: () => string
}

const onEach = (suite: (engine: Engine) => void): void => {
  describe('on SQLite', () => suite({ url: file }))
  for (const kind of ['postgres', 'mariadb'] as const) {
    describeWithSql(kind, `on ${kind}`, () => suite({ url: () => databaseOf(kind) }))
  }
  describeWithRedis('on Redis beside SQLite', () => {
    const redis = redisDatabase()
    suite({ url: file, redis: () => redis().url })
  })
}

describe('the template "site"', () => {
  onEach(({ url, redis }) => {
    it('makes an account, changes all of it, and deletes it', async () => {
      const served = await templateSite({ url: await url(), redisUrl: redis?.() })
      const [browser, phone] = [browserAt(served), browserAt(served)]
      expect((await browser.get('/health')).status).toBe(204)
      expect((await signUp(browser, served, anna, password)).heading).toBe('The password is set')
      expect(await signIn(browser, anna, password)).toMatchObject({ status: 303, location: '/account' })
      await signIn(phone, anna, password)

      // a password that will not do says why; a good one ends the other sessions
      const change = (current: string, chosen: string) =>
        browser.post('/account/password', { current, password: chosen })
      expect((await change('wrong', 'another four good words')).said).toBe('That was not right. Try again.')
      expect((await change(password, 'anna@example.com is me')).said).toMatch(/^It contains your address/)
      expect((await change(password, 'another four good words')).location).toBe('/account')
      expect((await browser.get('/account')).said).toBe('Your password is changed.')
      expect((await phone.get('/account')).heading).toBe('Sign in')
      expect(served.mails.at(-1)).toEqual([anna, expect.stringMatching(/^Your password was changed/)])

      // an address that is free, by the link that was mailed there
      const other = browserAt(served)
      await signUp(other, served, 'bert@example.com', password)
      expect((await browser.post('/account/address', { address: 'new@example.com' })).heading).toBe('Check your mail')
      const link = fieldsOf(await served.link())
      await browser.post('/account/address', { address: 'bert@example.com' }) // taken
      expect((await phone.post('/address', link)).heading).toBe('Your address is changed')
      expect(served.mails.at(-1)).toEqual([anna, expect.stringMatching(/^Your address was changed/)])
      expect((await browser.get('/account')).body).toContain('new@example.com')
      expect((await signIn(phone, anna, 'another four good words')).status).toBe(403)
      expect((await signIn(phone, 'new@example.com', 'another four good words')).status).toBe(303)

      expect(served.mails.filter(([to]) => to === 'bert@example.com')).toHaveLength(1) // that of the sign-up

      expect((await browser.post('/account/everywhere')).location).toBe('/sign-in')
      expect((await phone.get('/account')).heading).toBe('Sign in')
      await signIn(browser, 'new@example.com', 'another four good words')
      expect((await browser.post('/account/delete')).location).toBe('/?deleted')
      expect((await browser.get('/?deleted')).said).toBe('Your account is deleted.')
      expect((await signIn(browser, 'new@example.com', 'another four good words')).status).toBe(403)
    })

    it('counts guesses of two processes together, and shares sessions', async () => {
      const [database, redisUrl] = [await url(), redis?.()]
      const env = { KEYS: 'a key of at least 32 characters that all share' }
      const first = await templateSite({ url: database, redisUrl, env })
      const second = await templateSite({ url: database, redisUrl, env: { ...env, ORIGIN: first.origin } })
      const browser = browserAt(first)
      await signUp(browser, first, anna, password)
      const { setCookie } = await browser.send(`${first.origin}/sign-in`, {
        method: 'POST',
        body: new URLSearchParams({ email: anna, password }),
      })
      const cookie = setCookie.map((line) => line.split(';', 1)[0]).join('; ')
      const there = await browser.send(`${second.origin}/account`, { headers: { Cookie: cookie } })
      expect([there.status, there.body]).toEqual([200, expect.stringContaining(anna)])
      // an account that nobody has signed in to, because a success is taken back after its answer
      await signUp(browser, first, 'bert@example.com', password)
      const statuses = await Promise.all(
        Array.from({ length: 12 }, async (_, at) =>
          signIn(browserAt(at % 2 ? first : second), 'bert@example.com', 'wrong'),
        ),
      )
      const sorted = statuses.map(({ status }) => status).sort((one, other) => one - other)
      expect(sorted).toEqual([...Array<number>(10).fill(403), 429, 429])
      expect((await signIn(browserAt(second), 'bert@example.com', password)).status).toBe(429)
    })
  })

  it('of two sign-ups by one link, and of two accounts that want an address, one succeeds', async () => {
    const served = await templateSite()
    const browser = browserAt(served)
    await browser.post('/sign-up', { address: anna })
    await browser.post('/sign-up', { address: anna })
    const links = [fieldsOf(await served.link()), fieldsOf(await served.link())]
    const answers = await Promise.all(links.map((one) => browser.post('/password', { ...one, password })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, expect.toSatisfy((status) => status >= 400)])
    await signUp(browser, served, 'bert@example.com', password)
    const [one, other] = [browserAt(served), browserAt(served)]
    await signIn(one, anna, password)
    await signIn(other, 'bert@example.com', password)
    const wanted: Array<Record<string, string>> = []
    for (const who of [one, other]) {
      await who.post('/account/address', { address: 'free@example.com' })
      wanted.push(fieldsOf(await served.link()))
    }
    const changed = await Promise.all(wanted.map((link) => browser.post('/address', link)))
    expect(changed.map(({ status }) => status).sort()).toEqual([200, expect.toSatisfy((status) => status >= 400)])
  })

  it.each([
    ['short', 'zu kurz'],
    ['a'.repeat(129), 'zu lang'],
    ['passwordpassword', 'benutzen viele'],
    ['my site is the best', 'den Namen dieser Seite'],
  ])('says why the password %j will not do, in the language of the browser', async (chosen, reason) => {
    const served = await templateSite()
    const browser = browserAt(served)
    await browser.post('/sign-up', { address: anna })
    const fields = { ...fieldsOf(await served.link()), password: chosen }
    const { status, said, body } = await browser.post('/password', fields, { 'Accept-Language': 'de' })
    expect([status, said]).toEqual([400, expect.stringContaining(reason)])
    expect(body).toMatch(/autocomplete="username"[^>]*value="anna@example.com"/)
    expect((await browser.post('/password', { ...fields, password })).status).toBe(200)
  })

  it('gives new recovery codes to who has an authenticator app, and to nobody else', async () => {
    const served = await templateSite()
    const browser = browserAt(served)
    await signUp(browser, served, anna, password)
    await signIn(browser, anna, password)
    expect((await browser.post('/account/recovery')).location).toBe('/account')
    expect((await browserAt(served).post('/account/recovery')).location).toMatch(/^\/sign-in/)
  })
})

describe('the settings of the template "site"', () => {
  const all = {
    NODE_ENV: 'production',
    KEYS: 'a key of at least 32 characters that all share',
    ORIGIN: 'https://my.example',
    SMTP_URL: 'smtp://127.0.0.1:2525',
  }
  it.each([
    [all, undefined],
    [{ ...all, NODE_ENV: 'development', HOST: '0.0.0.0', KEYS: '' }, 'KEYS'],
    [{ ...all, KEYS: undefined }, 'KEYS'],
    [{ ...all, ORIGIN: undefined }, 'ORIGIN'],
    [{ ...all, SMTP_URL: undefined }, 'SMTP_URL'],
    [{}, undefined],
    [{ NODE_ENV: 'test', HOST: 'localhost' }, undefined],
  ])('%j: %s is missing', (env, missing) => {
    const read = () => settingsIn(env)
    if (missing === undefined) expect(read).not.toThrow()
    else expect(read).toThrow(new RegExp(`^set ${missing}: [^\\n]+$`))
  })
  it('names all that is missing at once, and trusts a proxy where others can reach it', () => {
    expect(() => settingsIn({ NODE_ENV: 'production' })).toThrow(/KEYS[^]*ORIGIN[^]*SMTP_URL/)
    const proxies = [all, { ...all, PROXY: '0' }, {}].map((env) => settingsIn(env).proxy)
    expect(proxies).toEqual([true, false, false])
  })
})

interface Keys {
  readonly service: (url: string) => Promise<{
    readonly app: Koa
    readonly keys: { readonly issue: (options: object) => Promise<{ readonly id: string; readonly key: string }> }
    readonly close: () => unknown
  }>
}

describe('the template "keys"', () => {
  const around = `${repository}spec/.generated/keys-${process.pid}`
  let service: Keys['service']
  beforeAll(async () => {
    mkdirSync(around, { recursive: true })
    const program = `${repository}examples/create/create.js`
    execFileSync(process.execPath, [program, 'my-keys', '--template', 'keys', '--library', '0.1.0'], { cwd: around })
    // Safe: the template exports it
    ;({ service } = (await import(/* @vite-ignore */ `${around}/my-keys/src/app.ts`)) as Keys)
  })
  afterAll(() => rmSync(around, { recursive: true, force: true }))

  onEach(({ url, redis }) => {
    it('issues keys that work in another process until they are revoked', async () => {
      const kept = redis?.() ?? (await url())
      const [first, second] = [await service(kept), await service(kept)]
      const [here, there] = [await listen(first.app), await listen(second.app)]
      onTestFinished(async () => {
        for (const one of [here, there]) await one.close()
        for (const one of [first, second]) await one.close()
      })
      expect((await fetch(`${here.url}/api/health`)).status).toBe(204)
      const { id, key } = await first.keys.issue({ owner: 'acme' })
      const headers = { 'X-API-Key': key }
      const statusOf = async () => (await fetch(`${there.url}/api/reports`, { headers })).status
      expect(await statusOf()).toBe(200)
      expect((await fetch(`${here.url}/api/keys/${id}`, { method: 'DELETE', headers })).status).toBe(204)
      expect(await statusOf()).toBe(401)
    })
  })
})

describeWithRedis('the template "site" while Redis is away', () => {
  const redis = redisServer()
  it('answers 503 at once, also at /health, and goes on when it is back', async () => {
    const served = await templateSite({ redisUrl: redis().url })
    const browser = browserAt(served)
    await signUp(browser, served, anna, password)
    await signIn(browser, anna, password)
    await redis().stop()
    // a command that waits for its connection would end by the time limit of 2 s
    await expect.poll(async () => (await browser.get('/health')).status).toBe(503)
    expect(await browser.get('/account')).toMatchObject({ status: 503, said: 'Try again in a few seconds.' })
    await redis().start()
    await expect.poll(async () => (await browser.get('/health')).status).toBe(204)
    await signIn(browser, anna, password)
    expect((await browser.get('/account')).heading).toBe('Your account')
  })
})

describe('a process of the template "site"', () => {
  it('completes at SIGTERM what it has begun, and takes nothing more', async () => {
    const folder = 'examples/create/templates/site/src'
    const sources = readdirSync(repository + folder).map((name) => `${folder}/${name}`)
    const project = userProject(sources, {})
    onTestFinished(project.remove)
    await expectGracefulEnd(project.folder, 'server.js', { DATABASE_URL: 'file:app.db', NODE_ENV: 'test' })
  })
})
