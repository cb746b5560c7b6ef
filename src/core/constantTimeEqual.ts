import { hash, timingSafeEqual } from 'node:crypto'

// UTF-16, so that every string has bytes of its own: UTF-8 writes all lone surrogates alike
const digest = (text: string): Buffer => hash('sha256', Buffer.from(text, 'utf16le'), 'buffer')

/**
 * Whether two secrets are equal, in a time that tells nothing about where they differ (CWE-208).
 *
 * Strings of any lengths; their digests are compared, so different lengths neither throw nor return early. Never
 * throws: what is no string equals nothing.
 *
 * @example
 * import { constantTimeEqual } from 'koa-with-auth'
 *
 * assert.strictEqual(constantTimeEqual('supersecret', 'supersecret'), true)
 * assert.strictEqual(constantTimeEqual('supersecret', 'super'), false)
 */
export const constantTimeEqual = (a: string, b: string): boolean =>
  typeof a === 'string' && typeof b === 'string' && timingSafeEqual(digest(a), digest(b))
