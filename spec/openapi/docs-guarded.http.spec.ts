/**
 * The docs page and openapi.json are public by default; `docs: { auth }` protects them, and `docs: false` removes them.
 */
import Router from '@koa/router'
import { apiApp, httpBasicAuth, httpBearer, withAuth } from 'koa-with-auth'
import { describe, expect, it } from 'vitest'
import { docs } from '../../src/openapi/docs.js'
import { docsPaths, sites } from '../support/sites/docsSites.js'
import { ask } from '../support/servers/server.js'

const serve = sites()
const about = { title: 'Pets', version: '1.0.0' }

const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
let asked = 0
const basic = httpBasicAuth({
  authenticate: (_request, user, password) => {
    asked++
    return user === 'dev' && password === 's3cret'
  },
})
const developer = { headers: { Authorization: `Basic ${btoa('dev:s3cret')}` } }
const stranger = { headers: { Authorization: `Basic ${btoa('dev:wrong')}` } }
const challenge = 'Basic realm="api", charset="UTF-8"'

const isRefused = async (url: string, init?: RequestInit) => {
  const { status, challenge: reported, text, headers } = await ask(url, init)
  expect({ url, status, challenge: reported, caching: headers.get('cache-control') }).toEqual({
    url,
    status: 401,
    challenge,
    caching: 'no-store',
  })
  expect(JSON.parse(text)).toEqual({ type: 'about:blank', title: 'Unauthorized', status: 401, detail: 'Unauthorized' })
  expect([headers.get('etag'), headers.get('content-security-policy')]).toEqual([null, null])
}

describe('apiApp', () => {
  it.each(docsPaths)(
    'docs: { auth: basic } answers 401 with a challenge for %s, and serves it with the right credentials',
    async (path) => {
      const api = apiApp({ prefix: '/api', auth: bearer, docs: { auth: basic } })
      const { url } = await serve(api.routes(), api.allowedMethods())
      for (const spelling of [`/api${path}`, `/API${path.toUpperCase()}`, `/api${path}/`, `/api${path}?url=x`]) {
        await isRefused(url + spelling)
        await isRefused(url + spelling, stranger)
      }
      const { status, headers } = await ask(`${url}/api${path}`, developer)
      expect([status, headers.get('vary')]).toEqual([200, 'Authorization'])
      const isStored = !['/docs', '/openapi.json'].includes(path)
      expect(headers.get('cache-control')).toBe(`private, no-${isStored ? 'cache' : 'store'}`)
      // A credential of the application is not one of its docs page
      await isRefused(`${url}/api${path}`, { headers: { Authorization: 'Bearer supersecret' } })
    },
  )

  it.each(docsPaths)('%s is public by default, whatever the application requires', async (path) => {
    const api = apiApp({ auth: basic })
    for (const routes of [api.routes(), withAuth(basic)(api).routes()]) {
      const { url } = await serve(routes)
      const before = asked
      for (const init of [{}, stranger, developer]) {
        const { status, challenge: reported } = await ask(url + path, init)
        expect([status, reported]).toEqual([200, null])
      }
      expect(asked).toBe(before)
    }
  })

  it.each(docsPaths)('docs: false removes %s', async (path) => {
    const api = apiApp({ auth: bearer, docs: false })
    api.get('/me', () => {})
    const { url } = await serve(api.routes(), api.allowedMethods())
    expect((await ask(url + path)).status).toBe(404)
  })
})

describe('docs(router)', () => {
  const router = new Router()
  router.get('/me', withAuth(bearer), () => {})

  it.each(docsPaths)('%s is public on the application, and guarded with the option auth', async (path) => {
    const open = await serve(docs(router, about))
    expect((await ask(open.url + path)).status).toBe(200)
    const guarded = await serve(docs(router, { ...about, auth: basic }))
    await isRefused(guarded.url + path)
    expect((await ask(guarded.url + path, developer)).status).toBe(200)
  })

  it.each(docsPaths)('%s is an operation like others: the router that it is mounted on guards it', async (path) => {
    const outer = withAuth(basic)(new Router())
    outer.use('/inherits', docs(router, about))
    outer.use('/public', docs(router, { ...about, auth: null }))
    const { url } = await serve(outer.routes())
    await isRefused(`${url}/inherits${path}`)
    expect((await ask(`${url}/inherits${path}`, developer)).status).toBe(200)
    expect((await ask(`${url}/public${path}`)).status).toBe(200)
  })
})
