/**
 * Two applications for credentials that come again and again, with the same answers: an API key in memory, a token that was verified
 * before, a password that is kept, a password behind a limiter, a signed request and a webhook. One checks them by hand, in middleware;
 * one by this library.
 */
import { createHmac, createPublicKey, generateKeyPairSync, hash, timingSafeEqual, verify } from 'node:crypto'
import type { RequestListener } from 'node:http'
import Router, { type RouterMiddleware } from '@koa/router'
import { SignJWT } from 'jose'
import type { Context, Next } from 'koa'
import {
  cached,
  apiKeyHeader,
  constantTimeEqual,
  httpBasicAuth,
  throttled,
  type Authenticator,
} from '../../../dist/index.js'
import { httpJwt } from '../../../dist/jwt.js'
import { apiKeys } from '../../../dist/keys.js'
import { memoryStore } from '../../../dist/stores.js'
import { httpSignature } from '../../../dist/signatures.js'
import { signedRequest } from '../../../dist/testing.js'
import { github, webhook } from '../../../dist/webhooks.js'
import type { Question } from './alike.js'
import { accept, basicChallenge, basicOf, deny, guard, once, throttledBy, tokenOf } from './byHand.js'
import { basic as basicOfPair, bearer } from './contestants.js'
import { listenerOf } from './koaApps.js'
import { headersOf, type Headers } from './stub.js'

/** A request of one of these kinds, and how much it may take beside the check by hand. */
export interface Credential extends Question {
  readonly target: number
}

const issuer = 'https://login.example/'
const audience = 'https://api.example'
const origin = 'https://api.example'
const SECRET = 'the secret of the webhook, 32 bytes or more'
const DELIVERY = JSON.stringify({ action: 'opened', number: 7, repository: { full_name: 'acme/shop' } })
const HOUR = 3_600_000

// The answer is the same for every kind, so that no row measures JSON
const answer: RouterMiddleware = (ctx) => {
  ctx.body = 'anna'
}

// Counts in memory, and answers at once
const limiterAtOnce = () => {
  const counts = new Map<string, number>()
  const add = (key: string, by: number) => {
    const points = (counts.get(key) ?? 0) + by
    counts.set(key, points)
    return Promise.resolve({ consumedPoints: points, remainingPoints: 1_000_000 - points, msBeforeNext: HOUR })
  }
  return { consume: (key: string) => add(key, 1), reward: (key: string) => add(key, -1) }
}

type Check = (ctx: Context, next: Next) => unknown

// --- By hand

const pairHook = (name: string, password: string) =>
  constantTimeEqual(`${name}:${password}`, 'anna:supersecret') && { username: name }

interface KeptKey {
  readonly owner: string
  readonly revokedAt?: number
  readonly expiresAt?: number
}

/** A check that finds a principal, or none. */
const checked =
  (challenge: string, vary: string, find: (ctx: Context) => unknown): Check =>
  (ctx, next) => {
    const principal = find(ctx)
    if (principal === undefined) return deny(ctx, challenge, vary)
    accept(ctx, principal, vary)
    return next()
  }

const keyCheck = (records: ReadonlyMap<string, KeptKey>): Check =>
  checked('ApiKey realm="api", in="header", name="X-API-Key"', 'X-API-Key', (ctx) => {
    const key = once(ctx, 'x-api-key')
    const found = key === undefined ? undefined : records.get(hash('sha256', key))
    const isOver = found?.revokedAt !== undefined || (found?.expiresAt ?? Infinity) <= Date.now()
    return isOver ? undefined : found
  })

const keptTokenCheck = (known: ReadonlyMap<string, { readonly exp: number }>): Check =>
  checked('Bearer realm="api", error="invalid_token"', 'Authorization', (ctx) => {
    const token = tokenOf(ctx)
    const claims = token === undefined ? undefined : known.get(token)
    return claims === undefined || claims.exp <= Date.now() / 1000 ? undefined : claims
  })

const cachedCheck = (): Check => {
  const kept = new Map<string, { readonly user: object; readonly until: number }>()
  return checked(basicChallenge, 'Authorization', (ctx) => {
    const sent = basicOf(ctx)
    if (sent === undefined) return undefined
    const digest = hash('sha256', `${sent[0]}:${sent[1]}`)
    const before = kept.get(digest)
    if (before !== undefined && Date.now() < before.until) return before.user
    const user = pairHook(...sent)
    if (user === false) return undefined
    kept.set(digest, { user, until: Date.now() + HOUR })
    return user
  })
}

const inputForm = /^sig=(\("@method" "@target-uri"\);created=(\d+);keyid="k1")$/
const signatureForm = /^sig=:([A-Za-z0-9+/]+=*):$/

const signatureCheck = (pem: string): Check => {
  const key = createPublicKey(pem)
  const vary = 'Signature, signature-input, content-digest'
  const isSigned = (ctx: Context): boolean => {
    const [, input, created] = inputForm.exec(once(ctx, 'signature-input') ?? '') ?? []
    const [, encoded] = signatureForm.exec(once(ctx, 'signature') ?? '') ?? []
    if (input === undefined || encoded === undefined) return false
    const age = Date.now() - Number(created) * 1000
    if (age < -6000 || age > HOUR) return false
    const base = `"@method": ${ctx.method}\n"@target-uri": ${origin}${ctx.url}\n"@signature-params": ${input}`
    return verify(null, Buffer.from(base), key, Buffer.from(encoded, 'base64'))
  }
  return checked('Signature realm="api"', vary, (ctx) => (isSigned(ctx) ? { owner: 'anna' } : undefined))
}

