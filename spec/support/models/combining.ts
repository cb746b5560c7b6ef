/**
 * Three kinds of credential whose hooks report that they were called, and the answers that combinations of them must
 * get.
 */
import { either as E } from 'fp-ts'
import { apiKeyHeader, AuthError, httpBasicAuth, httpBearer, withAuth, type AuthenticatorLike } from 'koa-with-auth'
import { expect } from 'vitest'
import {
  expectCrashed,
  expectDenied,
  expectPassed,
  operation,
  type Answer,
  type Running,
  type Sending,
} from './behavior.js'
import { parseChallenge } from './challengeParser.js'

const asked: string[] = []

/** The hooks that were called since the last call, in order. */
export const hooksAsked = (): ReadonlyArray<string> => asked.splice(0)

// The credential itself says what the hook does
const verdictOf = (name: string, sent: string): unknown => {
  asked.push(name)
  switch (sent) {
    case 'down':
      return E.left(AuthError.unavailable(7))
    case 'old':
      return E.left(AuthError.expired)
    case 'low':
      return E.left(AuthError.insufficient())
    case 'throw':
      throw new Error('hidden')
    default:
      return sent === `good-${name}` && { name }
  }
}

const later = async (name: string, sent: string): Promise<unknown> => {
  await Promise.resolve()
  return verdictOf(name, sent)
}

/** A key in `X-Key`. The name in its challenge needs no escaping, its realm does. */
export const key = apiKeyHeader({
  realm: 'the "front" \\ door',
  paramName: 'X-Key',
  authenticate: (_request, sent) => verdictOf('key', sent),
})

/** A bearer token with an async hook. */
export const user = httpBearer({ authenticate: (_request, token) => later('user', token) })

/** Basic, which browsers send by themselves; the password decides. */
export const basic = httpBasicAuth({ authenticate: (_request, _user, password) => verdictOf('basic', password) })

/** The challenge of each kind, as a line. */
export const offers = {
  key: 'ApiKey realm="the \\"front\\" \\\\ door", in="header", name="X-Key"',
  user: 'Bearer realm="api"',
  badUser: 'Bearer realm="api", error="invalid_token"',
  lowUser: 'Bearer realm="api", error="insufficient_scope"',
  basic: 'Basic realm="api", charset="UTF-8"',
}

/** A request with these credentials: `{ key: 'good' }` sends the right key; other values are sent as they are. */
export const sending = (credentials: { key?: string; user?: string; basic?: string }, more: Sending = {}): Sending => {
  const sent = (name: 'key' | 'user' | 'basic') =>
    credentials[name] === 'good' ? `good-${name}` : (credentials[name] ?? undefined)
  const authorization =
    credentials.user !== undefined
      ? `Bearer ${sent('user')}`
      : credentials.basic !== undefined && `Basic ${Buffer.from(`me:${sent('basic')}`).toString('base64')}`
  return {
    ...more,
    headers: {
      ...more.headers,
      ...(credentials.key !== undefined && { 'X-Key': sent('key')! }),
      ...(authorization && { Authorization: authorization }),
    },
  }
}

/** A write that another site made a browser send. */
export const crossSite: Sending = {
  method: 'POST',
  headers: { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://a.evil' },
}

/** One operation guarded by what `withAuth` accepts. */
export const behind = (auth: unknown, above?: Parameters<typeof operation>[1]): Promise<Running> =>
  // Safe: `withAuth` checks its argument when it runs
  operation(withAuth(auth as AuthenticatorLike), above)

/** A response, and the hooks that were called for it. */
export const exchanged = async (
  { ask }: Running,
  sent: Sending,
): Promise<Answer & { asked: ReadonlyArray<string> }> => {
  hooksAsked()
  const answer = await ask('/x', sent)
  return { ...answer, asked: hooksAsked() }
}

/** What a request must get: a principal, or a status with challenges. */
export type Expected =
  | { readonly as: unknown; readonly asked: ReadonlyArray<string> }
  | { readonly status: number; readonly challenges: ReadonlyArray<string>; readonly asked: ReadonlyArray<string> }

/** A row of a table of combinations. */
export type Row = readonly [what: string, auth: unknown, sent: Sending, expected: Expected]

export const passes = (as: unknown, ...asking: string[]): Expected => ({ as, asked: asking })
export const refused = (status: number, challenges: ReadonlyArray<string>, ...asking: string[]): Expected => ({
  status,
  challenges,
  asked: asking,
})

/** Sends the request of a row, and compares everything that can be observed. */
export const check = async ([, auth, sent, expected]: Row): Promise<void> => {
  const answer = await exchanged(await behind(auth), sent)
  if ('as' in expected) expectPassed(answer, expected.as)
  else if (expected.status === 500) expectCrashed(answer)
  else
    expectDenied(
      answer,
      expected.status,
      expected.challenges,
      expected.status === 403 && expected.challenges.length === 0 ? 'CSRF check Failed' : undefined,
    )
  expect(answer.asked).toEqual(expected.asked)
  expect(answer.headers['retry-after']).toBe('status' in expected && expected.status === 503 ? '7' : undefined)
  // RFC 9110 §11.6.1 and §11.2: each line is one challenge that clients can read, and none is repeated
  for (const line of answer.challenges) expect(parseChallenge(line).parameters[0]?.[0]).toBe('realm')
  expect(new Set(answer.challenges).size).toBe(answer.challenges.length)
}
