/** The callback of a provider: the redirect URI is the configured origin with the path that was written. */
import { request } from 'node:http'
import Router from '@koa/router'
import Koa from 'koa'
import compose from 'koa-compose'
import mount from 'koa-mount'
import { withAuth } from 'koa-with-auth'
import { sessions } from 'koa-with-auth/sessions'
import { begin, finish } from 'koa-with-auth/sign-in'
import { oidc, type OidcKind, type OidcOptions } from 'koa-with-auth/sign-in/oidc'
import { describe, expect, it } from 'vitest'
import { reserved } from '../support/servers/server.js'
import { newBrowser, SECRET_CLIENT } from '../support/sites/providerSite.js'
import { strongKey } from '../support/sites/sessionsApp.js'
import { plainKind } from '../support/sites/wrongProviderSite.js'
import { processWarnings } from '../support/servers/identityProvider.js'
import { navigation } from '../support/servers/userAgent.js'
import { wrongProvider } from '../support/servers/wrongProvider.js'

const kindAt = (issuer: string, callback: string, over: Partial<OidcOptions> = {}): OidcKind =>
  oidc({ issuer, client: SECRET_CLIENT, callback, ...over })

const userOf = () => ({ username: 'anna', isActive: true })

const beginning = (kind: OidcKind, path = '/sign-in') => new Router().get(path, withAuth(null), begin(kind))

const finishing = (kind: OidcKind, path: string) => new Router().get(path, withAuth(null), finish(kind, userOf))

/** Serves an application whose users sign in, on a port that is free; `errors` are those of its `error` event. */
const served = async (routes: (issuer: string) => ReadonlyArray<Koa.Middleware>) => {
  const provider = await wrongProvider()
  const { port, serve } = await reserved()
  const origin = `http://localhost:${port}`
  const app = new Koa({ keys: [strongKey] })
  const errors: unknown[] = []
  app.on('error', (error: unknown) => errors.push(error))
  sessions(app, { loadUser: (username) => ({ username, isActive: true }), origin })
  for (const one of routes(provider.issuer)) app.use(one)
  const respond = app.callback()
  serve((req, res) => void respond(req, res))
  return { provider, origin, app, errors }
}

const redirectUri = (location: string | undefined) => new URL(location ?? '').searchParams.get('redirect_uri')

describe('O-06 the callback of a provider', () => {
  it('is the path that was written, with the prefixes of its routers', async () => {
    const { origin, provider, errors } = await served((issuer) => {
      const kind = kindAt(issuer, '/accounts/google/callback')
      const outer = new Router({ prefix: '/accounts' })
      const inner = finishing(kind, '/callback')
      inner.prefix('/google')
      outer.use(inner.routes())
      return [beginning(kind).routes(), outer.routes()] as unknown as Koa.Middleware[]
    })
    const browser = newBrowser()
    const begun = await browser.send(`${origin}/sign-in`)
    expect(redirectUri(begun.location)).toBe(`${origin}/accounts/google/callback`)
    const page = await browser.open(begun.location ?? '', (url) => url.startsWith(`${origin}/accounts`))
    const done = await browser.send(page.stopped, { headers: navigation })
    expect([done.status, done.location, provider.asked('/token')]).toEqual([303, `${origin}/`, 1])
    expect(errors).toEqual([])
  })

  it('is good as long as the kind says, and so is the cookie of the browser', async () => {
    const day = 86_400_000
    const { origin } = await served((issuer) => {
      const router = beginning(kindAt(issuer, '/callback', { lifetime: 3 * day }))
      return [router.routes()] as unknown as Koa.Middleware[]
    })
    const [cookie = ''] = (await newBrowser().send(`${origin}/sign-in`)).setCookie
    expect(Date.parse(/expires=([^;]+)/.exec(cookie)?.[1] ?? '') - Date.now()).toBeGreaterThan(3 * day)
  })

  it('is written for plain OAuth 2.0, too, and serves routers that nothing can see', async () => {
    const { origin, errors } = await served((issuer) => {
      const plain = plainKind(issuer, '/callback')
      const router = new Router()
      router.get('/sign-in', withAuth(null), begin(plain))
      router.all('/callback', withAuth(null), finish(plain, userOf))
      return [compose([router.routes() as unknown as Koa.Middleware])]
    })
    const browser = newBrowser()
    const begun = await browser.send(`${origin}/sign-in`)
    expect(redirectUri(begun.location)).toBe(`${origin}/callback`)
    const { stopped } = await browser.open(begun.location ?? '', (url) => url.startsWith(origin))
    expect((await browser.send(stopped, { headers: navigation })).status).toBe(303)
    expect(errors).toEqual([])
  })
})

