/** The laws that an authenticator breaks, as the testing kit reports them. */
import { httpBearer, type AuthenticatorLike } from 'koa-with-auth'
import { LawViolations, type Violation } from 'koa-with-auth/testing'
import { laws } from 'koa-with-auth/testing/laws'
import type { LawOptions } from 'koa-with-auth/testing/laws'
import { expect } from 'vitest'

/** The violations that a check reports: none if it resolves. */
export const violationsOf = async (check: Promise<unknown>): Promise<ReadonlyArray<Violation>> => {
  const error: unknown = await check.then(
    () => undefined,
    (broken: unknown) => broken,
  )
  if (error === undefined) return []
  expect(error).toBeInstanceOf(LawViolations)
  expect(error).toBeInstanceOf(Error)
  // each is in the message
  for (const { law, counterexample, fix } of (error as LawViolations).violations) {
    for (const part of [`. ${law}\n`, counterexample.split('\n')[0]!, `fix: ${fix}`])
      expect((error as LawViolations).message).toContain(part)
  }
  return (error as LawViolations).violations
}

export const breachesOf = (member: AuthenticatorLike, options: LawOptions) =>
  violationsOf(laws.authenticator(member, options).check())

/** A bearer authenticator with this hook. */
export const bearer = (decide: (token: string) => unknown) =>
  httpBearer({ authenticate: (_request, token) => decide(token) })

/** What a right hook does. */
export const isRight = (token: string) => token === 'supersecret' && { user: 'anna' }

/** A right authenticator, and what it must accept. */
export const right = bearer(isRight)
export const valid = ['supersecret']
