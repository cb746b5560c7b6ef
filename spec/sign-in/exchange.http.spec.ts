/** RFC 8693: the token of a caller becomes a token of the next service, for the same user. */
import Router from '@koa/router'
import { decodeJwt } from 'jose'
import Koa from 'koa'
import { anyOf, httpBearer, withAuth } from 'koa-with-auth'
import { httpJwt } from 'koa-with-auth/jwt'
import { exchange, type ExchangeOptions } from 'koa-with-auth/sign-in/oidc'
import { testIssuer } from 'koa-with-auth/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listen } from '../support/servers/server.js'

const API = 'https://orders.example'

const start = async (over: Partial<ExchangeOptions> = {}) => {
  const issuer = await testIssuer()
  onTestFinished(() => issuer.stop())
  const billing = exchange({
    tokenEndpoint: `${issuer.issuer}/token`,
    client: { id: 'orders', secret: 'a secret of the client' },
    audience: 'billing',
    ...over,
  })
  const app = new Koa()
  app.silent = true
  const errors: unknown[] = []
  app.on('error', (error) => errors.push(error))
  const router = new Router()
  const jwt = httpJwt({ issuer: issuer.issuer, audience: API })
  const refusing = httpJwt({ issuer: issuer.issuer, audience: API, authenticate: () => false })
  router.get('/', withAuth(jwt), async (ctx) => {
    ctx.body = await billing.token(ctx)
  })
  const other = httpBearer({ authenticate: () => ({ name: 'not by a token of the issuer' }) })
  router.get('/other', withAuth(anyOf([refusing, other])), async (ctx) => {
    ctx.body = await billing.token(ctx)
  })
  app.use(router.routes())
  const { port } = await listen(app)
  const origin = `http://127.0.0.1:${port}`
  const get = async (token: string, path = '/') => {
    const answer = await fetch(origin + path, { headers: { Authorization: `Bearer ${token}` } })
    return { status: answer.status, headers: answer.headers, body: await answer.text() }
  }
  const token = (claims: Readonly<Record<string, unknown>> = {}) => issuer.token({ aud: API, sub: 'anna', ...claims })
  return { issuer, get, token, errors }
}

describe('exchange', () => {
  it('asks once for requests with one token, and hands out the token of the same user', async () => {
    const { issuer, get, token } = await start({ scope: ['pay', 'read'] })
    const subject = token()
    const answers = await Promise.all(Array.from({ length: 20 }, () => get(subject)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body)).size).toBe(1)
    expect(decodeJwt(answers[0]!.body)).toMatchObject({ sub: 'anna', aud: 'billing' })
    expect(issuer.tokenRequests).toEqual([
      {
        grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
        subject_token: subject,
        subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
        audience: 'billing',
        scope: 'pay read',
      },
    ])
  })

  it('hands the token of one user to no other', async () => {
    const { issuer, get, token } = await start()
    const answers = await Promise.all(['anna', 'bert', 'anna', 'bert'].map((sub) => get(token({ sub, jti: sub }))))
    expect(answers.map(({ body }) => decodeJwt(body).sub)).toEqual(['anna', 'bert', 'anna', 'bert'])
    expect(issuer.tokenRequests.length).toBeGreaterThanOrEqual(2)
  })

  it.each([
    ['its own', 20, 300, 10_000],
    ["the caller's", 300, 20, 10_000],
    ['an unsaid', undefined, 300, 50_000],
  ])('is asked again when %s life is at its end', async (_whose, expiresIn, subjectLasts, ends) => {
    vi.useFakeTimers({ toFake: ['Date'] })
    onTestFinished(() => void vi.useRealTimers())
    const { issuer, get, token } = await start()
    // Safe: what a provider may leave out
    issuer.expiresIn = expiresIn as number
    const subject = token({ exp: Math.floor(Date.now() / 1000) + subjectLasts })
    await get(subject)
    vi.setSystemTime(Date.now() + ends - 2000)
    await get(subject)
    expect(issuer.tokenRequests).toHaveLength(1)
    vi.setSystemTime(Date.now() + 3000)
    expect((await get(subject)).status).toBe(200)
    expect(issuer.tokenRequests).toHaveLength(2)
  })

  it('takes no token that was read and refused', async () => {
    const { get, issuer, token, errors } = await start()
    expect((await get(token(), '/other')).status).toBe(500)
    expect(String(errors[0])).toContain('put the operation behind httpJwt')
    expect(issuer.tokenRequests).toEqual([])
  })

  it.each([
    ['invalid_grant', 401],
    ['invalid_client', 503],
    ['invalid_target', 503],
    [500, 503],
    [429, 503],
  ])('%s of the provider is a %i, and the next request asks again', async (failWith, status) => {
    const { get, issuer, token } = await start()
    issuer.failWith = failWith
    const subject = token()
    const refused = await get(subject)
    expect([refused.status, refused.body.includes(subject)]).toEqual([status, false])
    issuer.failWith = undefined
    expect((await get(subject)).status).toBe(200)
  })

  it.each([
    [{}, 'write { provider }, or { tokenEndpoint, client }'],
    [{ tokenEndpoint: 'http://login.example/token' }, 'https'],
    [{ tokenEndpoint: 'https://login.example/token', client: { id: 'a' } }, 'audience or the resource'],
    [{ provider: {}, audience: 'a' }, 'oidc(...) or oauth2(...)'],
    [{ tokenEndpoint: 'https://login.example/token', client: { id: 'a' }, audience: '' }, 'audience'],
    [{ tokenEndpoint: 'https://a.example/token', client: { id: 'a' }, audience: 'a', scope: ['a b'] }, 'scope'],
  ])('%j is a TypeError', (options, message) => {
    expect(() => exchange(options as never)).toThrow(TypeError)
    expect(() => exchange(options as never)).toThrow(message)
  })
})
