/** The laws that the testing kit finds broken for an authenticator. */
import { httpBearer, type AuthenticatorLike } from 'koa-with-auth'
import { LawViolations, type Violation } from 'koa-with-auth/testing'
import { checkAuthenticator, type LawOptions } from 'koa-with-auth/testing/laws'
import { expect } from 'vitest'

/** The laws that do not hold, with their counterexamples. */
export const breachesOf = async (member: AuthenticatorLike, options: LawOptions): Promise<ReadonlyArray<Violation>> => {
  const error: unknown = await checkAuthenticator(member, options).then(
    () => undefined,
    (broken: unknown) => broken,
  )
  if (error === undefined) return []
  expect(error).toBeInstanceOf(LawViolations)
  expect(error).toBeInstanceOf(Error)
  return (error as LawViolations).violations
}

/** A bearer authenticator of a hook. */
export const bearer = (decide: (token: string) => unknown) =>
  httpBearer({ authenticate: (_request, token) => decide(token) })

/** What a right hook knows. */
export const isRight = (token: string) => token === 'supersecret' && { user: 'anna' }

/** A right authenticator, and what it lets in. */
export const right = bearer(isRight)
export const valid = ['supersecret']
