// The shop as a Koa application: settings, sessions, routes. server.ts starts it.
import * as E from 'fp-ts/lib/Either.js'
import Koa, { type Middleware } from 'koa'
import { apiApp, AuthError, authSettings, operation, optional, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { sessions, type Page } from 'koa-with-auth/sessions'
import { localPath } from 'koa-with-auth/sign-in'
import { accountRoutes, basketOf } from './account.js'
import { errorMapper, failures, keptIn, page, pages, refuse } from './answers.js'
import { factorRoutes } from './factors.js'
import { assetOf, ceremonyPage, homePage, signInPage } from './pages.js'
import { passkeyRoutes } from './passkeys.js'
import { providerRoutes } from './providers.js'
import type { ProviderSettings, Settings } from './settings.js'
import { shopOf, type Parts, type Routes, type Shop } from './shop.js'
import { signInRoutes } from './signIn.js'

export interface ShopOptions extends Parts {
  readonly provider: ProviderSettings
}

const pageRoutes = (api: Routes, { open, settings, sessionAuth }: Shop): void => {
  const undocumented = operation({ undocumented: true })
  api.get('/', undocumented, withAuth(optional(sessionAuth())), (ctx) => {
    page(ctx, homePage(ctx.request.auth, basketOf(ctx), new URLSearchParams(ctx.querystring).get('done') ?? ''))
  })
  api.get('/sign-in', undocumented, open, (ctx) => {
    const query = new URLSearchParams(ctx.querystring)
    const [failed, done] = ['failed', 'done'].map((name) => query.get(name) ?? '') as [string, string]
    // a form that `pages` has kept
    const again = keptIn(ctx, 'again') as Page | undefined
    if (failed === 'wrong' && again !== undefined) return page(ctx, ceremonyPage(again, failed))
    const returnTo = localPath(query.get('returnTo'))
    const [hasSecond, hasPlain] = [settings.second !== undefined, settings.plain !== undefined]
    page(ctx, signInPage({ failed, done, returnTo, hasSecond, hasPlain }))
  })
  // browsers ask for it beside what is no page
  api.get('/favicon.ico', undocumented, open, (ctx) => {
    ctx.status = 204
  })
  for (const [name, type] of [
    ['shop.css', 'css'],
    ['passkeys.js', 'js'],
  ] as const) {
    const content = assetOf(name)
    api.get(`/${name}`, undocumented, open, (ctx) => {
      ctx.type = type
      ctx.set('X-Content-Type-Options', 'nosniff')
      ctx.body = content
    })
  }
}

// What anonymous callers reach. Nothing else is open by mistake
const publicOperations = ({ second, plain }: Settings): string[] => {
  const get = '/ /sign-in /shop.css /passkeys.js /favicon.ico /basket /.well-known/webauthn /signed-out'
  const post = '/basket /reset /sign-out /sign-out/backchannel'
  const signIn = '/password /code /recovery /mail /mail/code /passkey/options /passkey'
  const links = '/sign-in/mail/link /reset/link /verify/link'
  const providers = ['provider', 'posted', ...(second ? ['b'] : []), ...(plain ? ['plain'] : [])]
  const callbacks = providers.map((name) => `/sign-in/${name}/callback`)
  const both = [...links.split(' '), ...callbacks]
  return [
    'docs',
    ...[...get.split(' '), ...providers.map((name) => `/sign-in/${name}`), ...both].map((path) => `GET ${path}`),
    ...[...post.split(' '), ...signIn.split(' ').map((path) => `/sign-in${path}`), ...both].map(
      (path) => `POST ${path}`,
    ),
  ]
}

// Pages of other sites may fill a basket, and providers post their answers
const open = /^\/(?:basket|sign-out\/backchannel|sign-in\/[a-z]+\/callback)$/

/** Refuses what another site made a browser send, also where anyone may call. Only the public origin is this site. */
const fromHere = (origin: string): Middleware =>
  async function sentFromHere(ctx, next) {
    const [site, from] = [ctx.get('Sec-Fetch-Site'), ctx.get('Origin')]
    const isOwn = site === '' ? ['', origin].includes(from) : ['same-origin', 'none'].includes(site)
    if (isOwn || ['GET', 'HEAD', 'OPTIONS'].includes(ctx.method) || open.test(ctx.path)) return next()
    refuse(ctx, 403, 'forged')
  }

/** Makes the application. */
export const shopApp = ({ provider, ...parts }: ShopOptions): Koa => {
  const { settings, accounts, store } = parts
  const { origin } = settings
  const isHttps = origin.startsWith('https:')
  const app = new Koa({ keys: settings.keys, proxy: isHttps })
  app.use(failures)
  app.use(authSettings({ errorMapper, trustedOrigins: [origin] }))
  app.use(fromHere(origin))
  const signing = sessions(app, {
    name: 'shop',
    loadUser: async (username) => {
      try {
        return await accounts.find(username)
      } catch {
        // the file cannot be asked: an outage, which refuses no user
        return E.left(AuthError.unavailable())
      }
    },
    store,
    origin,
    list: true,
    pages,
    ...(isHttps && { https: true }),
  })
  const shop = shopOf(app, parts, signing)
  const description = 'A shop that shows every way to sign in.'
  const api = apiApp({ title: 'Shop', version: '1.0.0', docs: { description } })
  pageRoutes(api, shop)
  accountRoutes(api, shop)
  signInRoutes(api, shop)
  factorRoutes(api, shop)
  passkeyRoutes(api, shop)
  providerRoutes(api, shop, provider)
  seal(api, { public: publicOperations(settings), objects: true })
  app.use(api.routes()).use(api.allowedMethods())
  return app
}
