/** Conditions and options beside an authenticator: `withAuth(a, f, g, options)` guards with `pipe(a, f, g)`, composed once. */
import { authenticatorOf } from '../core/lists.js'
import { isAuthenticator, type Authenticator, type AuthenticatorLike, type PrincipalOf } from '../core/Authenticator.js'
import { checkHook, checkMember, isAsync, isCondition, typeName } from '../core/options.js'
import type { Finds, ObjectsOf } from '../core/Exchange.js'
import * as Requirement from '../core/Requirement.js'
import type { AlsoGuard, AlsoPrincipal, Guard } from './AuthRouter.js'
import { isGuard } from './layer.js'

export type Members = readonly [AuthenticatorLike, ...AuthenticatorLike[]]

/** The first argument before conditions: an authenticator, any function of the request, a list of them, or `also(a)`. */
export type Guarding = AuthenticatorLike | Members | Requirement.Also

export type PrincipalAsked<M> =
  M extends Requirement.Also<infer P> ? P : M extends Members ? PrincipalOf<M[number]> : PrincipalOf<M>

/** The objects that the first condition finds there. Of a list, those that each member finds. */
export type ObjectsAsked<M> = M extends Members ? ObjectsOf<M[number]> : ObjectsOf<M>

/** A function between authenticators, as `authorize(f)` returns. `O`: the objects that were found before it; `R`: those after it. */
export type Condition<A, B, O = unknown, R = unknown> = (a: Authenticator<A> & Finds<O>) => Authenticator<B> & Finds<R>

export type PrincipalWith<M, P> = M extends Requirement.Also ? AlsoPrincipal<unknown, P> : P

export type GuardWith<M, P, O = unknown> = M extends Requirement.Also
  ? AlsoGuard<P, ObjectsAsked<M> & O>
  : Guard<P, ObjectsAsked<M> & O>

type Caller = 'withAuth' | 'guardApp'

/**
 * Composes `auth` and the conditions, and finds the options: a last argument that is not a function. Throws a TypeError for `undefined`
 * anywhere, for `null` with conditions, and for a value that is no condition.
 */
export const composed = (
  caller: Caller,
  auth: unknown,
  rest: ReadonlyArray<unknown>,
): { readonly auth: unknown; readonly options: unknown } => {
  const missing = rest.findIndex((one) => one === undefined)
  if (missing >= 0) {
    throw new TypeError(`${caller}: argument ${missing + 2} is undefined; is it imported before it is defined?`)
  }
  const last = rest.at(-1)
  const hasOptions = rest.length > 0 && typeof last !== 'function'
  const conditions = hasOptions ? rest.slice(0, -1) : rest
  const options = hasOptions ? last : undefined
  if (conditions.length === 0) return { auth, options }
  if (auth === null) throw new TypeError(`${caller}(null, ...): a public operation takes no conditions`)
  if (typeof auth === 'function') checkMember(`${caller}(...)`, auth)
  for (const [at, condition] of conditions.entries()) checkCondition(caller, condition, at + 2)
  // Safe: each was checked to be a function of one parameter, and its result is checked
  const all = conditions as ReadonlyArray<(a: Authenticator<unknown>) => unknown>
  const from = (first: Authenticator<unknown>) =>
    all.reduce((before, condition, at) => appliedCondition(caller, condition, before, at + 2), first)
  if (!Requirement.isAlso(auth)) return { auth: from(authenticatorOf(caller, auth)), options }
  Requirement.checkAlso(`${caller}(also(...))`, auth)
  const { authenticators } = auth
  // Safe: `checkAlso` has seen at least one
  const own = from(authenticators.at(-1)!)
  return { auth: { ...auth, authenticators: [...authenticators.slice(0, -1), own] }, options }
}

const conditionFix = 'a condition is the result of authorize(f) or requireScopes([...]); a handler goes after the guard'

const checkCondition = (caller: Caller, condition: unknown, position: number): void => {
  const where = `${caller}: argument ${position}`
  if (isGuard(condition)) throw new TypeError(`${where} is a guard, not a condition; pass its authenticator in a list`)
  if (isAuthenticator(condition)) {
    throw new TypeError(
      `${where} is an authenticator, not a condition; write ${caller}([a, b]), or ${caller}(allOf([a, b])) if both must pass`,
    )
  }
  // the result of `throttled(options)` is marked, too, because it is no hook
  if (typeof condition === 'function' && isCondition(condition)) return
  checkHook(where, condition, 1, conditionFix)
  if (isAsync(condition)) throw new TypeError(`${where} is an async function; ${conditionFix}`)
}

// A handler in its place meets an authenticator where it expects a context. Its own exception names no place, as errors of conditions do
const appliedCondition = (
  caller: Caller,
  condition: (a: Authenticator<unknown>) => unknown,
  before: Authenticator<unknown>,
  position: number,
): Authenticator<unknown> => {
  const where = `${caller}: argument ${position}`
  let result: unknown
  try {
    result = condition(before)
  } catch (error) {
    const isUnclear =
      (error instanceof TypeError || error instanceof ReferenceError) && !/^[\w.]+[(:]/.test(error.message)
    if (!isUnclear) throw error
    throw new TypeError(`${where} is no condition, or fails: ${error.message}; ${conditionFix}`, { cause: error })
  }
  if (isAuthenticator(result)) return result
  throw new TypeError(`${where} returned ${typeName(result)}, not an authenticator; ${conditionFix}`)
}
