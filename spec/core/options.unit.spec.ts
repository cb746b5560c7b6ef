/** A hook that never reads the credential: a law finds it, because it calls the hook. */
import { httpBearer } from 'koa-with-auth'
import { laws } from 'koa-with-auth/testing/laws'
import { describe, expect, it } from 'vitest'

const anna = { user: 'anna' }

describe('checkAuthenticator finds a hook that does not read the credential', () => {
  const users = new Map([['supersecret', anna]])
  it.each([
    { description: '() => ({ user })', hook: () => anna, law: 'refuses wrong' },
    { description: '(token) => ({ user: token })', hook: (token: unknown) => ({ user: token }), law: 'refuses wrong' },
    {
      description: '(token) => users.get(token)',
      hook: (token: unknown) => users.get(token as string),
      law: 'lets in',
    },
  ])('$description', async ({ hook, law }) => {
    const error: unknown = await laws
      .authenticator(httpBearer({ authenticate: hook }), {
        valid: ['supersecret'],
      })
      .check()
      .catch((found: unknown) => found)
    expect(String(error)).toContain(law)
    expect(String(error)).toMatch(/\(request, credential\)|the second parameter of a hook/)
  })

  it('and finds nothing if the hook reads it', async () => {
    const right = httpBearer({ authenticate: (_request, token) => users.get(token) })
    await laws.authenticator(right, { valid: ['supersecret'] }).check()
  })
})
