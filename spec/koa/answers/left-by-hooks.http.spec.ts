/** what a hook writes to the response is removed. */
import { Readable } from 'node:stream'
import type { Context, Middleware, Request } from 'koa'
import type Koa from 'koa'
import { createSession } from 'koa-session'
import { sessionAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { guardedApp, sendCounted } from '../../support/sites/guardedApp.js'
import { listen, serve } from '../../support/servers/server.js'

const KEYS = ['a signing key of at least 32 characters']

describe('A-39 what a hook writes to the response', () => {
  let leave: (ctx: Context) => unknown = () => undefined
  let verdict: () => unknown = () => false
  const hook = ({ ctx }: Request) => {
    leave(ctx)
    return verdict()
  }
  const lateHook = (request: Request) => Promise.resolve(request).then(hook)
  const upstream: Middleware = (ctx, next) => {
    ctx.set({ 'X-Upstream': 'stays', Vary: 'Origin', 'Access-Control-Allow-Origin': '*' })
    ctx.cookies.set('theme', 'dark', { signed: false })
    return next()
  }
  const auths = { '/sync': hook, '/async': lateHook, '/list': [hook, lateHook], '/second': [() => false, hook] }
  const under = guardedApp(auths, {
    // The handler sets no status, so that a status which a hook set would show
    handler: (ctx) => void (ctx.body = 'fine'),
    above: () => [upstream],
  })
  const silent = guardedApp(auths, { handler: () => undefined, above: () => [upstream] })
  const alone = guardedApp(auths, { handler: () => undefined })
  const apps = [under, silent, alone].map((on) => ({ on, at: serve(() => on.app) }))

  const evil = { 'X-Secret': '1', 'WWW-Authenticate': 'Evil', 'Content-Type': 'text/x', 'Cache-Control': 'public' }
  const marks: ReadonlyArray<readonly [what: string, leave: (ctx: Context) => unknown]> = [
    ['a status', (ctx) => (ctx.status = 401)],
    ['a message', (ctx) => (ctx.message = 'Come in')],
    ['a body', (ctx) => (ctx.body = { secret: true })],
    ['a stream', (ctx) => (ctx.body = Readable.from(['secret']))],
    ['a null body', (ctx) => (ctx.body = null)],
    ['headers', (ctx) => ctx.set(evil)],
    ['an addition to an upstream header', (ctx) => ctx.append('X-Upstream', 'more')],
    ['a removed upstream header', (ctx) => ctx.remove('X-Upstream')],
    ['a cookie', (ctx) => ctx.cookies.set('evil', '1', { signed: false })],
    ['an overwritten upstream cookie', (ctx) => ctx.cookies.set('theme', 'evil', { signed: false, overwrite: true })],
    ['an added Set-Cookie', (ctx) => ctx.append('Set-Cookie', 'evil=1')],
  ]
  const plain = ({ headers, ...rest }: Awaited<ReturnType<typeof sendCounted>>) => ({
    ...rest,
    headers: headers.filter(([name]) => name !== 'date').toSorted(),
  })

  it.each(marks)('A-39 %s is removed, whether authentication fails or passes', async (_what, mark) => {
    for (const path of Object.keys(auths)) {
      for (const { on, at } of apps) {
        for (const answer of [() => false, () => ({ user: 'anna' }), () => Promise.resolve(null)]) {
          verdict = answer
          leave = () => undefined
          const expected = plain(await sendCounted(on, at.port, `GET ${path}`))
          leave = mark
          expect(plain(await sendCounted(on, at.port, `GET ${path}`))).toEqual(expected)
        }
      }
    }
  })

  it('A-39 the cookie with which koa-session deletes a forged cookie is not sent with a refusal', async () => {
    const above = (koa: Koa) => ((koa.keys = KEYS), [createSession(koa), upstream])
    const app = guardedApp({ '/x': sessionAuth() }, { above })
    const own = await listen(app.app)
    const forged = ['Cookie: koa.sess=Zm9yZ2Vk; koa.sess.sig=AAAAAAAAAAAAAAAAAAAAAAAAAAA']
    const { status, headers, ran } = await sendCounted(app, own.port, 'GET /x', forged)
    expect([status, ran]).toEqual([401, 0])
    const cookies = headers.filter(([name]) => name === 'set-cookie').map(([, value]) => value)
    expect(cookies).toEqual(['theme=dark; path=/; httponly'])
  })
})
