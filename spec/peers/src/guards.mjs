/**
 * Ten guards of Koa, Express, Fastify and Hono, each set up as its README does, with the routes of the contract of
 * spec/data/bad-inputs.json that it can guard. `node src/guards.mjs NAME` serves one, and prints its address.
 *
 * The functions of an application are the same for all: they look an account up, and compare a token or a key. The
 * options are those that a README asks for: algorithms, issuer and audience of a JWT.
 */
import { timingSafeEqual } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { corpus } from '../../data/runner.mjs'
import { expressApp, fastifyGuards, koaApp, listen, portOf } from './frameworks.mjs'

const { issuer, audience, publicKey } = corpus.app.jwt
const SECRET = 'supersecret'
const accounts = new Map(Object.entries(corpus.app.basicUsers))

const isSame = (given, right) => {
  const [one, other] = [Buffer.from(given), Buffer.from(right)]
  return one.length === other.length && timingSafeEqual(one, other)
}
// these users are bytes, one character for each; a name and a password come as text
const asText = (bytes) => Buffer.from(bytes, 'latin1').toString()
const people = new Map([...accounts].map(([name, password]) => [asText(name), asText(password)]))
const isKnown = (name, password) => {
  const right = people.get(name)
  return right !== undefined && isSame(password, right)
}

let runs = 0
const ran = () => String(++runs)
const prefix = '/api'

// --- Koa

const ours = async () => {
  const { app, router } = await koaApp({ prefix })
  const { apiKeyHeader, constantTimeEqual, httpBasicAuth, httpBearer, withAuth } =
    await import('../../../dist/index.js')
  const { httpJwt } = await import('../../../dist/jwt.js')
  const bearer = httpBearer({ authenticate: (_request, token) => constantTimeEqual(token, SECRET) && { token } })
  const basic = httpBasicAuth({ authenticate: (_request, name, password) => isKnown(name, password) && { name } })
  const key = apiKeyHeader({
    paramName: 'X-API-Key',
    authenticate: (_request, given) => constantTimeEqual(given, SECRET) && { key: given },
  })
  const token = httpJwt({ issuer: { issuer, publicKey, algorithms: ['RS256'] }, audience })
  const handler = (ctx) => void (ctx.body = ran())
  router.get('/basic', withAuth(basic), handler).get('/bearer', withAuth(bearer), handler)
  router.get('/headerkey', withAuth(key), handler).get('/jwt', withAuth(token), handler)
  router.get('/protected', withAuth(bearer), handler)
  return listen(app.use(router.routes()).use(router.allowedMethods()).callback())
}

// https://github.com/koajs/basic-auth: koa-mount for a part of the application
const koaBasicAuth = async () => {
  const { app, router } = await koaApp({ prefix })
  const { default: mount } = await import('koa-mount')
  const { default: auth } = await import('koa-basic-auth')
  // one account, as its README has it: the others of the corpus are wrong ones, and only refused requests have them
  app.use(mount(prefix, auth({ name: 'admin', pass: 'secret' })))
  for (const path of ['/basic', '/protected']) router.get(path, (ctx) => void (ctx.body = ran()))
  return listen(app.use(router.routes()).callback())
}

// https://github.com/koajs/jwt
const koaJwt = async () => {
  const { app, router } = await koaApp({ prefix })
  const { default: guard } = await import('koa-jwt')
  app.use(guard({ secret: publicKey, algorithms: ['RS256'], issuer, audience }))
  for (const path of ['/jwt', '/protected']) router.get(path, (ctx) => void (ctx.body = ran()))
  return listen(app.use(router.routes()).callback())
}

const strategies = async () => {
  const { BasicStrategy } = (await import('passport-http')).default
  const { Strategy: BearerStrategy } = (await import('passport-http-bearer')).default
  const { Strategy: JwtStrategy, ExtractJwt } = (await import('passport-jwt')).default
  const { HeaderAPIKeyStrategy } = (await import('passport-headerapikey')).default
  return {
    basic: new BasicStrategy((name, password, done) => done(null, isKnown(name, password) && { name })),
    bearer: new BearerStrategy((token, done) => done(null, isSame(token, SECRET) && { token })),
    headerkey: new HeaderAPIKeyStrategy({ header: 'X-API-Key', prefix: '' }, false, (key, done) =>
      done(null, isSame(key, SECRET) && { key }),
    ),
    jwt: new JwtStrategy(
      {
        jwtFromRequest: ExtractJwt.fromAuthHeaderAsBearerToken(),
        secretOrKey: publicKey,
        algorithms: ['RS256'],
        issuer,
        audience,
      },
      (claims, done) => done(null, claims),
    ),
  }
}

// https://github.com/rkusa/koa-passport
const koaPassport = async () => {
  const { app, router } = await koaApp({ prefix })
  const { KoaPassport } = await import('koa-passport')
  const passport = new KoaPassport()
  app.use(passport.initialize())
  const handler = (ctx) => void (ctx.body = ran())
  for (const [name, strategy] of Object.entries(await strategies())) {
    passport.use(name, strategy)
    router.get(`/${name}`, passport.authenticate(name, { session: false }), handler)
  }
  router.get('/protected', passport.authenticate('bearer', { session: false }), handler)
  return listen(app.use(router.routes()).callback())
}

// --- Express

