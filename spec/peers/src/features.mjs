/**
 * The same five routes with seven libraries, each as its documentation writes it, for the guide "Guards, compared":
 * `GET /me` takes one credential, `GET /either` one of two kinds, `GET /admin` a role that the user lacks, `GET /down` looks a
 * user up in a database that is down, and `POST /write` takes what a browser sends by itself. `right` is a right credential
 * for each. A route that the library has no function for is left out.
 */
import { corpus } from '../../data/runner.mjs'
import { expressApp, fastifyGuards, koaApp, listen, portOf } from './frameworks.mjs'

const SECRET = 'supersecret'
const anna = { name: 'anna', role: 'reader' }
const bearer = { Authorization: `Bearer ${SECRET}` }
const basic = { Authorization: `Basic ${Buffer.from(`anna:${SECRET}`).toString('base64')}` }
const [, token] = corpus.contract.routes.jwt.right.rawHeaders[0]
const byToken = { Authorization: token }
const { issuer, audience, publicKey } = corpus.app.jwt
const down = () => {
  throw new Error('the database is down')
}
const right = { me: bearer, either: basic, admin: bearer, down: bearer, write: basic }

const ours = async () => {
  const { authorize, constantTimeEqual, httpBasicAuth, httpBearer, UnavailableError, withAuth } =
    await import('../../../dist/index.js')
  const user = httpBearer({ authenticate: (_request, given) => constantTimeEqual(given, SECRET) && anna })
  const named = httpBasicAuth({
    authenticate: (_request, name, password) => name === 'anna' && constantTimeEqual(password, SECRET) && anna,
  })
  const lost = httpBearer({
    authenticate: () => {
      throw new UnavailableError('the database is down')
    },
  })
  const handler = (ctx) => void (ctx.body = ctx.request.auth.name)
  const { app, router: bare } = await koaApp()
  const router = withAuth(user)(bare)
  router.get('/me', handler).get('/either', withAuth([user, named]), handler)
  const isAdmin = authorize((one) => one.role === 'admin')
  router.get('/admin', withAuth(user, isAdmin), handler)
  router.get('/down', withAuth(lost), handler).post('/write', withAuth(named), handler)
  app.use(router.routes())
  const { audit } = await import('../../../dist/audit.js')
  const { openApi } = await import('../../../dist/openapi.js')
  const document = openApi(router, { title: 'Site', version: '1.0.0' })
  return {
    server: listen(app.callback()),
    right,
    lists: `${audit(app).operations.length} routes`,
    documents: `${Object.keys(document.components.securitySchemes).length} schemes`,
  }
}

const strategies = async () => {
  const { BasicStrategy } = (await import('passport-http')).default
  const { Strategy: BearerStrategy } = (await import('passport-http-bearer')).default
  return {
    bearer: new BearerStrategy((given, done) => done(null, given === SECRET && anna)),
    basic: new BasicStrategy((name, password, done) => done(null, name === 'anna' && password === SECRET && anna)),
    lost: new BearerStrategy((_given, done) => done(new Error('the database is down'))),
  }
}

const koaPassport = async () => {
  const { app, router } = await koaApp()
  const { KoaPassport } = await import('koa-passport')
  const passport = new KoaPassport()
  for (const [name, strategy] of Object.entries(await strategies())) passport.use(name, strategy)
  const guard = (name) => passport.authenticate(name, { session: false })
  const handler = (ctx) => void (ctx.body = ctx.state.user.name)
  router.get('/me', guard('bearer'), handler).get('/either', guard(['bearer', 'basic']), handler)
  router.get('/down', guard('lost'), handler).post('/write', guard('basic'), handler)
  return { server: listen(app.use(passport.initialize()).use(router.routes()).callback()), right }
}

const koaJwt = async () => {
  const { app, router } = await koaApp()
  const { default: jwt } = await import('koa-jwt')
  const given = { algorithms: ['RS256'], issuer, audience }
  const handler = (ctx) => void (ctx.body = ctx.state.user.sub)
  router.get('/me', jwt({ secret: publicKey, ...given }), handler)
  router.get('/down', jwt({ secret: async () => down(), ...given }), handler)
  return { server: listen(app.use(router.routes()).callback()), right: { me: byToken, down: byToken } }
}

