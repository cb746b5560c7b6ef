/**
 * A document that is served: the cookie name of the session comes from the request, and a route that was added later is
 * in it.
 */
import Router from '@koa/router'
import Koa from 'koa'
import session from 'koa-session'
import { operation, sessionAuth, withAuth, type SecurityScheme } from 'koa-with-auth'
import { cachedOpenApi, type ApiDocument } from 'koa-with-auth/openapi'
import { sessions } from 'koa-with-auth/sessions'
import { describe, expect, it } from 'vitest'
import { ask, listen } from '../support/servers/server.js'

const keys = ['a signing key for tests, 32 characters']
const hidden = operation({ undocumented: true })

const application = (options: Parameters<typeof session>[0]) => {
  const router = new Router()
  const described = cachedOpenApi(router, { title: 'Sessions', version: '1' })
  const calls = { me: 0 }
  router.get('/openapi.json', hidden, (ctx) => {
    ctx.type = 'application/json'
    ctx.body = described(ctx.request).json
  })
  router.post('/login', hidden, (ctx) => {
    ctx['session'] = { user: { username: 'anna' } }
    ctx.status = 204
  })
  router.get('/me', withAuth(sessionAuth()), (ctx) => {
    calls.me++
    ctx.body = ctx.request.auth.username
  })
  const app = new Koa({ keys })
  // koa-session sends Secure cookies only over HTTPS
  app.proxy = true
  app.use(session(options, app)).use(router.routes())
  return { app, router, calls }
}

const https = { 'X-Forwarded-Proto': 'https' }
const documentAt = async (url: string): Promise<ApiDocument> =>
  JSON.parse((await ask(`${url}/openapi.json`, { headers: https })).text) as ApiDocument

describe('a document that is served', () => {
  it.each([
    { description: 'the default name of koa-session', options: {}, name: 'koa.sess' },
    { description: 'another name', options: { key: 'sid' }, name: 'sid' },
    { description: 'a __Host- name', options: { key: '__Host-sid', secure: true }, name: '__Host-sid' },
  ])('names the cookie that the guard accepts: $description', async ({ options, name }) => {
    const { app, calls } = application(options)
    const { url } = await listen(app)
    const { paths, components } = await documentAt(url)
    expect(paths['/me']?.get?.security).toEqual([{ [`cookie_${name}`]: [] }])
    const scheme = components?.securitySchemes?.[`cookie_${name}`] as SecurityScheme
    expect(scheme).toMatchObject({ type: 'apiKey', in: 'cookie', name })

    const { headers } = await ask(`${url}/login`, { method: 'POST', headers: https })
    const cookies = headers.getSetCookie().map((line) => line.split(';')[0]!)
    expect(cookies.map((cookie) => cookie.split('=')[0])).toEqual([name, `${name}.sig`])
    const me = await ask(`${url}/me`, { headers: { ...https, Cookie: cookies.join('; ') } })
    expect([me.status, me.text, calls.me]).toEqual([200, 'anna', 1])
    const bare = await ask(`${url}/me`, { headers: https })
    expect([bare.status, bare.challenge, calls.me]).toEqual([401, 'Session realm="api"', 1])
  })

  it('is another one for each application that mounts the router, with the tokens of its sessions', async () => {
    const router = new Router()
    const described = cachedOpenApi(router, { title: 'Sessions', version: '1' })
    router.get('/openapi.json', hidden, (ctx) => (ctx.body = described(ctx.request).document))
    router.get('/me', withAuth(sessionAuth()), () => {})
    const schemes = async (bearer: boolean) => {
      const app = new Koa({ keys })
      sessions(app, { loadUser: () => undefined, bearer })
      const { url } = await listen(app.use(router.routes()))
      const { paths } = await documentAt(url)
      return paths['/me']?.get?.security?.map((one) => Object.keys(one).join()) ?? []
    }
    const [cookie] = await schemes(false)
    expect(await schemes(true)).toEqual([cookie, 'bearer_session'])
    expect(await schemes(false)).toEqual([cookie])
  })
})
