/**
 * An identity provider on loopback. It signs with jose and Node, publishes its keys by real HTTP, and can fail in every
 * way.
 */
import { generateKeyPairSync, sign as signBytes, type KeyObject } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { exportJWK, SignJWT, type JWK, type JWTPayload } from 'jose'
import { onTestFinished } from 'vitest'
import { restartable } from './server.js'

/** How it responds to requests for its keys. */
export type Mood = 'well' | 'error' | 'hanging' | 'rubbish' | 'empty' | 'shapeless' | 'redirecting' | 'endless'

export interface SigningKey {
  readonly alg: string
  readonly kid: string
  readonly privateKey: KeyObject
  readonly publicKey: KeyObject
  readonly jwk: JWK
}

const pairOf = (alg: string) => {
  if (/^[RP]S/.test(alg)) return generateKeyPairSync('rsa', { modulusLength: 2048 })
  if (alg === 'ES256') return generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return generateKeyPairSync('ed25519')
}

/** A key pair for an algorithm. */
export const signingKey = async (alg: string, kid: string): Promise<SigningKey> => {
  const { privateKey, publicKey } = pairOf(alg)
  return { alg, kid, privateKey, publicKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

export const seconds = (): number => Math.floor(Date.now() / 1000)

const part = (value: string): string => Buffer.from(value).toString('base64url')

/** A token with any header and any payload, signed with RS256 by Node, because jose would refuse some of them. */
export const signedByHand = (header: object, payload: string, { privateKey }: SigningKey): string => {
  const input = `${part(JSON.stringify(header))}.${part(payload)}`
  return `${input}.${signBytes('sha256', Buffer.from(input), privateKey).toString('base64url')}`
}

/** A token signed with any key. */
export const signedWith = (
  { alg, kid, privateKey }: SigningKey,
  claims: JWTPayload,
  header: Readonly<Record<string, unknown>> = {},
): Promise<string> => new SignJWT(claims).setProtectedHeader({ alg, kid, ...header }).sign(privateKey)

export const API = 'https://api.example'

export type IdentityProvider = Awaited<ReturnType<typeof identityProvider>>

/** Writes without an end. */
export const pour = (res: ServerResponse): void => {
  while (!res.destroyed && res.write('a'.repeat(65_536)));
  res.once('drain', () => pour(res))
}

const answers: Readonly<Record<Exclude<Mood, 'well' | 'hanging'>, (res: ServerResponse) => void>> = {
  error: (res) => res.writeHead(500).end('internal: token=secret'),
  rubbish: (res) => res.end('<html>'),
  empty: (res) => res.end('{"keys":[]}'),
  shapeless: (res) => res.end('{"keys":[{"kty":"RSA"}]}'),
  redirecting: (res) => res.writeHead(302, { Location: '/moved' }).end(),
  endless: pour,
}

// Making an RSA key takes half a second, so the providers of a suite share one
const firstKeys = new Map<string, Promise<SigningKey>>()
const firstKey = (alg: string): Promise<SigningKey> => {
  const known = firstKeys.get(alg) ?? signingKey(alg, 'k1')
  firstKeys.set(alg, known)
  return known
}

/** A provider until the test has finished. `path` is that of its issuer. */
export const identityProvider = async (path = '', alg = 'ES256') => {
  const keys = [await firstKey(alg)]
  const asked: string[] = []
  /** The contents of the discovery documents beside the standard ones, by path; `undefined` means 404. */
  const documents: Record<string, Record<string, unknown> | undefined> = {}
  const handle = (req: IncomingMessage, res: ServerResponse): void => {
    const url = req.url ?? ''
    asked.push(url)
    if (provider.mood === 'hanging') return
    // what follows a redirect finds good keys
    const isMoved = url === '/moved'
    if (provider.mood !== 'well' && !isMoved) return answers[provider.mood](res)
    if (url === '/jwks' || isMoved) return void res.end(JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }))
    const document = documents[url]
    if (document === undefined) return void res.writeHead(404).end()
    res.end(JSON.stringify({ issuer: provider.issuer, jwks_uri: provider.jwksUri, ...document }))
  }
  const { origin, stop, start } = await restartable(handle)
  const issuer = `${origin}${path}`
  documents[`${path.replace(/\/$/, '')}/.well-known/openid-configuration`] = {}
  /** The claims of a valid token for `API`. */
  const claims = (over: JWTPayload = {}): JWTPayload => {
    const now = seconds()
    return { iss: issuer, aud: API, sub: 'anna', iat: now, exp: now + 300, ...over }
  }
  const state: { mood: Mood } = { mood: 'well' }
  const provider = {
    ...state,
    issuer,
    jwksUri: `${origin}/jwks`,
    claims,
    /** A valid token, with the given changes. */
    token: (over?: JWTPayload, key = keys[0]!) => signedWith(key, claims(over)),
    keys,
    documents,
    /** The number of requests, by path. */
    asked: (wanted?: string) => asked.filter((url) => wanted === undefined || url === wanted).length,
    stop,
    start,
  }
  return provider
}

/** Collects process warnings until the test has finished. */
export const processWarnings = (): (() => ReadonlyArray<string>) => {
  const noted: string[] = []
  const note = (warning: Error): void => void noted.push(`${warning.name}: ${warning.message}`)
  process.on('warning', note)
  onTestFinished(() => void process.off('warning', note))
  return () => noted
}
