/**
 * The contestants that verify a provider's tokens, with the same key, issuer and audience, each in its own framework.
 */
import {
  constants,
  createHmac,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  timingSafeEqual,
  verify,
  type KeyObject,
} from 'node:crypto'
import type { RequestListener } from 'node:http'
import fastifyJwt from '@fastify/jwt'
import Router from '@koa/router'
import fastify from 'fastify'
import { exportJWK, SignJWT } from 'jose'
import { withAuth } from '../../../dist/index.js'
import { httpJwt } from '../../../dist/jwt.js'
import { listenerOfFastify } from './contestants.js'
import { listenerOf } from './koaApps.js'

const issuer = 'https://login.example/'
const audience = 'https://api.example'
const anna = { user: 'anna' }

/** What a token is signed with. */
export type Alg = 'ES256' | 'RS256' | 'HS256' | 'EdDSA' | 'ES384' | 'PS256'

// Those of the peers
const everywhere: ReadonlyArray<Alg> = ['ES256', 'RS256', 'HS256']

const SECRET = 'a secret of the benchmark, of 32 bytes or more'

const keyPair = (alg: Alg): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } => {
  if (alg === 'ES256' || alg === 'ES384')
    return generateKeyPairSync('ec', { namedCurve: alg === 'ES256' ? 'P-256' : 'P-384' })
  if (alg === 'RS256' || alg === 'PS256') return generateKeyPairSync('rsa', { modulusLength: 2048 })
  if (alg === 'EdDSA') return generateKeyPairSync('ed25519')
  const secret = createSecretKey(Buffer.from(SECRET))
  return { privateKey: secret, publicKey: secret }
}

const pemOf = (key: KeyObject): string =>
  key.type === 'secret' ? SECRET : key.export({ type: 'spki', format: 'pem' }).toString()

interface Claims {
  readonly iss?: string
  readonly aud?: string
  readonly exp?: number
}

/** What a careful developer would write with node:crypto: one algorithm, one key, issuer, audience and expiry. */
const byHand = (alg: Alg, key: KeyObject) => {
  const input = {
    key,
    dsaEncoding: 'ieee-p1363',
    ...(alg === 'PS256' && { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }),
  } as const
  const digest = alg === 'EdDSA' ? null : alg === 'ES384' ? 'sha384' : 'sha256'
  const isSigned = (signed: Buffer, signature: Buffer): boolean => {
    if (alg !== 'HS256') return verify(digest, signed, input, signature)
    const mac = createHmac('sha256', key).update(signed).digest()
    return mac.length === signature.length && timingSafeEqual(mac, signature)
  }
  return (token: string): Claims | undefined => {
    const [header = '', payload = '', signature = '', more] = token.split('.')
    if (more !== undefined) return undefined
    const { alg: said } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { readonly alg?: string }
    if (said !== alg) return undefined
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as Claims
    if (claims.iss !== issuer || claims.aud !== audience) return undefined
    if (typeof claims.exp !== 'number' || claims.exp <= Date.now() / 1000) return undefined
    return isSigned(Buffer.from(`${header}.${payload}`), Buffer.from(signature, 'base64url')) ? claims : undefined
  }
}

export interface TokenApps {
  readonly token: string
  readonly listeners: Readonly<Record<string, RequestListener>> & { readonly 'ours, verified': RequestListener }
}

/** The applications for one algorithm. */
export const tokenApps = async (alg: Alg): Promise<TokenApps> => {
  const { privateKey, publicKey } = keyPair(alg)
  const isSecret = alg === 'HS256'
  const key = { ...(await exportJWK(publicKey)), kid: 'k1', alg, use: 'sig' }
  const claims = { iss: issuer, aud: audience, sub: 'anna', scope: 'read write', client_id: 'app', jti: 'j' }
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg, kid: 'k1' })
    .setIssuedAt()
    .setExpirationTime('1d')
    .sign(privateKey)
  const koa = (...guards: Parameters<Router['get']>[1][]) => {
    const router = new Router()
    for (const guard of guards) router.get('/x', guard)
    return listenerOf(router.get('/x', (ctx) => void (ctx.body = anna)))
  }
  const ours = (verified: false | undefined) =>
    koa(
      withAuth(
        httpJwt({
          issuer: isSecret ? { issuer, secret: SECRET } : { issuer, jwks: { keys: [key] } },
          audience,
          ...(isSecret ? {} : { algorithms: [alg] }),
          ...(verified === false ? { verified } : { verified: { maxAge: 3_600_000 } }),
        }),
      ) as never,
    )
  const fastifyApp = async (cache: boolean | undefined) => {
    const app = fastify()
    if (cache !== undefined) {
      await app.register(fastifyJwt, {
        secret: isSecret ? SECRET : { public: pemOf(publicKey) },
        verify: { algorithms: [alg], allowedIss: issuer, allowedAud: audience, cache },
      } as never)
      app.addHook('onRequest', (request) => request.jwtVerify())
    }
    app.get('/x', () => anna)
    await app.ready()
    return listenerOfFastify(app)
  }
  const check = byHand(alg, isSecret ? publicKey : createPublicKey(pemOf(publicKey)))
  return {
    token,
    listeners: {
      'koa bare': koa(),
      'ours, kept': ours(undefined),
      'ours, verified': ours(false),
      'by hand': koa((ctx, next) => {
        const [, token] = /^Bearer (\S+)$/.exec(ctx.get('Authorization')) ?? []
        const claims = token === undefined ? undefined : check(token)
        if (claims === undefined) {
          ctx.status = 401
          ctx.set('WWW-Authenticate', 'Bearer realm="api"')
          return undefined
        }
        ctx.state['user'] = claims
        return next()
      }),
      ...(everywhere.includes(alg) && {
        'fastify bare': await fastifyApp(undefined),
        '@fastify/jwt': await fastifyApp(false),
        '@fastify/jwt, kept': await fastifyApp(true),
      }),
    },
  }
}
