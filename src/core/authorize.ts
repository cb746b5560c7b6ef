/** Conditions about a principal. They never decide about anonymous callers: if `a` is optional, write `optional(authorize(f)(a))`. */
import * as E from 'fp-ts/lib/Either.js'
import type { Request } from './Request.js'
import { andThen, toPromise, isThenable, failureOf } from './Result.js'
import * as AuthErrors from './AuthError.js'
import type { AuthError, NeededAuthentication } from './AuthError.js'
import { decideOf, fromFunction, isAuthenticator, wrapping, type Authenticator, type Halves } from './Authenticator.js'
import type { Finding, Finds } from './Exchange.js'
import type { Challenge } from './Challenge.js'
import { constantFailure, distinctScopes, withChallenges, noted, withScopes, admitsAnonymous } from './Description.js'
import type { Description, Scoped } from './Description.js'
import { deepFreeze } from './data.js'
import type { EndSource } from './ends.js'
import { evidenceOf } from './Evidence.js'
import { readersOf, type Granted } from './granted.js'
import { conditionName, functionName } from './functionName.js'
import * as is from './checks.js'
import { checkMember, checkHook, declareCondition, declareFactories, checkOptions, isScope } from './options.js'

type PrincipalDecision = (principal: never, request: Request, accepted?: ReadonlyArray<EndSource>) => unknown

interface PrincipalCondition {
  readonly caller: string
  /** The scopes that it demands; empty if a function decides. */
  readonly scopes: ReadonlyArray<string>
  readonly decidedBy?: string
  /** The function of the application that `decidedBy` names, unless the application has given it the name. */
  readonly f?: Function | undefined
  /** The function that decides about scopes, for the audit. */
  readonly by?: unknown
  /** How the user of the token must have authenticated. Otherwise it is a 401. */
  readonly authentication?: NeededAuthentication
  /** `accepted`: the credentials of the principal. A function of the application is not called with them. */
  readonly decide: PrincipalDecision
  readonly accepted?: true
}

export const scoped =
  (condition: PrincipalCondition) =>
  (self: Authenticator<unknown>): Authenticator<unknown> =>
    wrapping(`${condition.caller}(a)`, self, (member) => allowedOf(condition, member))

const allowedOf = (condition: PrincipalCondition, self: Authenticator<unknown>): Halves => {
  const { caller, scopes, decidedBy, f, by, authentication, decide, accepted } = condition
  const { description: member } = self
  checkDemanding(`${caller}(a)`, member)
  const authenticate = decideOf(self)
  const description = noted<Scoped>(
    { _tag: 'Scoped', member, scopes, ...(authentication !== undefined && { authentication }) },
    decidedBy === undefined ? { by } : { decidedBy, functions: f === undefined ? [] : [[decidedBy, f]] },
  )
  const all = distinctScopes([...scopesAround(member), ...scopes])
  const insufficient = constantFailure(
    description,
    authentication === undefined
      ? AuthErrors.insufficient(all.length > 0 ? all : undefined)
      : AuthErrors.insufficientAuthentication(authentication),
  )
  const naming = scopes.length === 0 ? unchangedFailure : offeringScopes(scopes)
  const failed = (error: unknown) => E.left(withChallenges(member, failureOf(error)))
  const verdict = (allowed: unknown, result: E.Right<unknown>): E.Either<AuthError, unknown> =>
    // `None`, a `Left` and a Task are truthy, so only `true` means yes
    allowed === true ? result : allowed ? failed(noBoolean(caller)) : insufficient
  return {
    description,
    decide: (attempt) =>
      andThen(authenticate(attempt), (result) => {
        if (E.isLeft(result)) return naming(result)
        try {
          // Safe: `self` puts the argument of `decide` on the right
          const principal = result.right as never
          const allowed =
            accepted === true
              ? decide(principal, attempt.request, evidenceOf(result).accepted)
              : decide(principal, attempt.request)
          return isThenable(allowed)
            ? toPromise(allowed).then((late) => verdict(late, result), failed)
            : verdict(allowed, result)
        } catch (error) {
          return failed(error)
        }
      }),
  }
}

const noBoolean = (caller: string): TypeError =>
  new TypeError(`${caller}: f must return true or false, or a promise of it`)

const unchangedFailure = <A>(result: A): A => result

