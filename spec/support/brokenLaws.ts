/** What the testing kit says of an authenticator. */
import { httpBearer, type AuthenticatorLike } from 'koa-with-auth'
import { BrokenLaws, checkAuthenticator, type Breach, type LawOptions } from 'koa-with-auth/testing'
import { expect } from 'vitest'

/** The laws that do not hold, with their counterexamples. */
export const breachesOf = async (member: AuthenticatorLike, options: LawOptions): Promise<ReadonlyArray<Breach>> => {
  const error: unknown = await checkAuthenticator(member, options).then(
    () => undefined,
    (broken: unknown) => broken,
  )
  if (error === undefined) return []
  expect(error).toBeInstanceOf(BrokenLaws)
  expect(error).toBeInstanceOf(Error)
  return (error as BrokenLaws).breaches
}

/** A bearer authenticator of a hook. */
export const bearer = (decide: (token: string) => unknown) =>
  httpBearer({ authenticate: (_request, token) => decide(token) })

/** What a right hook knows. */
export const isRight = (token: string) => token === 'supersecret' && { user: 'anna' }

/** A right authenticator, and what it lets in. */
export const right = bearer(isRight)
export const valid = ['supersecret']
