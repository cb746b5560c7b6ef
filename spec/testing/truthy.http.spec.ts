/**
 * Values that mean "no" to the author of a hook, but are truthy. The guard cannot know this; `checkAuthenticator` finds
 * each.
 */
import { httpBearer } from 'koa-with-auth'
import { laws } from 'koa-with-auth/testing/laws'
import { withBearer } from 'koa-with-auth/testing'
import { expect, test } from 'vitest'

const refusals: ReadonlyArray<readonly [what: string, make: () => unknown]> = [
  ['a fetch Response', () => new Response(null, { status: 401 })],
  ['an introspection (RFC 7662)', () => ({ active: false })],
  ['a result of pg', () => ({ rows: [] })],
  ['a result of mysql2', () => [[], [{ name: 'id' }]]],
  ['Promise.all', () => Promise.all([Promise.resolve(undefined)])],
  ['Promise.allSettled', () => Promise.allSettled([Promise.reject(new Error('no'))])],
  ['safeParse of zod', () => ({ success: false })],
  ['an empty Map', () => new Map()],
  ['an empty Buffer', () => Buffer.alloc(0)],
  ['a Boolean object of false', () => Object(false) as unknown],
]

test.each(refusals)('checkAuthenticator finds a hook that returns %s for a wrong credential', async (_what, make) => {
  const careless = httpBearer({
    authenticate: (_request, token) => (token === 'supersecret' ? { user: 'anna' } : make()),
  })
  await expect(laws.authenticator(careless, { valid: [withBearer('supersecret')] }).check()).rejects.toThrow(
    /refuses wrong, empty, hostile[^]*let in/,
  )
})
