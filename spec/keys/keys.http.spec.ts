/** API keys over HTTP: each failure has its status, challenge and body, and no secret is anywhere. */
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, httpBearer, UnavailableError, withAuth } from 'koa-with-auth'
import { apiKeys } from 'koa-with-auth/keys'
import { memoryStore } from 'koa-with-auth/stores'
import { beforeEach, describe, expect, it } from 'vitest'
import { noting } from '../support/stores/stores.js'
import { ask, listen, serve } from '../support/servers/server.js'

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
  it.each(['/header', '/query', '/cookie', '/bearer'])('%s: takes a key, and none that is wrong', async (path) => {
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
  })
})

it('K-07 no secret is in a response, a record, an error, a log line or anything that a store is given', async () => {
  const { store: watched, given } = noting(memoryStore())
  const own = apiKeys({ prefix: 'acme', store: watched, adopted: /^old-/ })
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
  const { url } = await listen(app.use(router.routes()))
  const first = await own.issue({ owner: 'anna', name: 'ci', scopes: ['read'] })
  const second = await own.rotate(first.id, { overlap: 60_000 })
  const responses: string[] = []
  for (const key of [first.key, second.key, `${second.key}x`]) {
    for (const path of ['/list', '/none']) {
      const { text, headers } = await ask(url + path, { headers: { 'X-API-Key': key } })
      responses.push(text, JSON.stringify([...headers]))
    }
  }
  expect(errors.length).toBeGreaterThan(0)
  expect(responses.join('\n')).toContain('"ci"')
  const kept = JSON.stringify(given) + errors.map((error) => (error instanceof Error ? String(error.stack) : '')).join()
  for (const { key } of [first, second]) {
    for (const text of [...responses, kept]) expect(text).not.toContain(key.slice('acme_'.length, -4))
  }
  // Nor is the digest, by which a key can be found, in a response
  for (const text of responses) expect(text).not.toMatch(/[0-9a-f]{64}/)
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
