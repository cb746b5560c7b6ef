/** Two processes of one site: a change of a session in one is effective immediately in the other. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeWithRedis, redisServer } from '../support/servers/redisServer.js'
import { buildSite, siteCommand, startSite, type Site } from '../support/sites/sessionSite.js'
import { siteClient, type Reply } from '../support/sites/sessionSiteClient.js'

const built = buildSite()
afterAll(built.remove)

const challenge = 'Session realm="api"'

const seen = ({ status, body }: Reply): unknown => [status, status === 200 ? JSON.parse(body) : undefined]

const describeTwo = (env: () => Readonly<Record<string, string>>): void => {
  let one: Site
  let other: Site
  beforeAll(async () => {
    const command = siteCommand(built.folder, env(), randomBytes(32).toString('hex'))
    ;[one, other] = [await startSite(command), await startSite(command)]
  })
  afterAll(async () => {
    await one?.stop()
    await other?.stop()
  })
  const signedIn = async (user: string, site: Site) => {
    const client = siteClient(site.port)
    expect((await client.send('POST', `/login/${user}`)).status).toBe(204)
    return client
  }
  const calls = async () => [(await one.state()).calls['me'], (await other.state()).calls['me']]

  it('a user who signs in on one process is signed in on the other, and each reads what the other writes', async () => {
    const here = await signedIn('user-anna', one)
    const there = here.copy(other.port)
    expect(seen(await there.send('GET', '/me'))).toEqual([200, { username: 'user-anna', notes: 0 }])
    for (const client of [here, there, there, here]) expect((await client.send('POST', '/notes')).status).toBe(201)
    expect(seen(await here.send('GET', '/me'))).toEqual([200, { username: 'user-anna', notes: 4 }])
    expect(seen(await there.send('GET', '/me'))).toEqual([200, { username: 'user-anna', notes: 4 }])
  })

  it('a user who signs out on one process is refused on the other, with any copy of the cookie', async () => {
    const here = await signedIn('user-berta', one)
    const there = here.copy(other.port)
    const copies = [here.copy(), here.copy(other.port)]
    expect((await there.send('GET', '/me')).status).toBe(200)
    const before = await calls()
    expect((await here.send('POST', '/logout')).status).toBe(204)
    for (const client of [there, ...copies]) {
      const refused = await client.send('GET', '/me')
      expect([refused.status, refused.challenge, refused.setCookie]).toEqual([401, challenge, []])
      expect((await client.send('POST', '/notes')).status).toBe(401)
    }
    expect(await calls()).toEqual(before)
  })

  // D-S4: they read the session before it ended, and write it afterwards
  it('a session that ended on one process is not restored by writes on the other', async () => {
    const here = await signedIn('user-carla', one)
    const there = Array.from({ length: 10 }, () => here.copy(other.port))
    const writing = there.map((client) => client.send('POST', '/notes?wait=500'))
    await new Promise((resolve) => setTimeout(resolve, 250))
    expect((await here.copy().send('POST', '/logout')).status).toBe(204)
    for (const { status, setCookie } of await Promise.all(writing)) expect([status, setCookie]).toEqual([201, []])
    for (const client of [here, ...there]) expect((await client.send('GET', '/me')).status).toBe(401)
  })

  it('logOutEverywhere on one process ends five sessions on both, and no others', async () => {
    const five = await Promise.all([one, other, one, other, one].map((site) => signedIn('user-dora', site)))
    const neighbour = await signedIn('user-emma', other)
    const both = (client: (typeof five)[number]) => [client.copy(one.port), client.copy(other.port)]
    for (const client of five.flatMap(both)) expect((await client.send('GET', '/me')).status).toBe(200)
    const before = await calls()
    expect((await five[0]!.send('POST', '/everywhere')).status).toBe(204)
    for (const client of five.flatMap(both)) {
      const refused = await client.send('GET', '/me')
      expect([refused.status, refused.challenge]).toEqual([401, challenge])
    }
    expect(await calls()).toEqual(before)
    for (const client of both(neighbour)) expect((await client.send('GET', '/me')).status).toBe(200)
    const again = await signedIn('user-dora', other)
    for (const client of both(again)) expect((await client.send('GET', '/me')).status).toBe(200)
  })

  it('fifty users who use both processes at the same time lose no session, and sessions do not mix', async () => {
    const people = await Promise.all(
      Array.from({ length: 50 }, (_, index) => signedIn(`user-${index}`, index % 2 === 0 ? one : other)),
    )
    const answers = await Promise.all(
      people.flatMap((client) => [one, other, one, other].map((site) => client.copy(site.port).send('GET', '/me'))),
    )
    expect(answers.map(seen)).toEqual(
      people.flatMap((_, index) => Array.from({ length: 4 }, () => [200, { username: `user-${index}`, notes: 0 }])),
    )
  })
}

for (const STORE of ['redis', 'ioredis']) {
  describeWithRedis(`two processes on one Redis by ${STORE}`, () => {
    const redis = redisServer()
    describeTwo(() => ({ STORE, REDIS_PORT: String(redis().port) }))
  })
}

describe('two processes on one SQLite file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'koa-with-auth-processes-'))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  describeTwo(() => ({ STORE: 'sqlite', SQLITE_URL: `file:${join(folder, 'sessions.db')}` }))
})
