/**
 * An API for AUDIENCE that accepts the access tokens of the provider ISSUER. Without ISSUER it accepts its own, to try it.
 */
import { generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import Koa from 'koa'
import { apiApp, operation, requireScopes, withAuth } from 'koa-with-auth'
import { seal } from 'koa-with-auth/audit'
import { httpJwt } from 'koa-with-auth/jwt'

const { ISSUER, AUDIENCE = 'my-api', HOST = '127.0.0.1', NODE_ENV = 'development' } = process.env
// Only on this machine it makes tokens itself
const isTrial = ['development', 'test'].includes(NODE_ENV) && ['127.0.0.1', '::1', 'localhost'].includes(HOST)

export const service = async (issuer = ISSUER) => {
  if (issuer === undefined && !isTrial) throw new TypeError('set ISSUER to the URL of your provider')
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const jwt = httpJwt({ issuer: issuer ?? { issuer: 'demonstration', publicKey }, audience: AUDIENCE })

  const api = apiApp({ title: 'Notes', version: '1.0.0', prefix: '/api', auth: jwt })
  const notes: { by: string | undefined; at: Date }[] = []
  api.get('/health', operation({ summary: 'Whether it serves' }), withAuth(null), (ctx) => {
    ctx.body = 'ok'
  })
  api.get('/notes', operation({ summary: 'All notes' }), (ctx) => {
    ctx.body = notes
  })
  api.post(
    '/notes',
    operation({ summary: 'Adds a note; needs the scope write' }),
    withAuth(jwt, requireScopes(['write'])),
    (ctx) => {
      notes.push({ by: ctx.request.auth.sub, at: new Date() })
      ctx.status = 201
    },
  )
  const sealed = seal(api, { public: ['GET /api/health', 'docs'], objects: true })
  const app = new Koa().use(sealed.routes()).use(sealed.allowedMethods())

  const claims = { iss: 'demonstration', aud: AUDIENCE, sub: 'anna', scope: 'write', exp: Date.now() / 1000 + 8 * 3600 }
  const made = new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA' })
  const token = issuer === undefined ? await made.sign(privateKey) : '$TOKEN'
  return { app, toTry: (url: string) => [`curl -i -H 'Authorization: Bearer ${token}' ${url}/notes`] }
}

/** The application, for `koa-with-auth audit`. */
export default () => service().then(({ app }) => app)
