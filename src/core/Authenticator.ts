/**
 * What an authenticator is, and how one is made.
 *
 * An authenticator is a fp-ts `ReaderTaskEither<Request, AuthError, P>`: a function from a request to a task, which results in
 * a failure or a principal. It also has two properties:
 *
 * - `description`: what it demands, as data. OpenAPI, the challenges and the audit read it.
 * - `evaluate`: makes the same decision, sync while nothing in it is async. The guard calls it.
 *
 * It reads the request and never writes the response. It never throws, and its promise never rejects. Laws
 * (spec/core/Authenticator.law.spec.ts): `alt` is associative; the first that passes wins, and no later one is called; none is
 * tried after `throttled`, `unavailable` and `raised`; `map` keeps identity and composition; calling and evaluating agree.
 *
 * @example
 * import * as E from 'fp-ts/lib/Either.js'
 * import * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { alt, apiKeyHeader, httpBearer, map } from 'koa-with-auth'
 *
 * const bearer = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { user: 'anna' } })
 * const key = apiKeyHeader({ paramName: 'X-API-Key', authenticate: (_request, key) => key === 'k1' && { user: 'cron' } })
 *
 * const either = pipe(bearer, alt(() => key), map(({ user }) => user)) // an Authenticator<string>
 * const plain = pipe(bearer, RTE.map(({ user }) => user)) // fp-ts's own: a bare ReaderTaskEither<Request, AuthError, string>
 */
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import type * as RTE from 'fp-ts/lib/ReaderTaskEither.js'
import type * as t from 'io-ts'
import type { Request } from 'koa'
import { andThen, type Evaluation } from './Evaluation.js'
import { fromAnswer } from './fromAnswer.js'
import type { PrincipalFromAnswer } from './PrincipalFromAnswer.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError } from './AuthError.js'
import { make as challengeOf } from './Challenge.js'
import { concluding } from './concluding.js'
import { AnyCredentials } from './Credentials.js'
import * as Description from './Description.js'
import { deepFreeze, frozenCopy } from './freeze.js'
import { checkKind, type AuthenticatorOptions } from './AuthenticatorOptions.js'
import { declareFactory } from './hooks.js'
import { checkMember } from './members.js'
import { decodedAhead, readBy } from './Reading.js'
import { failureOf } from './UnavailableError.js'

// -------------------------------------------------------------------------------------
// model
// -------------------------------------------------------------------------------------

/** A function that decides who a request acts for, with a description of what it demands. */
export interface Authenticator<P> extends RTE.ReaderTaskEither<Request, AuthError, P> {
  /** What it demands. */
  readonly description: Description.Description
  /** Makes the decision of the call, sync if nothing in it is async. Never throws, and its promise never rejects. */
  readonly evaluate: (request: Request) => Evaluation<P>
}

/** What counts as an authenticator: an authenticator, or any function of the request (spec 5.1.3), such as a bare RTE. */
export type AuthenticatorLike = (request: Request) => unknown

/** The principal of a member. */
export type PrincipalOf<M> =
  M extends Authenticator<infer P> ? P : M extends (request: Request) => infer R ? PrincipalFromAnswer<R> : never

// -------------------------------------------------------------------------------------
// constructors
// -------------------------------------------------------------------------------------

const MAX_LENGTH = 8192

// io-ts would keep the credential in this context, and nothing reads it
const noContext: t.Context = []
const tooLong: E.Either<unknown, never> = E.left('too long')

/** @internal The key of an authenticator's `Rebuild`. Only an authenticator that is made of others has one. */
export const inside: unique symbol = Symbol.for('koa-with-auth/inside')

/** @internal Wraps one of the authenticators that another one is made of. */
export type Wrap = (member: Authenticator<unknown>) => Authenticator<unknown>

type Rebuild = (wrap: Wrap) => Authenticator<unknown>

/** @internal Makes an authenticator again, each of its members wrapped; `undefined` if it is not made of others. */
export const rebuildOf = (self: object): Rebuild | undefined =>
  // Safe: only `make` writes it
  (self as { readonly [inside]?: Rebuild })[inside]

/**
 * @internal Makes an authenticator. `evaluate` must never throw, and its promise must never reject. An authenticator that is
 * made of others passes `rebuild`.
 */
export const make = <P>(
  description: Description.Description,
  evaluate: Authenticator<P>['evaluate'],
  rebuild?: Rebuild,
): Authenticator<P> =>
  Object.assign((request: Request) => async () => evaluate(request), {
    description: deepFreeze(description),
    evaluate,
    ...(rebuild !== undefined && { [inside]: rebuild }),
  })

