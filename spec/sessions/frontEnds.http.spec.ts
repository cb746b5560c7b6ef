/** Front ends of another origin, by the cookie and by a token: the lines of the guides about CSRF and devices. */
import cors from '@koa/cors'
import Router from '@koa/router'
import Koa from 'koa'
import { authSettings, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { memoryStore } from 'koa-with-auth/stores'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listen } from '../support/servers/server.js'

const trusted = 'https://app.shop.example'
const stranger = 'https://evil.example'

const site = async () => {
  const app = new Koa({ keys: ['at least 32 characters, and kept outside the code'] })
  app.use(cors({ origin: (ctx) => (ctx.get('Origin') === trusted ? trusted : ''), credentials: true }))
  app.use(authSettings({ trustedOrigins: [trusted] }))
  const { sessionAuth, logIn } = sessions(app, {
    loadUser: (username) => ({ username }),
    store: memoryStore(),
    bearer: true,
  })
  let ordered = 0
  const router = new Router()
  router.post('/sign-in', withAuth(null), async (ctx) => {
    await logIn(ctx, { username: 'anna' })
    ctx.status = 204
  })
  router.post('/device/sign-in', withAuth(null), async (ctx) => {
    ctx.body = (await logIn(ctx, { username: 'anna' }, { as: 'bearer' })).token
  })
  router.post('/orders', withAuth(sessionAuth()), (ctx) => {
    ordered++
    ctx.body = ctx.request.auth.username
  })
  const { url, close } = await listen(app.use(router.routes()).use(router.allowedMethods()))
  onTestFinished(close)
  const send = (path: string, headers: Record<string, string>, method = 'POST') =>
    fetch(url + path, { method, headers })
  const signedIn = await send('/sign-in', {})
  const Cookie = signedIn.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const Authorization = `Bearer ${await (await send('/device/sign-in', {})).text()}`
  return { send, carried: { cookie: { Cookie }, token: { Authorization } }, ordered: () => ordered }
}

const readable = (answer: Response) => answer.headers.get('Access-Control-Allow-Origin')

describe('a front end on another origin', () => {
  // a browser shows a page only what the third column names
  it.each([
    ['cookie', trusted, 200, trusted, 1],
    ['cookie', stranger, 403, null, 0],
    ['token', trusted, 200, trusted, 1],
    ['token', stranger, 200, null, 1],
  ] as const)('by the %s, from %s: %d, which %s can read', async (by, Origin, status, reader, count) => {
    const { send, carried, ordered } = await site()
    const answer = await send('/orders', { ...carried[by], Origin, 'Sec-Fetch-Site': 'cross-site' })
    expect([answer.status, readable(answer), ordered()]).toEqual([status, reader, count])
    expect(answer.headers.get('Access-Control-Allow-Credentials')).toBe(reader === null ? null : 'true')
  })

  it.each([
    [trusted, trusted],
    [stranger, null],
  ])('the preflight of %s is answered to %s, without a credential', async (Origin, reader) => {
    const { send, ordered } = await site()
    const asked = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization' }
    const answer = await send('/orders', { Origin, ...asked }, 'OPTIONS')
    expect([readable(answer), ordered()]).toEqual([reader, 0])
    expect(answer.headers.get('Access-Control-Allow-Headers')).toBe(reader === null ? null : 'authorization')
  })

  it('without a credential is a 401 that the trusted page can read', async () => {
    const { send, ordered } = await site()
    const answer = await send('/orders', { Origin: trusted, 'Sec-Fetch-Site': 'same-site' })
    expect([answer.status, readable(answer), ordered()]).toEqual([401, trusted, 0])
  })
})
