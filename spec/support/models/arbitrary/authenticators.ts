/**
 * Authenticators as fast-check arbitraries: the built-in kinds alone and composed, each with requests that it accepts.
 */
import fc, { type Arbitrary } from 'fast-check'
import { allOf, anyOf, apiKeyCookie, apiKeyHeader, apiKeyQuery, constantTimeEqual } from 'koa-with-auth'
import { httpBasicAuth, httpBearer, optional, type Authenticator } from 'koa-with-auth'
import { firstPresent, flatMap, lenient } from 'koa-with-auth/fp'
import { mergeRequests, withBasic, withBearer, withCookie, withHeader, withQuery } from 'koa-with-auth/testing'
import type { RequestSpec } from 'koa-with-auth/testing'
import { secretTexts } from '../../../../src/testing/laws/random.js'

/** An authenticator, and a request that it accepts for each alternative. */
interface AuthenticatorSample {
  readonly authenticator: Authenticator<unknown>
  readonly valid: readonly [RequestSpec, ...RequestSpec[]]
}

type Hook = (sent: string) => unknown

const kinds: ReadonlyArray<
  readonly [make: (hook: Hook) => Authenticator<unknown>, sent: (secret: string) => RequestSpec]
> = [
  [(hook) => httpBearer({ authenticate: (_request, token) => hook(token) }), withBearer],
  [
    (hook) => httpBasicAuth({ authenticate: (_request, user, password) => user === 'anna' && hook(password) }),
    (secret) => withBasic('anna', secret),
  ],
  [
    (hook) => apiKeyHeader({ paramName: 'X-API-Key', authenticate: (_request, key) => hook(key) }),
    (secret) => withHeader('X-API-Key', secret),
  ],
  [
    (hook) => apiKeyQuery({ paramName: 'api_key', authenticate: (_request, key) => hook(key) }),
    (secret) => withQuery('api_key', secret),
  ],
  [
    (hook) => apiKeyCookie({ paramName: 'sid', authenticate: (_request, key) => hook(key) }),
    (secret) => withCookie('sid', secret),
  ],
]

// The hook of the secret is sync or async
const kind = (at: number): Arbitrary<AuthenticatorSample> =>
  fc.tuple(secretTexts(), fc.boolean()).map(([secret, late]) => {
    const decide = (sent: string) => constantTimeEqual(sent, secret) && { knows: secret.slice(0, 4) }
    const [make, sent] = kinds[at]!
    const authenticator = make(late ? (given) => Promise.resolve().then(() => decide(given)) : decide)
    return { authenticator, valid: [sent(secret)] }
  })

// Bearer and Basic share a field, so one request can carry only one of them
const distinctKinds = (maxLength: number): Arbitrary<ReadonlyArray<AuthenticatorSample>> =>
  fc
    .tuple(fc.integer({ min: 0, max: 1 }), fc.shuffledSubarray([-1, 2, 3, 4], { minLength: 2, maxLength }))
    .chain(([first, others]) => fc.tuple(...others.map((at) => kind(at === -1 ? first : at))))

const either =
  (fold: typeof anyOf | typeof firstPresent) =>
  (members: ReadonlyArray<AuthenticatorSample>): AuthenticatorSample => ({
    // Safe: there are at least two
    authenticator: fold(members.map(({ authenticator }) => authenticator) as unknown as [Authenticator<unknown>]),
    valid: members.flatMap(({ valid }) => valid) as unknown as AuthenticatorSample['valid'],
  })

// Combines every alternative of one with every alternative of the others
const both = (members: ReadonlyArray<AuthenticatorSample>): AuthenticatorSample => ({
  // Safe: there are at least two
  authenticator: allOf(members.map(({ authenticator }) => authenticator) as unknown as [Authenticator<unknown>]),
  valid: members
    .map(({ valid }): ReadonlyArray<RequestSpec> => valid)
    .reduce((some, others) =>
      some.flatMap((one) => others.map((other) => mergeRequests(one, other))),
    ) as AuthenticatorSample['valid'],
})

const changed =
  (f: (authenticator: Authenticator<unknown>) => Authenticator<unknown>) =>
  ({ authenticator, valid }: AuthenticatorSample): AuthenticatorSample => ({ authenticator: f(authenticator), valid })

/**
 * Authenticators of the built-in kinds: alone, in lists, in groups, mapped and optional, with random secrets, some of
 * them async. Each has the requests that it accepts.
 */
export const authenticators = (): Arbitrary<AuthenticatorSample> => {
  const single = fc.integer({ min: 0, max: kinds.length - 1 }).chain(kind)
  const group = distinctKinds(3)
  const nested = distinctKinds(4)
    .filter((members) => members.length > 2)
    .map(([first, ...others]) => both([first!, either(anyOf)(others)]))
  const whole = fc.oneof(single, group.map(either(anyOf)), group.map(either(firstPresent)), group.map(both), nested)
  return fc
    .tuple(
      whole,
      fc.constantFrom(
        changed((a) => a),
        changed(flatMap((who) => ({ who }))),
        changed(optional),
        changed(lenient),
      ),
    )
    .map(([made, change]) => change(made))
}
