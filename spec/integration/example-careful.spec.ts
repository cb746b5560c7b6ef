/** The example as somebody will run it: what was deleted stays deleted, and an end is the end of everything. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scryptSync } from 'node:crypto'
import { memoryStore } from 'koa-with-auth/sessions'
import { createClient } from 'redis'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { exampleApp } from '../../examples/api/app.js'
import { openDatabase } from '../../examples/api/database.js'
import { hashPassword, verifyPassword } from '../../examples/api/passwords.js'
import { redisTokens, type Tokens } from '../../examples/api/tokens.js'
import { describeWithRedis, redisServer } from '../support/redisServer.js'
import { ask, listen } from '../support/server.js'

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
  const database = await openDatabase(`file:${join(folder, 'own.db')}`)
  const app = exampleApp({
    database,
    keys: ['k'.repeat(32)],
    allowedAddresses: '127.0.0.1',
    store: memoryStore(),
    ...(tokens !== undefined && { tokens }),
  })
  const served = await listen(app)
  const close = async () => {
    await served.close()
    database.close()
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
    return headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
  }
  return { database, at, close, tokenOf, cookieOf }
}

describe('the users and keys that it is delivered with', () => {
  it('E1 one that was deleted does not come back at the next start, nor does one that was changed', async () => {
    const first = await opened()
    expect((await first.at('/login', user('sue'))).status).toBe(204)
    expect((await first.at('/apikey?api_key=supersecret')).status).toBe(200)
    await first.database.execute("delete from users where username = 'sue'")
    await first.database.execute("update users set is_active = 0 where username = 'anna'")
    await first.database.execute('delete from clients')
    await first.close()

    const second = await opened()
    expect((await second.at('/login', user('sue'))).status).toBe(401)
    expect((await second.at('/login', user('anna'))).status).toBe(401)
    expect((await second.at('/apikey?api_key=supersecret')).status).toBe(401)
    expect((await second.at('/login', user('sam'))).status).toBe(204)
  })

  it('E1 also where all of them were deleted', async () => {
    const first = await opened()
    await first.database.execute('delete from users')
    await first.close()
    const second = await opened()
    expect((await second.database.execute('select * from users')).rows).toEqual([])
    expect((await second.at('/login', user('anna'))).status).toBe(401)
  })

  it('two that start at once on a new database have them once', async () => {
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
  // who signs in again gets tokens that are good
  expect((await at('/whoami', bearer(await tokenOf('anna')))).status).toBe(200)
}

describe('POST /logout-everywhere', () => {
  it('E2 ends the sessions and the tokens of a user, and of no other', () => endsEverything())
})

describeWithRedis('POST /logout-everywhere with tokens in Redis', () => {
  const server = redisServer()
  it('E2 ends the sessions and the tokens of a user, and of no other', async () => {
    const client = await createClient({ url: server().url }).connect()
    onTestFinished(() => client.destroy())
    await endsEverything(redisTokens((args) => client.sendCommand(args)))
    // nothing is kept for longer than a token is good
    for (const key of await client.keys('*')) expect(await client.pTTL(key)).toBeGreaterThan(0)
  })
})

describe('passwords', () => {
  it('E3 are hashed by scrypt with N 2^14, r 8 and p 5 (OWASP), each with a salt of its own', async () => {
    const [hash, again] = [await hashPassword('a long password'), await hashPassword('a long password')]
    expect(hash).not.toBe(again)
    const [salt = '', key = ''] = hash.split(':')
    const derived = scryptSync('a long password', Buffer.from(salt, 'hex'), 32, { N: 2 ** 14, r: 8, p: 5 })
    expect(key).toBe(derived.toString('hex'))
    expect(await verifyPassword('a long password', hash)).toBe(true)
    expect(await verifyPassword('another', hash)).toBe(false)
    expect(await verifyPassword('a long password', undefined)).toBe(false)
  })
})