describe('a button that begins at a provider', () => {
  it.each([
    { policy: "default-src 'self'; form-action 'self'", method: 'POST', isWarned: true },
    { policy: "form-action 'self'", method: 'GET', isWarned: false },
    { policy: 'form-action https:', method: 'POST', isWarned: true },
    { policy: 'form-action http:', method: 'POST', isWarned: false },
    { policy: "form-action 'self' ISSUER", method: 'POST', isWarned: false },
    { policy: "default-src 'self'", method: 'POST', isWarned: false },
  ])('$method with the policy $policy: a warning: $isWarned', async ({ policy, method, isWarned }) => {
    const warnings = processWarnings()
    let own = ''
    const { origin } = await served((issuer) => {
      own = policy.replace('ISSUER', issuer)
      const router = new Router().all('/sign-in', withAuth(null), begin(kindAt(issuer, '/callback')))
      const above: Koa.Middleware = (ctx, next) => (ctx.set('Content-Security-Policy', own), next())
      // Safe: the routes of a router are middleware
      return [above, router.routes() as Koa.Middleware]
    })
    expect((await newBrowser().send(`${origin}/sign-in`, { method })).status).toBe(303)
    await new Promise(setImmediate)
    const found = warnings().filter((one) => one.includes('stops a form that leads to http://'))
    expect(found).toHaveLength(isWarned ? 1 : 0)
  })
})

describe('O-13 a posted answer', () => {
  const posting = (url: string, fields: Readonly<Record<string, string>>) =>
    newBrowser().send(url, { method: 'POST', body: new URLSearchParams(fields) })

  it('is led to its own path, also in an application that is mounted', async () => {
    const { origin, provider } = await served((issuer) => {
      const kind = kindAt(issuer, '/mounted/callback', { responseMode: 'form_post' })
      const router = beginning(kind)
      router.all('/callback', withAuth(null), finish(kind, userOf))
      return [mount('/mounted', new Koa().use(router.routes()))] as unknown as Koa.Middleware[]
    })
    const browser = newBrowser()
    const begun = await browser.send(`${origin}/mounted/sign-in`)
    const { stopped } = await browser.open(begun.location ?? '', (url) => url.startsWith(`${origin}/mounted`))
    const posted = await posting(`${origin}/mounted/callback`, Object.fromEntries(new URL(stopped).searchParams))
    expect([posted.status, posted.location]).toEqual([303, stopped])
    const page = await browser.send(posted.location ?? '', { headers: navigation })
    expect([page.status, page.location, provider.asked('/token')]).toEqual([303, `${origin}/`, 1])
  })

  it.each(['//evil.example/x', '/.//evil.example/x', '//[/x', 'http://evil.example//evil.example'])(
    'to %s is not led to another site',
    async (path) => {
      const { origin } = await served((issuer) => {
        const kind = kindAt(issuer, '/callback', { responseMode: 'form_post' })
        return [finish(kind, userOf)]
      })
      const location = await new Promise<string>((resolve, reject) => {
        const { port } = new URL(origin)
        const sent = request({ port, path, method: 'POST', headers: { 'Content-Length': 0 } }, (response) => {
          response.resume()
          resolve(response.headers.location ?? '')
        })
        sent.on('error', reject).end()
      })
      expect(new URL(location, origin).origin).toBe(origin)
    },
  )

  it('that makes a query of more than 8 kB is a 400', async () => {
    const { origin } = await served((issuer) => {
      const kind = kindAt(issuer, '/callback', { responseMode: 'form_post' })
      const router = beginning(kind)
      router.all('/callback', withAuth(null), finish(kind, userOf))
      return [router.routes()] as unknown as Koa.Middleware[]
    })
    const status = async (length: number) => (await posting(`${origin}/callback`, { state: 'a'.repeat(length) })).status
    expect([await status(8186), await status(8187), await status(60_000)]).toEqual([303, 400, 400])
  })
})
