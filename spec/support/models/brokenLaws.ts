/** The laws that an authenticator breaks, as the testing kit reports them. */
import { httpBearer, type AuthenticatorLike } from 'koa-with-auth'
import { LawViolations, type Violation } from 'koa-with-auth/testing'
import { laws } from 'koa-with-auth/testing/laws'
import type { LawOptions } from 'koa-with-auth/testing/laws'
import { expect } from 'vitest'

/** The broken laws, with their counterexamples. */
export const breachesOf = async (member: AuthenticatorLike, options: LawOptions): Promise<ReadonlyArray<Violation>> => {
  const error: unknown = await laws
    .authenticator(member, options)
    .check()
    .then(
      () => undefined,
      (broken: unknown) => broken,
    )
  if (error === undefined) return []
  expect(error).toBeInstanceOf(LawViolations)
  expect(error).toBeInstanceOf(Error)
  return (error as LawViolations).violations
}

/** A bearer authenticator with this hook. */
export const bearer = (decide: (token: string) => unknown) =>
  httpBearer({ authenticate: (_request, token) => decide(token) })

/** What a right hook does. */
export const isRight = (token: string) => token === 'supersecret' && { user: 'anna' }

/** A right authenticator, and what it must accept. */
export const right = bearer(isRight)
export const valid = ['supersecret']
