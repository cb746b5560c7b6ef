/**
 * A suite for your own authenticators, in any runner: `test` is that of node:test, vitest or jest, or `it` of mocha.
 *
 * `laws` lists what must be true for every authenticator, one test for each law.
 */
import type { AuthenticatorLike } from 'koa-with-auth'
import { laws, type LawOptions } from 'koa-with-auth/testing/laws'

/** An authenticator, and the requests that it must accept. */
export interface Subject {
  readonly authenticator: AuthenticatorLike
  readonly valid: LawOptions['valid']
}

export const suite = (
  test: (title: string, body: () => Promise<void>) => unknown,
  subjects: Record<string, Subject>,
) => {
  for (const [title, { authenticator, valid }] of Object.entries(subjects)) {
    for (const { name, check } of laws.authenticator(authenticator, { valid, within: 250 }).tests)
      test(`${title} ${name}`, check)
  }
}
