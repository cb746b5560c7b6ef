/**
 * The guard: Koa middleware that enforces one requirement on the operation after it.
 *
 * It checks that it runs in its operation, and that no header line was dropped. It calls the authenticator, undoes what
 * a hook changed on the response, and admits or refuses. `next()` is called after the Either is folded, so a handler
 * that fails never looks like failed authentication. The guard is in the layer of its route, so no path is matched
 * again.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Next } from 'koa'
import type { Authenticator } from '../core/Authenticator.js'
import type { AuthError } from '../core/AuthError.js'
import { decisions } from '../core/events/channels.js'
import { httpStatusOf } from '../core/ErrorMapper.js'
import { handlerOf } from '../core/ExceptionHandler.js'
import { inTime } from '../core/outage.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { sourceOf } from '../core/session/SessionSource.js'
import { settingsOf } from '../core/Settings.js'
import { runBehind } from './behindGuard.js'
import { debugDecisions, debugged } from './debugging.js'
import { answerException, markThrown, serverError } from './exceptions.js'
import { markGuard, type Marked, type Origin, type Step } from './guardMark.js'
import { mayBeCutOff } from './headerLimit.js'
import { enterOperation } from './placement.js'
import { runAs } from './principal.js'
import { respondFailure, respondUnread } from './respond.js'
import { applyPolicy, headerPolicyOf, type HeaderPolicy } from './responseHeaders.js'
import { restore, take } from './ResponseSnapshot.js'
import { watching, watchPublic } from './watching.js'

/** Middleware that enforces a requirement. */
export type Enforce = (ctx: Context, next: Next) => Promise<unknown>

/** Middleware for a requirement, and what runs after it. */
export const enforce = (requirement: Requirement, { levels, then = [] }: Origin): Enforce => {
  const authenticator = effective(requirement)
  return debugged(authenticator === undefined ? admitAnyone(levels) : enforceAuthenticator(authenticator, levels, then))
}

/** A guard for the layer of a route; it guards no routers. */
export const guardFor = (requirement: Requirement, origin: Origin): Enforce & Marked => {
  const run = enforce(requirement, origin)
  return markGuard((ctx: Context, next: Next) => run(ctx, next), requirement, origin)
}

const admitAnyone =
  (levels: ReadonlyArray<string>): Enforce =>
  (ctx, next) => {
    const isNested = enterOperation(ctx)
    if (decisions.hasSubscribers) watchPublic(ctx, levels)
    return runAs(ctx, undefined, isNested, nextOf(ctx, next))
  }

const enforceAuthenticator = (
  authenticator: Authenticator<unknown>,
  levels: ReadonlyArray<string>,
  then: ReadonlyArray<Step>,
): Enforce => {
  const decide = deciding(authenticator, levels)
  if (then.length === 0) return (ctx, next) => decide(ctx, next, enterOperation(ctx))
  const run = runBehind(then)
  return (ctx, next) => decide(ctx, () => run(ctx, next), enterOperation(ctx))
}

// The status of a request that is refused before it is read; `undefined` for one that is read
type Unread = (ctx: Context) => number | undefined

const cutOff: Unread = (ctx) => (mayBeCutOff(ctx) ? 431 : undefined)

/**
 * The decision of a guard without the check of its place. Upgrades use it, too. `isNested`: whether a guard around this
 * one has let the caller in. `unread` can refuse further requests before they are read.
 */
export const deciding = (
  authenticator: Authenticator<unknown>,
  levels: ReadonlyArray<string>,
  unread: Unread = () => undefined,
) => {
  const policy = headerPolicyOf(authenticator.description)
  const watch = watching(authenticator, levels)
  debugDecisions()

  const admit = (ctx: Context, next: Next, isNested: boolean, principal: unknown): Promise<unknown> => {
    applyPolicy(ctx, policy, policy.whenAdmitted)
    return runAs(ctx, principal, isNested, nextOf(ctx, next))
  }

  const refuse = (ctx: Context, isNested: boolean, error: AuthError): Promise<unknown> => {
    applyPolicy(ctx, policy, policy.whenRefused)
    return runAs(ctx, undefined, isNested, () => answerFailure(ctx, error, policy))
  }

  const conclude = (ctx: Context, next: Next, isNested: boolean, result: Result): Promise<unknown> => {
    if (E.isLeft(result)) return refuse(ctx, isNested, result.left)
    if (!E.isRight(result)) throw new TypeError('an authenticator must return an Either')
    return admit(ctx, next, isNested, result.right)
  }

  return (ctx: Context, next: Next, isNested: boolean): Promise<unknown> => {
    const begun = decisions.hasSubscribers ? watch.begin(ctx) : undefined
    const status = cutOff(ctx) ?? unread(ctx)
    if (status !== undefined) {
      if (begun !== undefined) watch.refused(ctx, begun)
      applyPolicy(ctx, policy, policy.whenRefused)
      return Promise.resolve(respondUnread(ctx, status))
    }
    const before = take(ctx.response)
    const result = begun === undefined ? authenticator.evaluate(ctx.request) : watch.evaluate(ctx.request)
    if (!(result instanceof Promise)) {
      if (begun !== undefined) watch.settled(ctx, begun, result)
      restore(ctx.response, before)
      return conclude(ctx, next, isNested, result)
    }
    return inTime(result, settingsOf(ctx.request).timeout).then((late) => {
      if (begun !== undefined) watch.settled(ctx, begun, late)
      restore(ctx.response, before)
      return conclude(ctx, next, isNested, late)
    })
  }
}

type Result = E.Either<AuthError, unknown>

// An exception of a hook: its handler answers. Without one, an http-errors 4xx keeps its status, any other is Koa's 500
const answerFailure = async (ctx: Context, error: AuthError, policy: HeaderPolicy): Promise<void> => {
  const settings = settingsOf(ctx.request)
  if (error._tag === 'raised') {
    if (handlerOf(settings.exceptionHandlers, error.error) !== undefined) {
      return answerException(ctx, error.error, settings)
    }
    if (httpStatusOf(error.error) === undefined) throw serverError(error.error)
  }
  try {
    respondFailure(ctx, error, settings, policy)
  } catch (raised) {
    throw serverError(raised)
  }
}

// Middleware above may answer the exception before the sessions see it, so it is noted here for them
const nextOf = (ctx: Context, next: Next): Next =>
  sourceOf(ctx) === undefined
    ? next
    : () =>
        next().catch((error: unknown) => {
          markThrown(ctx)
          throw error
        })
