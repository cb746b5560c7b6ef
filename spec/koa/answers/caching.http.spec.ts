/** what caches may do with the responses of guarded operations. */
import createError from 'http-errors'
import type { Context } from 'koa'
import { apiKeyCookie, apiKeyHeader, apiKeyQuery, httpBasicAuth, httpBearer, sessionAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { guardedApp, sendCounted } from '../../support/sites/guardedApp.js'
import { valuesOf } from '../../support/servers/rawSocket.js'
import { listen, serve } from '../../support/servers/server.js'

const byKey = (_request: unknown, key: string) => key === 'supersecret' && { key }
const bearer = httpBearer({ authenticate: byKey })
const header = apiKeyHeader({ paramName: 'X-API-Key', authenticate: byKey })
const sameHeader = apiKeyHeader({ paramName: 'x-api-key', authenticate: byKey })
const cookie = apiKeyCookie({ authenticate: byKey })
const query = apiKeyQuery({ authenticate: byKey })
const basic = httpBasicAuth({ authenticate: (_request, username) => ({ username }) })
const withKeys = ['Authorization: Bearer supersecret', 'X-API-Key: supersecret', 'Cookie: key=supersecret']

let handle: (ctx: Context) => unknown
const kinds = [
  ['/bearer', bearer, 'Authorization'],
  ['/header', header, 'X-API-Key'],
  ['/cookie', cookie, 'Cookie'],
  ['/query', query, ''],
  ['/session', sessionAuth(), 'Cookie'],
  ['/list', [bearer, basic, sameHeader, header, cookie, query], 'Authorization, X-API-Key, Cookie'],
  ['/callable', () => ({ from: 'anywhere' }), '*'],
] as const

const under = guardedApp(
  { ...Object.fromEntries(kinds.map(([path, auth]) => [path, auth])), '/public': null, '/no': () => false },
  {
    handler: (ctx) => handle(ctx),
    // as koa-session leaves it
    above: (app) => {
      app.keys = ['a signing key of at least 32 characters']
      const session = (ctx: Context) => (ctx.querystring === '' ? {} : { user: { username: 'anna' } })
      return [(ctx, next) => (Object.defineProperty(ctx, 'session', { value: session(ctx) }), next())]
    },
  },
)
const served = serve(() => under.app)
const accepted = (path: string, does: (ctx: Context) => unknown) => {
  handle = does
  return sendCounted(under, served.port, `GET ${path}?key=supersecret`, withKeys)
}
const cachingOf = (answer: Parameters<typeof valuesOf>[0]) => ({
  caching: valuesOf(answer, 'Cache-Control').join(', '),
  vary: valuesOf(answer, 'Vary').join(', '),
})
const fine = (ctx: Context) => void (ctx.body = 'fine')
const raise = (error: unknown): never => {
  throw error
}

describe.each(kinds)('A-26 %s', (path, _auth, vary) => {
  it('A-26 an accepted response is private and not stored, and Vary names what was read', async () => {
    const answer = await accepted(path, fine)
    expect([answer.status, answer.ran, cachingOf(answer)]).toEqual([200, 1, { caching: 'private, no-store', vary }])
  })

  it('A-26 the handler’s own Cache-Control is kept, and its Vary is merged', async () => {
    const answer = await accepted(path, (ctx) => {
      ctx.set({ 'Cache-Control': 'public, max-age=60', Vary: 'Accept-Language' })
      ctx.body = 'fine'
    })
    const merged = vary === '*' ? '*' : ['Accept-Language', ...(vary === '' ? [] : [vary])].join(', ')
    expect([answer.status, cachingOf(answer)]).toEqual([200, { caching: 'public, max-age=60', vary: merged }])
  })

  it('A-26 a 304 and an empty response have the fields, too', async () => {
    for (const status of [304, 204]) {
      const answer = await accepted(path, (ctx) => void (ctx.status = status))
      expect([answer.status, cachingOf(answer)]).toEqual([status, { caching: 'private, no-store', vary }])
    }
  })

  it.each([
    ['an Error', () => new Error('in the handler'), 500],
    ['an HTTP error', () => createError(404, 'no such pet'), 404],
    ['an HTTP error with headers', () => createError(429, { headers: { 'Retry-After': '7' } }), 429],
    ['an HTTP error with lower-case headers', () => createError(410, { headers: { 'retry-after': '7' } }), 410],
    ['a string', () => 'in the handler', 500],
  ])('A-26 the response to an error that the handler throws has the fields: %s', async (_what, make, status) => {
    const answer = await accepted(path, () => raise(make()))
    expect([answer.status, cachingOf(answer)]).toEqual([status, { caching: 'private, no-store', vary }])
  })

  it('A-26 a thrown error’s own Cache-Control is kept, and its Vary is merged', async () => {
    const thrown = createError(404, { headers: { 'cache-control': 'max-age=5', vary: 'Origin' } })
    const answer = await accepted(path, () => raise(thrown))
    const merged = vary === '*' ? '*' : ['Origin', ...(vary === '' ? [] : [vary])].join(', ')
    expect([answer.status, cachingOf(answer)]).toEqual([404, { caching: 'max-age=5', vary: merged }])
  })

  it('A-26 a refusal is not stored, and Vary names what was read', async () => {
    const answer = await sendCounted(under, served.port, `GET ${path === '/callable' ? '/no' : path}`)
    expect([answer.status, answer.ran, cachingOf(answer)]).toEqual([401, 0, { caching: 'no-store', vary }])
  })
})

describe('A-26 shared errors, public operations and upstream middleware', () => {
  it('A-26 if two operations throw the same error object, each response has the fields of its own operation', async () => {
    const shared = new Error('made once')
    const fail = () => raise(shared)
    expect(cachingOf(await accepted('/header', fail)).vary).toBe('X-API-Key')
    expect(cachingOf(await accepted('/cookie', fail)).vary).toBe('Cookie')
  })

  it('A-26 a public operation gets no caching fields', async () => {
    expect(cachingOf(await accepted('/public', fine))).toEqual({ caching: '', vary: '' })
  })

  it('A-26 what upstream middleware puts into Vary stays', async () => {
    const app = guardedApp({ '/x': header }, { above: () => [(ctx, next) => (ctx.set('Vary', 'Origin'), next())] })
    const own = await listen(app.app)
    for (const lines of [[], withKeys]) {
      expect(valuesOf(await sendCounted(app, own.port, 'GET /x', lines), 'Vary')).toEqual(['Origin, X-API-Key'])
    }
  })
})
