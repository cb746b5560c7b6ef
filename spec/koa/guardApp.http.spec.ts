/** `guardApp`: a whole application is guarded, whatever it mounts. */
import { connect } from 'node:net'
import cors from '@koa/cors'
import Router from '@koa/router'
import Koa from 'koa'
import { apiKeyHeader, authSettings, guardApp, httpBearer, sessionAuth, withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { describe, expect, test } from 'vitest'
import { listen } from '../support/servers/server.js'

const bearer = httpBearer({ authenticate: (_request, token) => token === 'good' && { user: 'anna' } })
const key = apiKeyHeader({ paramName: 'X-Key', authenticate: (_request, sent) => sent === 'k1' && { user: 'key' } })

const served = async <S, C>(app: Koa<S, C>) => {
  app.silent = true
  const { port, url } = await listen(app)
  return { port, ask: (path: string, init?: RequestInit) => fetch(url + path, init) }
}

const good = { headers: { authorization: 'Bearer good' } }

describe('guardApp', () => {
  test('refuses every method and target before anything below runs', async () => {
    let calls = 0
    const app = guardApp(bearer)(new Koa())
    app.use((ctx) => {
      calls++
      ctx.body = ctx.request.auth.user
    })
    const { ask, port } = await served(app)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      for (const path of ['/', '/x/../y', '//', '/%2e%2e/', '/none?a=1']) {
        const answer = await ask(path, { method })
        const refused = [method, path, answer.status, answer.headers.get('www-authenticate')]
        expect(refused).toEqual([method, path, 401, 'Bearer realm="api"'])
      }
    }
    for (const target of ['*', 'http://other.example/', '/\x7f']) {
      const socket = connect(port, '127.0.0.1')
      socket.end(`OPTIONS ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`)
      let text = ''
      for await (const chunk of socket) text += String(chunk)
      expect(text).toMatch(/^HTTP\/1\.1 4(?:01|00) /)
    }
    expect(calls).toBe(0)
    expect(await (await ask('/', good)).text()).toBe('anna')
    expect(calls).toBe(1)
  })

  test('takes a list; levels inside add to it, and null opens nothing', async () => {
    const app = guardApp([bearer, key])(new Koa())
    const router = new Router()
    router.get('/open', withAuth(null), (ctx) => void (ctx.body = 'open'))
    router.get('/both', withAuth(key), (ctx) => void (ctx.body = ctx.request.auth))
    app.use(router.routes())
    const { ask } = await served(app)
    const sent = [{}, good, { headers: { 'x-key': 'k1' } }]
    const statuses = (path: string) => Promise.all(sent.map(async (one) => (await ask(path, one)).status))
    expect(await statuses('/open')).toEqual([401, 200, 200])
    expect(await statuses('/both')).toEqual([401, 401, 200])
    expect(await statuses('/none')).toEqual([401, 404, 404])
  })

  test('may be called twice: both guards must pass', async () => {
    const app = guardApp(key)(guardApp(bearer)(new Koa())).use((ctx) => void (ctx.body = 'in'))
    const { ask } = await served(app)
    const both = { headers: { ...good.headers, 'x-key': 'k1' } }
    const answers = [ask('/', good), ask('/', { headers: { 'x-key': 'k1' } }), ask('/', both)]
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([401, 401, 200])
  })

  test('obeys the settings and sessions that are mounted before it', async () => {
    const app = new Koa({ keys: ['a signing key of at least 32 characters'] })
    app.use(authSettings({ realm: 'pets' }))
    sessions(app, { name: 'guardApp', loadUser: (id) => ({ username: id }) })
    guardApp([bearer, sessionAuth()])(app)
    const { ask } = await served(app)
    expect((await ask('/')).headers.get('www-authenticate')).toContain('Bearer realm="pets"')
    expect((await ask('/', good)).status).toBe(404)
  })

  test('refuses an application that answers before it, unless the function is listed', () => {
    const cors = () => {}
    const app = () => new Koa().use(cors)
    expect(() => guardApp(bearer)(app())).toThrow(
      'guardApp(a)(app): responses of cors would not be guarded; call guardApp before app.use, or list the function in { middleware }',
    )
    expect(() => guardApp(bearer)(new Koa().use(new Router().routes()))).toThrow(/responses of a router/)
    expect(() => guardApp(bearer, { middleware: [cors] })(app())).not.toThrow()
  })

  test('refuses what is no authenticator, a router, and unknown options', () => {
    for (const auth of [null, undefined, withAuth(bearer), new Router()])
      expect(() => guardApp(auth as never)).toThrow(/^guardApp\(/)
    expect(() => guardApp(bearer)(new Router() as never)).toThrow('withAuth(a)(router)')
    expect(() => guardApp(bearer, { midleware: [] } as never)).toThrow(/midleware/)
  })
})

test('a preflight carries no credentials: CORS middleware before the guard answers it', async () => {
  const headers = { origin: 'https://app.example', 'access-control-request-method': 'PUT' }
  const preflight = { method: 'OPTIONS', headers }
  const bare = await served(guardApp(bearer)(new Koa()))
  expect((await bare.ask('/', preflight)).status).toBe(401)
  const allow = cors({ origin: 'https://app.example' })
  const app = new Koa()
  app.use(allow)
  const { ask } = await served(guardApp(bearer, { middleware: [allow] })(app))
  const answer = await ask('/', preflight)
  expect(answer.status).toBe(204)
  expect(answer.headers.get('access-control-allow-methods')).toMatch('PUT')
  expect((await ask('/', { method: 'PUT' })).status).toBe(401)
})
