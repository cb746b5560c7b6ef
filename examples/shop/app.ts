// The shop as a Koa application: settings, sessions, routes. server.ts starts it.
import { bodyParser } from '@koa/bodyparser'
import * as E from 'fp-ts/lib/Either.js'
import Koa from 'koa'
import { apiApp, AuthError, authSettings, operation, optional, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { sessions } from 'koa-with-auth/sessions'
import { localPath } from 'koa-with-auth/sign-in'
import type { PasskeyStore } from 'koa-with-auth/sign-in/passkeys'
import { accountRoutes, basketOf } from './account.js'
import { asksAgain, errorMapper, failures, fromHere, page, pages, refuseBody } from './answers.js'
import { factorRoutes } from './factors.js'
import { assetOf, homePage, signInPage } from './pages.js'
import { passkeyRoutes } from './passkeys.js'
import { providerRoutes } from './providers.js'
import type { ProviderSettings, Settings } from './settings.js'
import { shopOf, type Parts, type Routes, type Shop } from './shop.js'
import { signInRoutes } from './signIn.js'

export interface ShopOptions extends Parts {
  readonly passkeyStore: PasskeyStore
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
    if (asksAgain(ctx, failed)) return
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
  const provided = [
    'provider',
    'posted',
    ...(second === undefined ? [] : ['b']),
    ...(plain === undefined ? [] : ['plain']),
  ]
  return [
    'docs',
    ...[
      '/',
      '/sign-in',
      '/shop.css',
      '/passkeys.js',
      '/favicon.ico',
      '/basket',
      '/.well-known/webauthn',
      '/signed-out',
    ].map(getting),
    ...['/sign-in/mail/link', '/reset/link', '/verify/link'].flatMap((path) => [getting(path), posting(path)]),
    ...['/password', '/code', '/recovery', '/mail', '/mail/code', '/passkey/options', '/passkey'].map((path) =>
      posting(`/sign-in${path}`),
    ),
    ...['/basket', '/reset', '/sign-out', '/sign-out/backchannel'].map(posting),
    ...provided.flatMap((name) => [
      getting(`/sign-in/${name}`),
      getting(`/sign-in/${name}/callback`),
      posting(`/sign-in/${name}/callback`),
    ]),
  ]
}
const getting = (path: string): string => `GET ${path}`
const posting = (path: string): string => `POST ${path}`

/** Makes the application. */
export const shopApp = ({ passkeyStore, provider, ...parts }: ShopOptions): Koa => {
  const { settings, accounts, store } = parts
  const { origin } = settings
  const isHttps = origin.startsWith('https:')
  const app = new Koa({ keys: settings.keys, proxy: isHttps })
  app.use(failures)
  app.use(authSettings({ errorMapper, trustedOrigins: [origin] }))
  app.use(fromHere(origin))
  app.use(bodyParser({ jsonLimit: '64kb', formLimit: '64kb', onError: refuseBody }))
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
  passkeyRoutes(api, shop, passkeyStore)
  providerRoutes(api, shop, provider)
  seal(api, { public: publicOperations(settings) })
  app.use(api.routes()).use(api.allowedMethods())
  return app
}
