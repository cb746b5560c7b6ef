/**
 * The same small site six times: `begin` starts a sign-in, `/` answers who is signed in. Each is written as the README of
 * its library does, with PKCE, a state and a nonce where the library has them.
 *
 * A site has `callback` (the path), and `begin(browser, returnTo)`, which resolves with the URL of the provider, or rejects with
 * the response if there is none.
 */
import { koaApp } from './frameworks.mjs'
import { CLIENT } from './provider.mjs'

const SECRET = 'a signing key of the application that is long enough'
const NOBODY = 'nobody'

export class NoRedirect extends Error {
  constructor(page) {
    super(`${page.status}`)
    this.page = page
  }
}

const redirectOf = (page) => {
  if (page.location === undefined) throw new NoRedirect(page)
  return page.location
}

const beginByGet =
  (origin) =>
  async (browser, returnTo = '/', headers = {}) =>
    redirectOf(await browser.send(`${origin}/sign-in?${new URLSearchParams({ returnTo })}`, { headers }))

const json = (page) => {
  try {
    return JSON.parse(page.body)
  } catch {
    throw new NoRedirect(page)
  }
}

const ours = async ({ origin, issuer }) => {
  const { app, router } = await koaApp({ keys: [SECRET] })
  const { optional, sessionAuth, withAuth } = await import('../../../dist/index.js')
  const { sessions } = await import('../../../dist/sessions.js')
  const { memoryStore } = await import('../../../dist/stores.js')
  const { begin, finish } = await import('../../../dist/sign-in.js')
  const { oidc } = await import('../../../dist/sign-in/oidc.js')
  sessions(app, { loadUser: (username) => ({ username, isActive: true }), store: memoryStore(), origin, name: 'peers' })
  // an outage is tried again after a millisecond, so that the next row is not one
  const given = { issuer, client: CLIENT, callback: '/callback', scope: ['openid', 'email'] }
  const provider = oidc({ ...given, keys: { retry: 1 } })
  router.get('/sign-in', withAuth(null), begin(provider))
  const signedIn = finish(provider, (_ctx, { proof }) => ({ username: proof.subject, isActive: true }))
  router.get('/callback', withAuth(null), signedIn)
  router.get('/', withAuth(optional(sessionAuth())), (ctx) => {
    ctx.body = ctx.request.auth === undefined ? NOBODY : `user ${ctx.request.auth.username}`
  })
  app.use(router.routes())
  return { handler: app.callback(), begin: beginByGet(origin) }
}

const openidClient = async ({ origin, issuer }) => {
  const { app } = await koaApp({ keys: [SECRET] })
  const { default: session } = await import('koa-session')
  const client = await import('openid-client')
  app.use(session({ sameSite: 'lax' }, app))
  const config = await client.discovery(new URL(issuer), CLIENT.id, CLIENT.secret, undefined, {
    execute: [client.allowInsecureRequests],
  })
  app.use(async (ctx) => {
    if (ctx.path === '/sign-in') {
      const verifier = client.randomPKCECodeVerifier()
      const [state, nonce] = [client.randomState(), client.randomNonce()]
      ctx.session.pending = { verifier, state, nonce, returnTo: ctx.query.returnTo }
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: `${origin}/callback`,
        scope: 'openid email',
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
        state,
        nonce,
      })
      ctx.redirect(url.href)
    } else if (ctx.path === '/callback') {
      const { verifier, state, nonce } = ctx.session.pending
      const tokens = await client.authorizationCodeGrant(config, new URL(origin + ctx.url), {
        pkceCodeVerifier: verifier,
        expectedState: state,
        expectedNonce: nonce,
      })
      ctx.session.user = tokens.claims().sub
      ctx.redirect('/')
    } else ctx.body = ctx.session.user === undefined ? NOBODY : `user ${ctx.session.user}`
  })
  return { handler: app.callback(), begin: beginByGet(origin), returns: false }
}

const expressOpenidConnect = async ({ origin, issuer }) => {
  const { default: express } = await import('express')
  const { default: connect } = await import('express-openid-connect')
  const app = express()
  app.use(
    connect.auth({
      issuerBaseURL: issuer,
      baseURL: origin,
      clientID: CLIENT.id,
      clientSecret: CLIENT.secret,
      secret: SECRET,
      authRequired: false,
      routes: { login: false },
      authorizationParams: { response_type: 'code', scope: 'openid email' },
    }),
  )
  app.get('/sign-in', (req, res) => res.oidc.login({ returnTo: String(req.query.returnTo ?? '/') }))
  app.get('/', (req, res) => res.send(req.oidc.user === undefined ? NOBODY : `user ${req.oidc.user.sub}`))
  app.use((error, _req, res, _next) => res.status(error.status ?? 500).send(error.message))
  return { handler: app, begin: beginByGet(origin) }
}