const MAX_BODY = 1_048_576
const bodyOf = async (ctx: Context): Promise<Buffer | undefined> => {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of ctx.req) {
    const bytes = chunk as Buffer
    length += bytes.length
    if (length > MAX_BODY) return undefined
    chunks.push(bytes)
  }
  return Buffer.concat(chunks, length)
}

const webhookCheck = (): Check => {
  const vary = 'X-Hub-Signature-256'
  return async (ctx, next) => {
    const sent = once(ctx, 'x-hub-signature-256')
    const body = sent === undefined ? undefined : await bodyOf(ctx)
    const signed = Buffer.from(sent ?? '')
    const wanted = Buffer.from(
      `sha256=${createHmac('sha256', SECRET)
        .update(body ?? '')
        .digest('hex')}`,
    )
    if (body === undefined || signed.length !== wanted.length || !timingSafeEqual(signed, wanted)) {
      return deny(ctx, 'Webhook realm="api", header="X-Hub-Signature-256"', vary)
    }
    accept(ctx, body, vary)
    return next()
  }
}

// --- Both

const ask = (name: string, url: string, headers: Headers, more: Partial<Credential> = {}): Credential => ({
  name,
  url,
  headers: headersOf(headers),
  status: 200,
  target: 1,
  ...more,
})

/** The applications, and the requests to them: those that are timed, and others that are refused. */
export const credentialApps = async () => {
  const keys = apiKeys({ prefix: 'acme', store: memoryStore() })
  const { key } = await keys.issue({ owner: 'anna' })
  const signing = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const jwk = { ...signing.publicKey.export({ format: 'jwk' }), kid: 'k1', alg: 'ES256', use: 'sig' }
  const claims = { iss: issuer, aud: audience, sub: 'anna', scope: 'read write', client_id: 'app', jti: 'j' }
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
    .setIssuedAt()
    .setExpirationTime('1d')
    .sign(signing.privateKey)
  const exp = Math.floor(Date.now() / 1000) + 86_400
  const client = generateKeyPairSync('ed25519')
  const pem = client.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const signed = signedRequest({ url: '/signed' }, { key: client.privateKey, keyid: 'k1', origin })
  const mac = `sha256=${createHmac('sha256', SECRET).update(DELIVERY).digest('hex')}`

  const basic = httpBasicAuth({ authenticate: (_request, name, password) => pairHook(name, password) })
  const ours: Readonly<Record<string, Authenticator<unknown>>> = {
    '/key': apiKeyHeader({ paramName: 'X-API-Key', authenticate: keys.authenticate }),
    '/jwt': httpJwt({ issuer: { issuer, jwks: { keys: [jwk] } }, audience, verified: { maxAge: HOUR } }),
    '/cached': httpBasicAuth({
      authenticate: cached((_request, name: string, password: string) => pairHook(name, password), { maxAge: HOUR }),
    }),
    '/throttled': throttled({ limiter: limiterAtOnce() })(basic),
    '/signed': httpSignature({
      origin,
      maxAge: HOUR,
      keyOf: (keyid) => keyid === 'k1' && { key: client.publicKey, owner: 'anna' },
    }),
    '/hook': webhook({ scheme: github, secrets: SECRET }),
  }
  const byHand: Readonly<Record<string, Check>> = {
    '/key': keyCheck(new Map([[hash('sha256', key), { owner: 'anna' }]])),
    '/jwt': keptTokenCheck(new Map([[token, { ...claims, exp }]])),
    '/cached': cachedCheck(),
    '/throttled': throttledBy(limiterAtOnce(), pairHook),
    '/signed': signatureCheck(pem),
    '/hook': webhookCheck(),
  }
  const appOf = (checks: Readonly<Record<string, RouterMiddleware>>): RequestListener => {
    const router = new Router()
    for (const [path, check] of Object.entries(checks)) {
      if (path === '/hook') router.post(path, check, answer)
      else router.get(path, check, answer)
    }
    return listenerOf(router)
  }
  const guards = Object.fromEntries(Object.entries(ours).map(([path, auth]) => [path, guard(auth)]))
  const delivery = { method: 'POST', body: DELIVERY }
  const length = { 'Content-Length': String(DELIVERY.length) }
  const wrongKey = `${key.slice(0, -1)}${key.endsWith('x') ? 'y' : 'x'}`
  return {
    questions: [
      ask('an API key in memory', '/key', { 'X-API-Key': key }, { target: 1.12 }),
      ask('a token that was verified before', '/jwt', bearer(token), { target: 1.08 }),
      ask('Basic, cached', '/cached', basicOfPair('anna:supersecret'), { target: 1.12 }),
      ask('Basic, throttled by a limiter that answers at once', '/throttled', basicOfPair('anna:supersecret'), {
        target: 1.15,
      }),
      ask('a signed request (RFC 9421, Ed25519)', '/signed', Object.fromEntries(signed.fields), { target: 1.3 }),
      ask('a webhook (HMAC-SHA256)', '/hook', { 'X-Hub-Signature-256': mac, ...length }, { target: 1.3, ...delivery }),
    ],
    refused: [
      ask('an unknown API key', '/key', { 'X-API-Key': wrongKey }, { status: 401 }),
      ask('a wrong password, cached', '/cached', basicOfPair('anna:wrong'), { status: 401 }),
      ask('a wrong password, throttled', '/throttled', basicOfPair('anna:wrong'), { status: 401 }),
      ask('an unsigned request', '/signed', {}, { status: 401 }),
      ask(
        'a forged webhook',
        '/hook',
        { 'X-Hub-Signature-256': mac.replace(/.$/, 'x'), ...length },
        { status: 401, ...delivery },
      ),
    ],
    'by hand': appOf(byHand),
    ours: appOf(guards),
  }
}
