/**
 * The contestants that verify a provider's tokens, with the same key, issuer and audience, each in its own framework.
 */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import fastifyJwt from '@fastify/jwt'
import Router from '@koa/router'
import express from 'express'
import { auth } from 'express-oauth2-jwt-bearer'
import fastify from 'fastify'
import { Hono } from 'hono'
import { jwk } from 'hono/jwk'
import { exportJWK, SignJWT } from 'jose'
import koaJwt from 'koa-jwt'
import { withAuth } from '../../../dist/index.js'
import { httpJwt } from '../../../dist/jwt/index.js'
import { listenerOf } from './koaApps.js'

const issuer = 'https://login.example/'
const audience = 'https://api.example'
const anna = { user: 'anna' }

/** What a token is signed with. */
export type Alg = 'ES256' | 'RS256'

const keyPair = (alg: Alg) =>
  alg === 'ES256'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : generateKeyPairSync('rsa', { modulusLength: 2048 })

const pemOf = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()

export interface TokenApps {
  readonly token: string
  readonly listeners: Readonly<Record<string, RequestListener>>
  /** Hono takes no Node request. */
  readonly hono: Readonly<Record<string, Hono>>
}

/** The applications for one algorithm. */
export const tokenApps = async (alg: Alg): Promise<TokenApps> => {
  const { privateKey, publicKey } = keyPair(alg)
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
          issuer: { issuer, jwks: { keys: [key] } },
          audience,
          ...(verified === false ? { verified } : { verified: { maxAge: 3_600_000 } }),
        }),
      ) as never,
    )
  const fastifyApp = async (cache: boolean | undefined) => {
    const app = fastify()
    if (cache !== undefined) {
      await app.register(fastifyJwt, {
        secret: { public: pemOf(publicKey) },
        verify: { algorithms: [alg], allowedIss: issuer, allowedAud: audience, cache },
      } as never)
      app.addHook('onRequest', (request) => request.jwtVerify())
    }
    app.get('/x', () => anna)
    await app.ready()
    return (request: Parameters<RequestListener>[0], response: Parameters<RequestListener>[1]) =>
      app.routing(request, response)
  }
  const expressApp = async (guarded: boolean) => {
    const app = express()
    if (guarded) {
      // It reads keys only by HTTP, and caches them
      const keys = createServer((_request, response) => response.end(JSON.stringify({ keys: [key] })))
      await new Promise<void>((resolve) => void keys.listen(0, '127.0.0.1', resolve))
      keys.unref()
      const { port } = keys.address() as AddressInfo
      const jwksUri = `http://127.0.0.1:${port}/jwks`
      app.use(auth({ issuer, audience, jwksUri, tokenSigningAlg: alg }))
    }
    app.get('/x', (_request, response) => void response.json(anna))
    return app as unknown as RequestListener
  }
  const honoApp = (guarded: boolean) => {
    const app = new Hono()
    if (guarded) app.use('/x', jwk({ keys: [key] as never, alg: [alg], verification: { iss: issuer, aud: audience } }))
    return app.get('/x', (c) => c.json(anna))
  }
  return {
    token,
    listeners: {
      'koa bare': koa(),
      'ours, kept': ours(undefined),
      'ours, verified': ours(false),
      'koa-jwt': koa(koaJwt({ secret: pemOf(publicKey), issuer, audience, algorithms: [alg] }) as never),
      'express bare': await expressApp(false),
      'express-oauth2-jwt-bearer': await expressApp(true),
      'fastify bare': await fastifyApp(undefined),
      '@fastify/jwt': await fastifyApp(false),
      '@fastify/jwt, kept': await fastifyApp(true),
    },
    hono: { 'hono bare': honoApp(false), 'hono/jwk': honoApp(true) },
  }
}
