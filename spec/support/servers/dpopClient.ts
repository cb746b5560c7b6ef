/** A client with a key of its own: it makes DPoP proofs with jose, good ones and wrong ones. */
import { createHash, randomUUID } from 'node:crypto'
import { calculateJwkThumbprint, CompactSign, type JWTPayload } from 'jose'
import { seconds, signingKey, type IdentityProvider } from './identityProvider.js'

/** The origin of the API, as its clients call it. */
export const ORIGIN = 'https://api.example'

const digestOf = (token: string): string => createHash('sha256').update(token).digest('base64url')

export interface ProofChanges {
  /** Claims that replace the good ones; `undefined` leaves one out. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** Members of the header that replace the good ones; `undefined` leaves one out. */
  readonly header?: Readonly<Record<string, unknown>>
  /** What signs it. Default: the key of the client. */
  readonly key?: Parameters<CompactSign['sign']>[0]
}

export type DpopClient = Awaited<ReturnType<typeof dpopClient>>

/** A client with a new key. `jwk` is the public key, as proofs have it. */
export const dpopClient = async (alg = 'ES256') => {
  const key = await signingKey(alg, 'client')
  const { kid: _kid, alg: _alg, use: _use, ...jwk } = key.jwk
  const thumbprint = await calculateJwkThumbprint(jwk)
  return {
    key,
    jwk,
    thumbprint,
    /** A proof for GET /me with a token, with the given changes. */
    proof: (token: string, { claims = {}, header = {}, key: signer = key.privateKey }: ProofChanges = {}) => {
      const good = { jti: randomUUID(), htm: 'GET', htu: `${ORIGIN}/me`, iat: seconds(), ath: digestOf(token) }
      return new CompactSign(Buffer.from(JSON.stringify({ ...good, ...claims })))
        .setProtectedHeader({ typ: 'dpop+jwt', alg, jwk, ...header })
        .sign(signer)
    },
    /** A good token that is bound to the key. */
    token: (provider: IdentityProvider, over: JWTPayload = {}) => provider.token({ cnf: { jkt: thumbprint }, ...over }),
  }
}

/** The fields of a request with a token and its proof. */
export const withProof = (token: string, proof: string): Readonly<Record<string, string>> => ({
  Authorization: `DPoP ${token}`,
  DPoP: proof,
})
