// The shop as a Koa application: settings, sessions, routes. server.ts starts it.
import Koa, { type Middleware } from 'koa'
import { apiApp, authSettings, operation, optional, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { sessions, type Page } from 'koa-with-auth/sessions'
import { localPath } from 'koa-with-auth/sign-in'
import { accountRoutes, basketOf } from './account.js'
import { homePage } from './accountPages.js'
import { errorMapper, failures, keptIn, noticeIn, page, pages, refuse } from './answers.js'
import { deviceOf, deviceRoutes } from './devices.js'
import { factorRoutes } from './factors.js'
import { assetOf } from './pages.js'
import { passkeyRoutes } from './passkeys.js'
import { providerRoutes } from './providers.js'
import type { ProviderSettings, Settings } from './settings.js'
import { shopOf, type Parts, type Routes, type Shop } from './shop.js'
import { signInRoutes } from './signIn.js'
import { ceremonyPage, isAskedAgain, signInPage } from './signInPages.js'

export interface ShopOptions extends Parts {
  readonly provider: ProviderSettings
}

const pageRoutes = (api: Routes, { open, settings, sessionAuth }: Shop): void => {
  const undocumented = operation({ undocumented: true })
  api.get('/', undocumented, withAuth(optional(sessionAuth())), (ctx) => {
    page(ctx, homePage(ctx.request.auth, basketOf(ctx), noticeIn(ctx), settings.mailFolder))
  })
  api.get('/sign-in', undocumented, open, (ctx) => {
    const query = new URLSearchParams(ctx.querystring)
    const failed = query.get('failed') ?? ''
    // a form that `pages` has kept
    const again = keptIn(ctx, 'again') as Page | undefined
    if (isAskedAgain(failed) && again !== undefined) return page(ctx, ceremonyPage(again, failed))
    const returnTo = localPath(query.get('returnTo'))
    const [hasSecond, hasPlain] = [settings.second !== undefined, settings.plain !== undefined]
    const mails = settings.mailFolder
    page(ctx, signInPage({ failed, done: noticeIn(ctx), returnTo, hasSecond, hasPlain, mails }))
  })
  // browsers ask for it beside what is no page
  api.get('/favicon.ico', undocumented, open, (ctx) => {
    ctx.status = 204
  })
  for (const [name, type] of [
    ['shop.css', 'css'],
    ['passkeys.js', 'js'],
    ['live.js', 'js'],
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
  const get = '/ /sign-in /shop.css /passkeys.js /live.js /favicon.ico /basket /.well-known/webauthn /signed-out'
  const post = '/basket /reset /sign-out /sign-out/backchannel'
  const signIn = '/password /code /recovery /mail /mail/code /passkey/options /passkey'
  const devices = ['/device/sign-in', '/device/code']
  const links = '/sign-in/mail/link /reset/link /verify/link'
  const providers = ['provider', 'posted', ...(second ? ['b'] : []), ...(plain ? ['plain'] : [])]
  const callbacks = providers.map((name) => `/sign-in/${name}/callback`)
  const both = [...links.split(' '), ...callbacks]
  return [
    'docs',
    ...[...get.split(' '), ...providers.map((name) => `/sign-in/${name}`), ...both].map((path) => `GET ${path}`),
    ...[...post.split(' '), ...devices, ...signIn.split(' ').map((path) => `/sign-in${path}`), ...both].map(
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

// A client that leaves a stream is no error
const hasLeft = (error: Error): boolean => 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE'

/** Makes the application. */
export const shopApp = ({ provider, ...parts }: ShopOptions): Koa => {
  const { settings, accounts, signals, store } = parts
  const { origin } = settings
  const isHttps = origin.startsWith('https:')
  const app = new Koa({ keys: settings.keys, proxy: isHttps })
  app.on('error', (error: Error) => {
    if (!hasLeft(error)) app.onerror(error)
  })
  app.use(failures)
  app.use(authSettings({ errorMapper, trustedOrigins: [origin] }))
  app.use(fromHere(origin))
  const signing = sessions(app, {
    name: 'shop',
    loadUser: (username) => accounts.find(username),
    store,
    signals,
    origin,
    list: { label: deviceOf },
    // devices without cookies: the same sessions, by a token
    bearer: { prefix: 'shop' },
    pages,
    ...(isHttps && { https: true }),
  })
  const shop = shopOf(app, parts, signing)
  const description = `A shop that shows every way to sign in. Who can come in:

| Way | Credential |
| --- | --- |
| password | \`anna\` with \`anna-secret\`, \`bert\` with \`bert-secret\`, at \`POST /sign-in/password\`: a cookie |
| device | the same at \`POST /device/sign-in\`: a token, for **Authorize** |
| mail, provider, passkey | on [the page](${origin}/sign-in) |`
  const api = apiApp({ title: 'Shop', version: '1.0.0', docs: { description } })
  pageRoutes(api, shop)
  accountRoutes(api, shop)
  deviceRoutes(api, shop)
  signInRoutes(api, shop)
  factorRoutes(api, shop)
  passkeyRoutes(api, shop)
  providerRoutes(api, shop, provider)
  seal(api, { public: publicOperations(settings), objects: true })
  app.use(api.routes()).use(api.allowedMethods())
  return app
}