const koaPassport = async ({ origin, issuer }) => {
  const { app } = await koaApp({ keys: [SECRET] })
  const { default: session } = await import('koa-session')
  const { KoaPassport } = await import('koa-passport')
  const { default: OpenIDConnectStrategy } = await import('passport-openidconnect')
  app.use(session({ sameSite: 'lax' }, app))
  const passport = new KoaPassport()
  passport.serializeUser((user, done) => done(null, user))
  passport.deserializeUser((user, done) => done(null, user))
  passport.use(
    'provider',
    new OpenIDConnectStrategy(
      {
        issuer,
        authorizationURL: `${issuer}/auth`,
        tokenURL: `${issuer}/token`,
        userInfoURL: `${issuer}/me`,
        clientID: CLIENT.id,
        clientSecret: CLIENT.secret,
        callbackURL: `${origin}/callback`,
        scope: 'email',
        nonce: true,
      },
      (_issuer, profile, done) => done(null, { id: profile.id }),
    ),
  )
  app.use(passport.initialize())
  app.use(passport.session())
  const leave = passport.authenticate('provider')
  const arrive = passport.authenticate('provider', { successRedirect: '/', failureRedirect: '/failed' })
  app.use((ctx, next) => {
    if (ctx.path === '/sign-in') return leave(ctx, next)
    if (ctx.path === '/callback') return arrive(ctx, next)
    ctx.body = ctx.state.user === undefined ? NOBODY : `user ${ctx.state.user.id}`
    return undefined
  })
  return { handler: app.callback(), begin: beginByGet(origin), returns: false }
}

const betterAuth = async ({ origin, issuer }) => {
  const { betterAuth: make } = await import('better-auth')
  const { genericOAuth } = await import('better-auth/plugins')
  const { toNodeHandler } = await import('better-auth/node')
  const { memoryAdapter } = await import('better-auth/adapters/memory')
  const auth = make({
    baseURL: origin,
    secret: SECRET,
    logger: { disabled: true },
    telemetry: { enabled: false },
    rateLimit: { enabled: false },
    database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
    plugins: [
      genericOAuth({
        config: [
          {
            providerId: 'provider',
            clientId: CLIENT.id,
            clientSecret: CLIENT.secret,
            discoveryUrl: `${issuer}/.well-known/openid-configuration`,
            scopes: ['openid', 'email'],
            pkce: true,
            mapProfileToUser: (profile) => ({ ...profile, name: profile.sub }),
          },
        ],
      }),
    ],
  })
  const handle = toNodeHandler(auth)
  const handler = async (req, res) => {
    if (req.url.startsWith('/api/auth/')) return handle(req, res)
    const found = await auth.api.getSession({ headers: new Headers({ cookie: req.headers.cookie ?? '' }) })
    return res.end(found === null ? NOBODY : `user ${found.user.name}`)
  }
  const ask = (browser, path, body, headers) =>
    browser.send(`${origin}/api/auth/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Origin: origin, ...headers },
      body: JSON.stringify(body),
    })
  const begin = async (browser, callbackURL = '/', headers = {}) => {
    let page = await ask(browser, 'sign-in/oauth2', { providerId: 'provider', callbackURL }, headers)
    if (page.status === 404) page = await ask(browser, 'sign-in/social', { provider: 'provider', callbackURL }, headers)
    const { url } = json(page)
    if (url === undefined) throw new NoRedirect(page)
    return url
  }
  return { handler, begin, begins: 'POST' }
}

const authJs = async ({ origin, issuer }) => {
  const { default: express } = await import('express')
  const { ExpressAuth, getSession } = await import('@auth/express')
  const silent = () => {}
  const config = {
    secret: SECRET,
    trustHost: true,
    logger: { error: silent, warn: silent, debug: silent },
    providers: [
      {
        id: 'provider',
        name: 'provider',
        type: 'oidc',
        issuer,
        clientId: CLIENT.id,
        clientSecret: CLIENT.secret,
        authorization: { params: { scope: 'openid email' } },
        checks: ['pkce', 'state', 'nonce'],
      },
    ],
    callbacks: {
      jwt: ({ token, profile }) => (profile ? { ...token, subject: profile.sub } : token),
      session: ({ session, token }) => ({ ...session, subject: token.subject }),
    },
  }
  const app = express()
  app.use(/^\/auth\/(.*)$/, ExpressAuth(config))
  app.get('/', async (req, res) => {
    const found = await getSession(req, config)
    res.send(found === null ? NOBODY : `user ${found.subject}`)
  })
  const begin = async (browser, callbackUrl = '/', headers = {}) => {
    const { csrfToken } = json(await browser.send(`${origin}/auth/csrf`))
    const body = new URLSearchParams({ csrfToken, callbackUrl })
    return redirectOf(await browser.send(`${origin}/auth/signin/provider`, { method: 'POST', body, headers }))
  }
  return { handler: app, begin, begins: 'POST' }
}

/** The sites: their libraries, and how one is made for an origin and an issuer. */
export const sites = [
  { name: 'koa-with-auth', packages: [], make: ours },
  { name: 'openid-client on koa-session', packages: ['openid-client', 'koa-session'], make: openidClient },
  { name: 'express-openid-connect', packages: ['express-openid-connect'], make: expressOpenidConnect },
  { name: 'koa-passport', packages: ['koa-passport', 'passport-openidconnect'], make: koaPassport },
  { name: 'better-auth', packages: ['better-auth'], callback: '/api/auth/oauth2/callback/provider', make: betterAuth },
  { name: 'Auth.js', packages: ['@auth/express'], callback: '/auth/callback/provider', make: authJs },
].map((site) => ({ callback: '/callback', ...site }))

/** Whose page it is: the subject, or `undefined`. */
export const whoIn = (body) => {
  const text = body.trim()
  return text === NOBODY ? undefined : text.replace(/^user /, '')
}