/** Whether a value is an authenticator with its description. */
export const isAuthenticator = (u: unknown): u is Authenticator<unknown> =>
  typeof u === 'function' && 'evaluate' in u && typeof u.evaluate === 'function' && 'description' in u

/**
 * Makes an authenticator for one kind of credential: it extracts, decodes, and calls the hook. Each step may fail. An ambient
 * credential that another site made the browser send is `forged`. Throws a TypeError for options that cannot work.
 *
 * @example
 * import { authenticator, Challenge, constantTimeEqual, fromHeader, HeaderKey } from 'koa-with-auth'
 *
 * const webhook = authenticator({
 *   scheme: { type: 'apiKey', in: 'header', name: 'X-Hook-Secret' },
 *   challenge: Challenge.make('Webhook'),
 *   ambient: false,
 *   extract: fromHeader('X-Hook-Secret'),
 *   credentials: HeaderKey,
 *   authenticate: (_request, secret) => constantTimeEqual(secret, 's3cret') && { sender: 'shop' },
 * })
 */
export const authenticator = <X, R, C = Exclude<X, ReadonlyArray<unknown>>>(
  options: AuthenticatorOptions<X, C, R>,
): Authenticator<PrincipalFromAnswer<R>> => ofKind(checkKind(options))

// The options are checked
const ofKind = <X, C, R>(kind: AuthenticatorOptions<X, C, R>): Authenticator<PrincipalFromAnswer<R>> => {
  const { scheme, challenge, ambient, extract, maxLength = MAX_LENGTH, authenticate } = kind
  // Safe: `AnyCredentials` lets through exactly what the default of `C` says
  const credentials = kind.credentials ?? (AnyCredentials as t.Decoder<unknown, C>)
  const decode = (sent: unknown): E.Either<unknown, C> =>
    typeof sent === 'string' && sent.length > maxLength ? tooLong : credentials.validate(sent, noContext)
  const leaf: Description.Leaf = {
    _tag: 'Leaf',
    scheme: frozenCopy(scheme),
    ...(kind.schemeFor !== undefined && { schemeFor: kind.schemeFor }),
    ...(kind.schemeName !== undefined && { schemeName: kind.schemeName }),
    ...(kind.demands !== undefined && { demands: kind.demands }),
    challenge: frozenCopy(challenge),
    ambient,
    ...(extract !== anything && { isSent: (request) => O.isSome(extract(request)) }),
  }
  if (extract !== anything) readBy(leaf, { extract, decode })
  const conclude = concluding(leaf)
  const absent = Description.constantFailure(leaf, AuthErrors.absent)
  const malformed = Description.constantFailure(leaf, AuthErrors.malformed)
  const evaluate = (request: Request): Evaluation<unknown> => {
    try {
      const sent = extract(request)
      if (O.isNone(sent)) return absent
      // Safe: the same `decode` returned it for the same value
      const decoded =
        (decodedAhead(request, decode, sent.value) as E.Either<unknown, C> | undefined) ?? decode(sent.value)
      if (E.isLeft(decoded)) return malformed
      return andThen(fromAnswer(authenticate(request, decoded.right)), (result) => conclude(result, request))
    } catch (error) {
      return E.left(Description.explained(leaf, failureOf(error)))
    }
  }
  // Safe: `fromAnswer` lets through exactly what `PrincipalFromAnswer` computes
  return make(leaf, evaluate) as Authenticator<PrincipalFromAnswer<R>>
}

const anything = () => O.some(true)

// What a function reads is unknown, so its credential counts as ambient. No browser opens a prompt for this scheme
const custom = { challenge: challengeOf('Custom'), ambient: true, extract: anything }

/**
 * Makes an authenticator of any function of the request, such as a bare ReaderTaskEither. An authenticator is returned
 * unchanged. Throws a TypeError for anything else.
 *
 * @example
 * import { fromFunction } from 'koa-with-auth'
 *
 * const local = fromFunction((request) => request.socket.remoteAddress === '127.0.0.1' && { from: 'here' })
 */
export const fromFunction = <M extends AuthenticatorLike>(member: M): Authenticator<PrincipalOf<M>> => {
  checkMember('fromFunction', member)
  // Safe, both: `PrincipalOf` is an authenticator's own principal, or else what `PrincipalFromAnswer` computes
  if (isAuthenticator(member)) return member as Authenticator<PrincipalOf<M>>
  return ofKind({ ...custom, authenticate: (request) => member(request) }) as Authenticator<PrincipalOf<M>>
}

declareFactory('authenticator', authenticator)
declareFactory('fromFunction', fromFunction)