// https://github.com/LionC/express-basic-auth
const expressBasicAuth = async () => {
  const app = await expressApp()
  const { default: basicAuth } = await import('express-basic-auth')
  app.use(basicAuth({ users: Object.fromEntries(people), challenge: true }))
  for (const path of ['/api/basic', '/api/protected']) app.get(path, (_req, res) => res.send(ran()))
  return listen(app)
}

// https://github.com/auth0/express-jwt
const expressJwt = async () => {
  const app = await expressApp()
  const { expressjwt } = await import('express-jwt')
  const guard = expressjwt({ secret: publicKey, algorithms: ['RS256'], issuer, audience })
  for (const path of ['/api/jwt', '/api/protected']) app.get(path, guard, (_req, res) => res.send(ran()))
  app.use((error, _req, res, next) => {
    if (error.name === 'UnauthorizedError') res.status(401).send('invalid token...')
    else next(error)
  })
  return listen(app)
}

// https://www.passportjs.org/packages/passport-http
const passport = async () => {
  const app = await expressApp()
  const { Passport } = (await import('passport')).default
  const own = new Passport()
  for (const [name, strategy] of Object.entries(await strategies())) {
    own.use(name, strategy)
    app.get(`/api/${name}`, own.authenticate(name, { session: false }), (_req, res) => res.send(ran()))
  }
  app.get('/api/protected', own.authenticate('bearer', { session: false }), (_req, res) => res.send(ran()))
  return listen(app)
}

// --- Fastify

// https://github.com/fastify/fastify-auth, with @fastify/basic-auth and @fastify/bearer-auth
const fastifyAuth = async () => {
  const app = await fastifyGuards(SECRET, async (name, password) => {
    if (!isKnown(name, password)) throw new Error('Winter is coming')
  })
  const handler = async () => ran()
  app.get('/api/basic', { onRequest: app.auth([app.basicAuth]) }, handler)
  app.get('/api/bearer', { onRequest: app.auth([app.verifyBearerAuth]) }, handler)
  app.get('/api/protected', { onRequest: app.auth([app.verifyBearerAuth, app.basicAuth]) }, handler)
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

// https://github.com/fastify/fastify-jwt
const fastifyJwt = async () => {
  const { default: fastify } = await import('fastify')
  const app = fastify()
  await app.register((await import('@fastify/jwt')).default, {
    secret: { public: publicKey },
    // the options are those of fast-jwt, whose README has requiredClaims
    verify: { algorithms: ['RS256'], allowedIss: issuer, allowedAud: audience, requiredClaims: ['iss', 'aud'] },
  })
  const onRequest = async (request, reply) => {
    try {
      await request.jwtVerify()
    } catch (error) {
      reply.send(error)
    }
  }
  for (const path of ['/api/jwt', '/api/protected']) app.get(path, { onRequest }, async () => ran())
  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}

// --- Hono

// https://hono.dev/docs/middleware/builtin/basic-auth, bearer-auth, jwt
const hono = async () => {
  const { Hono } = await import('hono')
  const { basicAuth } = await import('hono/basic-auth')
  const { bearerAuth } = await import('hono/bearer-auth')
  const { jwt: jwtAuth } = await import('hono/jwt')
  const { serve } = await import('@hono/node-server')
  const app = new Hono()
  app.use('/api/basic', basicAuth({ verifyUser: (name, password) => isKnown(name, password) }))
  app.use('/api/bearer', bearerAuth({ token: SECRET }))
  app.use('/api/jwt', jwtAuth({ secret: publicKey, alg: 'RS256', verification: { iss: issuer, aud: audience } }))
  app.use('/api/protected', bearerAuth({ token: SECRET }))
  for (const path of ['basic', 'bearer', 'jwt', 'protected']) app.get(`/api/${path}`, (c) => c.text(ran()))
  return new Promise((resolve) => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () => resolve(server))
  })
}

const ofPassport = ['passport-http', 'passport-http-bearer', 'passport-jwt', 'passport-headerapikey']

/** The guards: framework, packages whose versions are named, and the page that the set-up follows. */
export const guards = [
  { name: 'koa-with-auth', on: 'Koa', packages: [], make: ours },
  { name: 'koa-basic-auth', on: 'Koa', packages: ['koa-basic-auth'], make: koaBasicAuth },
  { name: 'koa-jwt', on: 'Koa', packages: ['koa-jwt'], make: koaJwt },
  { name: 'koa-passport', on: 'Koa', packages: ['koa-passport', ...ofPassport], make: koaPassport },
  { name: 'express-basic-auth', on: 'Express', packages: ['express-basic-auth'], make: expressBasicAuth },
  { name: 'express-jwt', on: 'Express', packages: ['express-jwt'], make: expressJwt },
  { name: 'passport', on: 'Express', packages: ['passport', ...ofPassport], make: passport },
  {
    name: '@fastify/auth',
    on: 'Fastify',
    packages: ['@fastify/auth', '@fastify/basic-auth', '@fastify/bearer-auth'],
    make: fastifyAuth,
  },
  { name: '@fastify/jwt', on: 'Fastify', packages: ['@fastify/jwt'], make: fastifyJwt },
  { name: 'hono', on: 'Hono', packages: ['hono'], make: hono },
]

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = guards.find(({ name }) => name === process.argv[2])
  const server = await found.make()
  const port = await portOf(server)
  process.send?.({ port }) ?? console.log(`http://127.0.0.1:${port}`)
}