const betterAuth = async () => {
  const { betterAuth: make } = await import('better-auth')
  const { memoryAdapter } = await import('better-auth/adapters/memory')
  const { fromNodeHeaders, toNodeHandler } = await import('better-auth/node')
  const server = listen((req, res) => app(req, res))
  const origin = `http://localhost:${await portOf(server)}`
  const tables = { user: [], session: [], account: [], verification: [] }
  let isDown = false
  const database = memoryAdapter(tables)
  const auth = make({
    baseURL: origin,
    secret: 'a signing key of the application that is long enough',
    logger: { disabled: true },
    telemetry: { enabled: false },
    emailAndPassword: { enabled: true },
    database: (options) => {
      const adapter = database(options)
      return { ...adapter, findOne: (query) => (isDown ? down() : adapter.findOne(query)) }
    },
  })
  const app = await expressApp()
  app.all('/api/auth/*splat', toNodeHandler(auth))
  const show = async (req, res) => {
    const session = await auth.api.getSession({ headers: fromNodeHeaders(req.headers) })
    if (session === null) res.status(401).json({ error: 'Unauthorized' })
    else res.send(session.user.name)
  }
  app.get('/me', show).post('/write', show)
  app.get('/down', async (req, res) => {
    isDown = true
    try {
      await show(req, res)
    } finally {
      isDown = false
    }
  })
  const { headers } = await fetch(`${origin}/api/auth/sign-up/email`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Origin: origin },
    body: JSON.stringify({ email: 'anna@site.example', password: 'a long password', name: 'anna' }),
  })
  const cookie = { Cookie: headers.getSetCookie()[0].split(';')[0] }
  return { server, right: { me: cookie, down: cookie, write: cookie } }
}

const passport = async () => {
  const { Passport } = (await import('passport')).default
  const own = new Passport()
  for (const [name, strategy] of Object.entries(await strategies())) own.use(name, strategy)
  const app = await expressApp()
  const guard = (name) => own.authenticate(name, { session: false })
  const handler = (req, res) => res.send(req.user.name)
  app.get('/me', guard('bearer'), handler).get('/either', guard(['bearer', 'basic']), handler)
  app.get('/down', guard('lost'), handler).post('/write', guard('basic'), handler)
  return { server: listen(app), right }
}

const fastifyAuth = async () => {
  const app = await fastifyGuards(SECRET, async (name, password, request) => {
    if (name !== 'anna' || password !== SECRET) throw new Error('Winter is coming')
    request.user = anna
  })
  app.decorate('isAdmin', async (request) => {
    if (request.user?.role !== 'admin') throw new Error('not an admin')
  })
  app.decorate('lost', async () => down())
  const handler = async () => 'anna'
  app.get('/me', { preHandler: app.auth([app.verifyBearerAuth]) }, handler)
  app.get('/either', { preHandler: app.auth([app.verifyBearerAuth, app.basicAuth]) }, handler)
  app.get('/admin', { preHandler: app.auth([app.verifyBearerAuth, app.isAdmin], { relation: 'and' }) }, handler)
  app.get('/down', { preHandler: app.auth([app.lost]) }, handler)
  app.post('/write', { preHandler: app.auth([app.basicAuth]) }, handler)
  // a form needs a parser of its own
  app.addContentTypeParser('application/x-www-form-urlencoded', (_request, payload, done) => {
    payload.resume()
    done(null, {})
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const guarded = app
    .printRoutes({ includeHooks: true, commonPrefix: false })
    .match(/\((?!HEAD)[A-Z]+\)\s[^(]*\(preHandler\)/g)
  return { server: app.server, right, lists: `${guarded.length} routes, by the names of hooks` }
}

const hono = async () => {
  const { Hono } = await import('hono')
  const { basicAuth } = await import('hono/basic-auth')
  const { bearerAuth } = await import('hono/bearer-auth')
  const { some } = await import('hono/combine')
  const { csrf } = await import('hono/csrf')
  const { inspectRoutes } = await import('hono/dev')
  const { serve } = await import('@hono/node-server')
  const app = new Hono()
  const isAnna = basicAuth({ username: 'anna', password: SECRET })
  const handler = (c) => c.text('anna')
  app.use(csrf())
  app.get('/me', bearerAuth({ token: SECRET }), handler)
  app.get('/either', some(bearerAuth({ token: SECRET }), isAnna), handler)
  app.get('/down', bearerAuth({ verifyToken: async () => down() }), handler)
  app.post('/write', isAnna, handler)
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  const guarded = inspectRoutes(app).filter((route) => route.isMiddleware && route.path !== '/*')
  return { server, right, lists: `${guarded.length} routes, by the names of functions` }
}

/** The libraries, and the packages that are counted as theirs. */
export const libraries = [
  { name: 'koa-with-auth', packages: [], make: ours },
  { name: 'koa-passport', packages: ['koa-passport', 'passport-http', 'passport-http-bearer'], make: koaPassport },
  { name: 'koa-jwt', packages: ['koa-jwt'], make: koaJwt },
  { name: 'better-auth', packages: ['better-auth'], make: betterAuth },
  { name: 'passport', packages: ['passport', 'passport-http', 'passport-http-bearer'], make: passport },
  {
    name: '@fastify/auth',
    packages: ['@fastify/auth', '@fastify/basic-auth', '@fastify/bearer-auth'],
    make: fastifyAuth,
  },
  { name: 'Hono', packages: ['hono'], make: hono },
]