// The scopes of the Scoped nodes directly above a member, the innermost first
const scopesAround = (description: Description): ReadonlyArray<string> =>
  description._tag === 'Scoped' ? [...scopesAround(description.member), ...description.scopes] : []

/** Adds these scopes to the challenges of a failure, so that a client knows which scopes to ask for. */
const offeringScopes = (scopes: ReadonlyArray<string>) => {
  // Most failures and all their challenges are constants of their authenticators, so each is made once
  const knownChallenges = new WeakMap<Challenge, Challenge>()
  const knownFailures = new WeakMap<AuthError, E.Left<AuthError>>()
  const challengeFor = (challenge: Challenge): Challenge => {
    const made = knownChallenges.get(challenge) ?? withScopes(challenge, scopes)
    knownChallenges.set(challenge, made)
    return made
  }
  const failureFor = (error: AuthError): AuthError => ({
    ...error,
    ...(error._tag === 'insufficient' && { scope: distinctScopes([...(error.scope ?? []), ...scopes]) }),
    ...(error.challenge !== undefined && { challenge: challengeFor(error.challenge) }),
    ...(error.branches !== undefined && { branches: error.branches.map(failureFor) }),
  })
  return (result: E.Left<AuthError>): E.Left<AuthError> => {
    // such a failure is answered without a challenge
    if (AuthErrors.stops(result.left)) return result
    const before = knownFailures.get(result.left)
    if (before !== undefined) return before
    const made: E.Left<AuthError> = deepFreeze({ _tag: 'Left', left: failureFor(result.left) })
    knownFailures.set(result.left, made)
    return made
  }
}

/** How `authorize` names its condition. */
export interface AuthorizeOptions {
  /**
   * The name of the condition in the audit and in the policy file, such as `'admin'`: at most 100 letters, digits, single blanks and
   * `$_.:/#-`. Default: the name of the function; without a name, a digest of its text.
   */
  readonly name?: string | undefined
}

/**
 * Calls `f` to decide whether the principal is allowed. `f` returns `true`, `false` or a promise of one of them. If it is a type
 * guard, it narrows the principal. A principal that is not allowed is `insufficient`, a 403. If `f` throws, or returns a truthy
 * value other than `true`, the failure is `raised`. Throws a TypeError for a function or a name that cannot work.
 *
 * @example
 * import { pipe } from 'fp-ts/lib/function.js'
 * import { authorize, httpBearer } from 'koa-with-auth'
 *
 * const user = httpBearer({
 *   authenticate: (_request, token) => token === 'supersecret' && { name: 'anna', role: 'editor' },
 * })
 * const editor = pipe(user, authorize(({ role }) => role === 'editor', { name: 'editor' }))
 */
export function authorize<A, B extends A>(
  f: (principal: A, request: Request) => principal is B,
  options?: AuthorizeOptions,
): (self: Authenticator<A>) => Authenticator<B>
export function authorize<A>(
  f: (principal: A, request: Request) => boolean | Promise<boolean>,
  options?: AuthorizeOptions,
  // in a pipe, `A` is inferred from `Authenticator<A>`; a condition on a wider type keeps the type `B` of the principal
): <B extends A, O = unknown>(self: Authenticator<B> & Authenticator<A> & Finds<O>) => Finding<Authenticator<B>, O>
export function authorize(
  f: PrincipalDecision,
  options: AuthorizeOptions = {},
): (self: Authenticator<unknown>) => Authenticator<unknown> {
  if (isAuthenticator(f))
    throw new TypeError('authorize(f) takes a function of the principal, not an authenticator; write authorize(f)(a)')
  checkHook('authorize(f)', f, 2)
  const { name } = checkOptions('authorize(f, options)', options, { name: is.maybe(conditionName) })
  const decidedBy = functionName(f, name)
  const condition = { caller: 'authorize(f)', scopes: [], decidedBy, f: name === undefined ? f : undefined, decide: f }
  return declareCondition('authorize', scoped(condition))
}

/** How `requireScopes` finds the scopes of a principal. */
export interface RequireScopesOptions<A> {
  /** Returns the scopes that were granted to the principal, sync or async. Left out: the scopes of the token or the key. */
  readonly granted: (principal: A, request: Request) => Granted | Promise<Granted>
}

