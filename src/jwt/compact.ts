/**
 * Reads the compact form of a token (RFC 7515 §7.1) strictly. jose would accept blanks and padding.
 *
 * Nothing here is verified. It may only be used to choose a key set, and to refuse.
 */
import { isUtf8 } from 'node:buffer'
import type { Json } from './claims.js'

/** The content of a token, unverified. */
export interface Compact {
  readonly header: Json
  readonly claims: Json
  /** The claims as they are written. */
  readonly payload: string
}

const compact = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/

/** A token's header and claims; `undefined` if it is not a compact JWS with a JSON object as its payload. */
export const readCompact = (token: string): Compact | undefined => {
  if (!compact.test(token)) return undefined
  const [header, payload, signature] = token.split('.').map(bytesOf)
  if (header === undefined || payload === undefined || signature === undefined) return undefined
  const [said, claimed] = [objectIn(header), objectIn(payload)]
  if (said === undefined || claimed === undefined) return undefined
  return { header: said, claims: claimed, payload: payload.toString('utf8') }
}

// RFC 4648 §3.5: Node ignores stray bits; only the canonical form is accepted, so that a token has one spelling
const bytesOf = (part: string): Buffer | undefined => {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

const objectIn = (bytes: Buffer): Json | undefined => {
  if (!isUtf8(bytes)) return undefined
  try {
    return objectOf(JSON.parse(bytes.toString('utf8')))
  } catch {
    return undefined
  }
}

/** A JSON object; `undefined` for any other value. */
export const objectOf = (value: unknown): Json | undefined =>
  // Safe: an object that JSON.parse made has nothing but string keys
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined
