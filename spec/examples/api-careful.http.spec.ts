/** The example as users run it: a deleted row stays deleted, and signing out everywhere ends everything. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scryptSync } from 'node:crypto'
import { memoryStore, sqliteStore } from 'koa-with-auth/stores'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { clientKeys, withDemoKey } from '../../examples/api/clients.js'
import { redisTokens, type Tokens } from '../../examples/api/tokens.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { ask, cookiesIn, listen } from '../support/servers/server.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'example-careful-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const form = (fields: Record<string, string>, headers: Record<string, string> = {}) => ({
  method: 'POST',
  body: new URLSearchParams(fields),
  headers,
})
const user = (username: string) => form({ username, password: `${username}-secret` })
const bearer = (token: string) => ({ headers: { Authorization: `Bearer ${token}` } })

const opened = async (tokens?: Tokens) => {
  const url = `file:${join(folder, 'own.db')}`
  const database = await openDatabase(url)
  const keyStore = sqliteStore({ url })
  const clients = await withDemoKey(clientKeys(keyStore))
  const app = exampleApp({
    database,
    keys: ['k'.repeat(32)],
    allowedAddresses: '127.0.0.1',
    store: memoryStore(),
    clients,
    ...(tokens !== undefined && { tokens }),
  })
  const served = await listen(app)
  const close = async () => {
    await served.close()
    database.close()
    keyStore.close()
  }
  onTestFinished(close)
  const at = (path: string, init: RequestInit = {}) => ask(`${served.url}/api${path}`, init)
  const tokenOf = async (username: string): Promise<string> => {
    const { status, text } = await at('/token', user(username))
    expect(status).toBe(200)
    return (JSON.parse(text) as { token: string }).token
  }
  const cookieOf = async (username: string): Promise<string> => {
    const { headers } = await at('/login', user(username))
    return cookiesIn(headers)
  }
  return { database, clients, at, close, tokenOf, cookieOf }
}

describe('the users and keys that the example creates', () => {
  it('E1 do not come back at the next start if they were deleted or changed', async () => {
    const first = await opened()
    expect((await first.at('/login', user('sue'))).status).toBe(204)
    expect((await first.at('/apikey?api_key=supersecret')).status).toBe(200)
    await first.database.execute("delete from users where username = 'sue'")
    await first.database.execute("update users set is_active = 0 where username = 'anna'")
    for (const { id } of await first.clients.list('Acme')) await first.clients.revoke(id)
    await first.close()

    const second = await opened()
    expect((await second.at('/login', user('sue'))).status).toBe(401)
    expect((await second.at('/login', user('anna'))).status).toBe(401)
    expect((await second.at('/apikey?api_key=supersecret')).status).toBe(401)
    expect((await second.at('/login', user('sam'))).status).toBe(204)
  })

  it('E1 do not come back if all of them were deleted', async () => {
    const first = await opened()
    await first.database.execute('delete from users')
    await first.close()
    const second = await opened()
    expect((await second.database.execute('select * from users')).rows).toEqual([])
    expect((await second.at('/login', user('anna'))).status).toBe(401)
  })

  it('are created once if two processes start together on a new database', async () => {
    const url = `file:${join(folder, 'own.db')}`
    const both = await Promise.all([openDatabase(url), openDatabase(url)])
    for (const database of both) {
      expect((await database.execute('select username from users order by 1')).rows).toHaveLength(4)
      database.close()
    }
  })
})

const endsEverything = async (tokens?: Tokens): Promise<void> => {
  const { at, tokenOf, cookieOf } = await opened(tokens)
  const [first, second, other] = [await tokenOf('anna'), await tokenOf('anna'), await tokenOf('sam')]
  const [cookie, elsewhere] = [await cookieOf('anna'), await cookieOf('anna')]
  for (const token of [first, second, other]) expect((await at('/whoami', bearer(token))).status).toBe(200)

  expect((await at('/logout-everywhere', form({}, { Cookie: cookie }))).status).toBe(204)
  for (const token of [first, second]) {
    expect(await at('/whoami', bearer(token))).toMatchObject({
      status: 401,
      challenge: 'Bearer realm="pets", error="invalid_token"',
    })
  }
  expect((await at('/protected', { headers: { Cookie: elsewhere } })).status).toBe(401)
  expect(await at('/whoami', bearer(other))).toMatchObject({ status: 200, text: '{"principal":"sam"}' })
  // Tokens from a later sign-in are valid
  expect((await at('/whoami', bearer(await tokenOf('anna')))).status).toBe(200)
}

describe('POST /logout-everywhere', () => {
  it('E2 ends the sessions and the tokens of one user only (SQLite)', () => endsEverything())
})

describeWithRedis('POST /logout-everywhere with tokens in Redis', () => {
  const server = redisDatabase()
  it('E2 ends the sessions and the tokens of one user only (Redis)', async () => {
    const client = await createClient({ url: server().url }).connect()
    onTestFinished(() => client.destroy())
    await endsEverything(redisTokens((args) => client.sendCommand(args)))
    // Nothing is kept longer than a token is valid
    for (const key of await client.keys('*')) expect(await client.pTTL(key)).toBeGreaterThan(0)
  })
})

describe('passwords', () => {
  const passwordsIn = async (database: Awaited<ReturnType<typeof openDatabase>>) =>
    (await database.execute('select password from users order by username')).rows.map(({ password }) =>
      typeof password === 'string' ? password : 'none',
    )

  it('E3 are hashed at the costs of OWASP, each with its own salt', async () => {
    const { database } = await opened()
    const passwords = await passwordsIn(database)
    for (const stored of passwords)
      expect(stored).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$|^\$scrypt\$ln=14,r=8,p=5\$/)
    expect(new Set(passwords.map((stored) => stored.split('$').at(-2))).size).toBe(4)
  })

  it('E3 hashed at lower costs are hashed again at the next sign-in, but not after a wrong password', async () => {
    const { database, at } = await opened()
    const weak = '$scrypt$ln=4,r=8,p=1$'
    const salt = Buffer.alloc(16, 7)
    const key = scryptSync('anna-secret', salt, 32, { N: 2 ** 4, r: 8, p: 1 })
    const kept = weak + [salt, key].map((bytes) => bytes.toString('base64').replace(/=+$/, '')).join('$')
    await database.execute({ sql: "update users set password = ? where username = 'anna'", args: [kept] })
    expect((await at('/token', form({ username: 'anna', password: 'wrong' }))).status).toBe(401)
    expect((await passwordsIn(database))[0]).toBe(kept)
    expect((await at('/token', user('anna'))).status).toBe(200)
    expect((await passwordsIn(database))[0]).not.toContain(weak)
    expect((await at('/token', user('anna'))).status).toBe(200)
  })
})
