/**
 * The arbitraries of the laws: requests, credentials, failures, descriptions, and authenticators that report which ones
 * were called.
 */
import { either as E, option as O } from 'fp-ts'
import fc, { type Arbitrary } from 'fast-check'
import type { Request } from 'koa'
import { AuthError, authenticator, Challenge, type Authenticator, type Description } from 'koa-with-auth'
import { altW, flatMap } from 'koa-with-auth/fp'
import type { SecurityScheme } from 'koa-with-auth'
import { secretTexts, randomFailures } from '../../../src/testing/laws/random.js'
import * as credentials from './arbitrary/credentials.js'
import { requests } from './arbitrary/requests.js'

// --- from the testing kit

/** RFC 9110 §5.6.2. */
export const token = fc.stringMatching(/^[A-Za-z0-9!#$%&'*+\-.^_`|~]{1,20}$/)

/** RFC 6750 §2.1. */
export const b64token = credentials.bearerTokens()

/** So long that no response contains it by chance. */
export const secret = secretTexts()

/** Any string without control characters, in any script; the user name without a colon (RFC 7617 §2). */
export const basicCredentials = credentials.basicCredentials()

/** Safe and unsafe requests, from a page of the same site, a page of another site, and a program. */
export const request: Arbitrary<Request> = requests()

/** Challenges that `make` accepts. */
export const challenge: Arbitrary<Challenge> = fc
  .tuple(
    token,
    fc.uniqueArray(fc.tuple(token, fc.stringMatching(/^[\x20-\x7e]{0,20}$/)), {
      selector: ([name]) => name.toLowerCase(),
      maxLength: 4,
    }),
  )
  .map(([scheme, parameters]) => Challenge.make(scheme, Object.fromEntries(parameters)))

/** Failures of one authenticator, with and without their challenge. */
const singleError: Arbitrary<AuthError> = randomFailures().map(({ branches: _, ...error }) => error)

/** Failures with branches, too, as a fold makes them. */
export const authError: Arbitrary<AuthError> = randomFailures()

// --- descriptions

const scheme: Arbitrary<SecurityScheme | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.record({
    type: fc.constant('apiKey' as const),
    in: fc.constantFrom('query', 'header', 'cookie'),
    name: fc.constantFrom('key', 'Key', 'X-API-Key', 'x-api-key'),
  }),
  fc.record({ type: fc.constant('http' as const), scheme: fc.constantFrom('basic', 'bearer') }),
  fc.constant({ type: 'mutualTLS' as const }),
)

/** Trees of leaves and alternatives. */
export const description: Arbitrary<Description> = fc.letrec<{ tree: Description }>((tie) => ({
  tree: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ _tag: fc.constant('Leaf' as const), scheme, challenge, ambient: fc.boolean() }),
    fc.record({ _tag: fc.constant('AnyOf' as const), members: fc.array(tie('tree'), { minLength: 1, maxLength: 3 }) }),
  ),
})).tree

// --- authenticators

/** The plan of one authenticator: its outcome, and whether it is sync or async. */
export interface Plan {
  readonly name: string
  readonly sent: boolean
  readonly late: boolean
  readonly ambient: boolean
  readonly answer: E.Either<AuthError, string> | { readonly throws: unknown }
}

/** One leaf, alternatives, or a change of the principal. */
type Shape = Plan | { readonly either: readonly [Shape, Shape] } | { readonly mapped: Shape }

export const plan: Arbitrary<Plan> = fc.record({
  name: fc.stringMatching(/^[a-z]{6}$/),
  sent: fc.boolean(),
  late: fc.boolean(),
  ambient: fc.boolean(),
  answer: fc.oneof(
    fc.string({ minLength: 1 }).map((principal) => E.right(principal)),
    singleError.map(({ challenge: _, ...error }) => E.left(error)),
    fc.constantFrom(new Error('hook'), 'text', null, undefined).map((throws) => ({ throws })),
  ),
})

/** Nested, so a law of three members covers any number. */
export const shape: Arbitrary<Shape> = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    plan,
    fc.record({ either: fc.tuple(tie('shape'), tie('shape')) }),
    fc.record({ mapped: tie('shape') }),
  ),
})).shape

/** Makes an authenticator. Its hook writes its name into `calls`. */
export const build = (of: Shape, calls: string[] = []): Authenticator<string> => {
  if ('either' in of) return altW(() => build(of.either[1], calls))(build(of.either[0], calls))
  if ('mapped' in of) return flatMap((principal: string) => `${principal}!`)(build(of.mapped, calls))
  const { name, sent, late, ambient, answer } = of
  const decide = () => {
    if ('throws' in answer) throw answer.throws
    return answer
  }
  return authenticator({
    scheme: { type: 'apiKey', in: 'header', name },
    challenge: (error) => Challenge.make(name, { error: error._tag }),
    ambient,
    extract: () => (sent ? O.some('credential') : O.none),
    authenticate: () => {
      calls.push(name)
      return late ? Promise.resolve().then(decide) : decide()
    },
  })
}

/** What an evaluation did: its verdict, and the hooks that were called, in order. */
export const observe = async (of: (calls: string[]) => Authenticator<unknown>, by: Request) => {
  const calls: string[] = []
  const made = of(calls)
  return { result: await made.evaluate(by), calls, description: readable(made.description) }
}

/** A description as data: challenge functions are called with every failure. */
export const readable = (of: Description): unknown => {
  if (of._tag === 'AnyOf' || of._tag === 'AllOf') return { ...of, members: of.members.map(readable) }
  if (of._tag !== 'Leaf') return { ...of, member: readable(of.member) }
  const { challenge: own, isSent, ...leaf } = of
  return {
    ...leaf,
    knowsIfSent: isSent !== undefined,
    challenge: typeof own === 'function' ? everyFailure.map((error) => own(error)) : own,
  }
}

const everyFailure: ReadonlyArray<AuthError> = [
  AuthError.absent,
  AuthError.malformed,
  AuthError.invalid,
  AuthError.expired,
  AuthError.forged,
  AuthError.insufficient(['read']),
  AuthError.throttled(2),
  AuthError.unavailable(1),
  AuthError.raised(null),
]

/** Alternatives of a list of authenticators, written by hand. */
export const folded = (members: readonly [Authenticator<string>, ...Authenticator<string>[]]): Authenticator<string> =>
  members.reduce((all, member) => altW(() => member)(all))
