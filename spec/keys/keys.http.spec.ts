/**
 * API keys over HTTP, on SQLite and on Redis: each failure has its status, challenge and body, and no secret is
 * anywhere.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import Koa from 'koa'
import {
  apiKeyCookie,
  apiKeyHeader,
  apiKeyQuery,
  httpBearer,
  requireScopes,
  UnavailableError,
  withAuth,
} from 'koa-with-auth'
import { apiKeys, type ApiKey } from 'koa-with-auth/keys'
import { type Store, memoryStore, redisStore, sqliteStore } from 'koa-with-auth/stores'
import { pipe } from 'fp-ts/lib/function.js'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { noting } from '../support/stores/stores.js'
import { redisDatabase } from '../support/servers/redisDatabase.js'
import { describeWithRedis } from '../support/servers/redisServer.js'
import { ask, listen, serve } from '../support/servers/server.js'
import { clients, sqliteFile, type Connected } from '../support/stores/sessionStores.js'

const { store, calls } = noting(memoryStore())
const keys = apiKeys({ prefix: 'acme', store })
let handled = 0

const served = serve(() => {
  const router = new Router()
  const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate })
  const answer = (ctx: { body: unknown; readonly request: { readonly auth: { readonly owner: string } } }) => {
    handled++
    ctx.body = ctx.request.auth.owner
  }
  router.get('/header', withAuth(header), answer)
  router.get('/query', withAuth(apiKeyQuery({ authenticate: keys.authenticate })), answer)
  router.get('/cookie', withAuth(apiKeyCookie({ authenticate: keys.authenticate })), answer)
  router.get('/bearer', withAuth(httpBearer({ authenticate: keys.authenticate })), answer)
  router.get(
    '/scoped',
    withAuth(pipe(header, requireScopes(['read'], { granted: ({ scopes }: ApiKey) => scopes }))),
    answer,
  )
  return new Koa().use(router.routes())
})
const sent = (path: string, key: string) => {
  if (path === '/query') return ask(`${served.url}${path}?key=${encodeURIComponent(key)}`)
  const headers = { '/cookie': { Cookie: `key=${key}` }, '/bearer': { Authorization: `Bearer ${key}` } }[path]
  return ask(served.url + path, { headers: headers ?? { 'X-API-Key': key } })
}

beforeEach(() => {
  handled = 0
  calls.length = 0
})

describe('API keys in each kind that reads one value', () => {
  it.each(['/header', '/query', '/cookie', '/bearer'])(
    '%s: accepts a key, and is a 401 without one and with a wrong one',
    async (path) => {
      const { key } = await keys.issue({ owner: 'anna' })
      const [good, none] = [await sent(path, key), await ask(served.url + path)]
      expect([good.status, good.text, handled]).toEqual([200, 'anna', 1])
      expect(none.status).toBe(401)
      calls.length = 0
      const wrong = await sent(path, `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`)
      expect([wrong.status, JSON.parse(wrong.text), calls]).toEqual([
        401,
        expect.objectContaining({ status: 401, detail: 'Unauthorized' }),
        [],
      ])
      expect(wrong.challenge).toMatch(path === '/bearer' ? /^Bearer .*error="invalid_token"$/ : /^ApiKey /)
      expect(handled).toBe(1)
    },
  )

  it('K-04 a revoked, replaced or unknown key is a 401, and the handler does not run', async () => {
    const first = await keys.issue({ owner: 'anna' })
    const second = await keys.rotate(first.id, { overlap: 0 })
    expect((await sent('/header', second.key)).status).toBe(200)
    for (const key of [
      first.key,
      (await apiKeys({ prefix: 'acme', store: memoryStore() }).issue({ owner: 'x' })).key,
    ]) {
      expect((await sent('/header', key)).status).toBe(401)
    }
    await keys.revoke(first.id)
    expect((await sent('/header', second.key)).status).toBe(401)
    expect(handled).toBe(1)
  })

  it('a missing scope is a 403 that names it', async () => {
    const [reader, other] = [await keys.issue({ owner: 'anna', scopes: ['read'] }), await keys.issue({ owner: 'sam' })]
    expect((await sent('/scoped', reader.key)).status).toBe(200)
    expect((await sent('/scoped', other.key)).status).toBe(403)
    expect(handled).toBe(1)
  })
})

describe('K-07 no secret is in a response, a record, the database, an error or a log line', () => {
  const trace = async (given: Store, everythingKept: () => Promise<string>): Promise<void> => {
    const own = apiKeys({ prefix: 'acme', store: given, adopted: /^old-/ })
    const errors: unknown[] = []
    const app = new Koa()
    app.silent = true
    app.on('error', (error: unknown) => errors.push(error))
    const router = new Router()
    const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate: own.authenticate })
    router.get('/list', withAuth(header), async (ctx) => {
      ctx.body = { me: ctx.request.auth, all: await own.list(ctx.request.auth.owner) }
    })
    router.get('/none', withAuth(header), async () => {
      await own.rotate('none', { overlap: 0 })
    })
    const site = await listen(app.use(router.routes()))
    const { url } = site
    const first = await own.issue({ owner: 'anna', name: 'ci', scopes: ['read'] })
    const second = await own.rotate(first.id, { overlap: 60_000 })
    const texts: string[] = []
    for (const key of [first.key, second.key, `${second.key}x`]) {
      for (const path of ['/list', '/none']) {
        const { text, headers } = await ask(url + path, { headers: { 'X-API-Key': key } })
        texts.push(text, JSON.stringify([...headers]))
      }
    }
    await site.close()
    texts.push(await everythingKept(), ...errors.map((error) => (error instanceof Error ? String(error.stack) : '')))
    expect(errors.length).toBeGreaterThan(0)
    expect(texts.join('\n')).toContain('"ci"')
    for (const { key } of [first, second]) {
      const body = key.slice('acme_'.length, -4)
      for (const text of texts) {
        expect(text).not.toContain(key)
        expect(text).not.toContain(body)
      }
    }
    // Nor is the digest, by which a key can be found, in a response
    for (const text of texts.slice(0, -1 - errors.length)) expect(text).not.toMatch(/[0-9a-f]{64}/)
  }

  describe('SQLite', () => {
    const url = sqliteFile()
    it('contains nothing of a key except its last four characters', async () => {
      const sqlite = sqliteStore({ url: url() })
      await trace(sqlite, async () => {
        const folder = dirname(fileURLToPath(url()))
        return readdirSync(folder)
          .map((name) => readFileSync(join(folder, name), 'latin1'))
          .join('\n')
      })
      sqlite.close()
    })
  })

  describeWithRedis('Redis', () => {
    const server = redisDatabase()
    let connected: Connected
    beforeAll(async () => {
      connected = await clients['the official client, RESP3']!(server())
    })
    afterAll(() => connected?.disconnect())
    it('gets nothing of a key except its last four characters, in any argument of a command', async () => {
      const sentCommands: string[] = []
      const command: Connected['command'] = (args, key) => {
        sentCommands.push(JSON.stringify(args))
        return connected.command(args, key)
      }
      await trace(redisStore({ command }), async () => sentCommands.join('\n'))
    })
  })
})

it('K-05 a store that fails is a 503 without a challenge, from a guard and from a handler that manages keys', async () => {
  const down = (): Promise<never> => Promise.reject(new Error('ECONNREFUSED 10.0.0.5'))
  const failing = { get: down, insert: down, update: down, end: down, add: down, members: down }
  const own = apiKeys({ prefix: 'acme', store: failing })
  const { key } = await keys.issue({ owner: 'anna' })
  const app = new Koa()
  app.silent = true
  const router = new Router()
  let ran = 0
  router.get('/guarded', withAuth(httpBearer({ authenticate: own.authenticate })), () => void ran++)
  router.post('/keys', withAuth(null), async () => void (await own.issue({ owner: 'anna' })))
  const site = await listen(app.use(router.routes()))
  const guarded = await ask(`${site.url}/guarded`, { headers: { Authorization: `Bearer ${key}` } })
  const managed = await ask(`${site.url}/keys`, { method: 'POST' })
  await site.close()
  expect([guarded.status, guarded.challenge, ran]).toEqual([503, null, 0])
  expect(guarded.headers.get('Retry-After')).toMatch(/^\d+$/)
  expect(managed.status).toBe(503)
  for (const { text } of [guarded, managed]) expect(text).not.toMatch(/ECONNREFUSED|10\.0\.0\.5/)
  for (const asked of [own.list('anna'), own.revoke('id'), own.rotate('id', { overlap: 0 })]) {
    await expect(asked).rejects.toBeInstanceOf(UnavailableError)
  }
})