/**
 * Requires that all these scopes were granted. Otherwise the failure is `insufficient`, for a bearer token with
 * `insufficient_scope` (RFC 6750 §3.1). The challenge of every 401 and 403 names them in `scope`, together with those of an inner
 * `requireScopes`. OpenAPI lists them. Throws a TypeError for an empty array, and for a string that cannot be a scope.
 *
 * Without `granted` it reads the scopes of the credential: the claims of `httpJwt` and `httpIntrospection`, also where their hook returned a
 * user of its own, and `scopes` of `apiKeys`. For other principals, such as after `map`, this is a TypeError when it is composed.
 *
 * @example
 * import { httpBearer, requireScopes, withAuth } from 'koa-with-auth'
 *
 * const token = httpBearer({ authenticate: (_request, token) => token === 'supersecret' && { scopes: ['read'] } })
 * const reading = withAuth(token, requireScopes(['read'], { granted: ({ scopes }) => scopes }))
 */
export function requireScopes(scopes: readonly [string, ...string[]]): <B>(self: Authenticator<B>) => Authenticator<B>
export function requireScopes<A>(
  scopes: readonly [string, ...string[]],
  options: RequireScopesOptions<A>,
): (self: Authenticator<A>) => Authenticator<A>
export function requireScopes(
  scopes: readonly [string, ...string[]],
  ...rest: readonly [options?: RequireScopesOptions<never>]
): (self: Authenticator<unknown>) => Authenticator<unknown> {
  const caller = 'requireScopes([...], { granted })'
  if (!Array.isArray(scopes) || scopes.length === 0)
    throw new TypeError(`${caller}: pass an array of at least one scope`)
  const wrong = scopes.findIndex((scope: unknown) => !isScope(scope))
  if (wrong >= 0) throw new TypeError(`${caller}: scope ${wrong + 1} must be printable ASCII without blanks, " and \\`)
  // `undefined` may come from a mistake in the order of imports
  const given =
    rest.length === 0
      ? undefined
      : checkOptions<RequireScopesOptions<never>>('requireScopes([...], options)', rest[0]!, { granted: is.hook(2) })
          .granted
  const demanded: ReadonlyArray<string> = [...scopes]
  const suffices = (answer: unknown): boolean => {
    const found = grantedScopes(answer)
    return demanded.every((scope) => found.has(scope))
  }
  const condition = { caller: 'requireScopes(...)', scopes: demanded }
  if (given !== undefined) {
    const decide = (principal: never, request: Request): boolean | Promise<boolean> => {
      const answer: unknown = given(principal, request)
      return isThenable(answer) ? toPromise(answer).then(suffices) : suffices(answer)
    }
    return declareCondition('requireScopes', scoped({ ...condition, by: given, decide }))
  }
  return declareCondition('requireScopes', (self: Authenticator<unknown>) => {
    checkMember('requireScopes(...)(a)', self)
    const authenticator = fromFunction(self)
    checkDemanding('requireScopes(...)(a)', authenticator.description)
    const readers = readersOf(authenticator)
    if (readers.length === 0) throw noScopesSaid()
    // a token says them itself; otherwise the principal does, of a key
    const decide = (principal: never, _request: Request, accepted: ReadonlyArray<EndSource> = []) => {
      const token = accepted.findLast(({ scopes: said }) => said !== undefined)
      return suffices(token?.scopes ?? readers.map((read) => read(principal)).find((said) => said !== undefined))
    }
    return scoped({ ...condition, by: 'the credential', decide, accepted: true })(authenticator)
  })
}

const noScopesSaid = (): TypeError =>
  new TypeError(
    'requireScopes([...])(a): a does not say which scopes were granted; write requireScopes([...], { granted: (principal) => ... }). Only httpJwt, httpIntrospection and keys of apiKeys say it, and not after map or flatMap',
  )

const grantedScopes = (granted: unknown): ReadonlySet<unknown> => {
  if (granted === undefined || granted === null) return new Set()
  if (typeof granted === 'string') return new Set(granted.split(' '))
  if (Array.isArray(granted) || granted instanceof Set) return new Set(granted)
  throw new TypeError('requireScopes: granted must return an array, a set or a string of scopes')
}

declareFactories({ authorize, requireScopes })

/** @internal Throws a TypeError if anonymous callers pass, because they cannot be allowed anything. */
export const checkDemanding = (caller: string, description: Description): void => {
  if (admitsAnonymous(description))
    throw new TypeError(`${caller}: a is optional; write optional(${caller.slice(0, -3)}(a))`)
}
