/**
 * The guard: Koa middleware that enforces one requirement on the operation after it.
 *
 * It checks that it runs in its operation, that no header line was dropped, and that there is one Host. It calls the
 * authenticator, undoes the changes of a hook on the response, and admits or refuses.
 *
 * The objects that `owned` has found are in `ctx.request.objects`, as long as the operation runs.
 */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Middleware, Next } from 'koa'
import type { AuthError } from '../core/AuthError.js'
import { effective, type Requirement } from '../core/Requirement.js'
import { decideOf, type Authenticator } from '../core/Authenticator.js'
import { evidenceOf, nothingSent, type Evidence, type Objects } from '../core/Evidence.js'
import { exchangeOf, showObjects, Attempt, type Exchange, type PathParameters } from '../core/Exchange.js'
import { likeAnyOther, withCode } from '../core/data.js'
import { answeredBy, handlerOf, httpStatusOf, type Settings } from '../core/Settings.js'
import { hasTwoHosts } from '../core/RequestFields.js'
import { decisions } from '../core/events.js'
import { concludedInTime } from '../core/outage.js'
import { lateGuardAt, warnOfLateSettings } from './misplaced.js'
import { checkObjects, matchedLayers, parameterReaderOf, runningLayer } from './parameters.js'
import { answerGone, isGone, isGoneExpected } from './gone.js'
import { markGuard, type GuardProperties, type GuardSource, type ThenMiddleware } from './layer.js'
import { respondEarly, respondException, respondFailure, restore, take } from './respond.js'
import { applyHeaders, guardHeadersOf, type GuardHeaders } from './responseHeaders.js'
import { routerTooOld } from './router.js'
import { answerable, answerException, markThrown, serverError } from './settings.js'
import { decisionRecorder, recordPublic } from './watching.js'

// Node's own limit, if the server sets none
const MAX_HEADER_LINES = 1000

/**
 * The status of a request whose header lines decide nothing. Node drops the lines after its limit without an error, and a proxy
 * appends its own lines last. So a request with as many lines as Node keeps may have lost some that matter for the decision
 * 431. A limit of 0 is none. Node keeps the first of two Hosts, and a proxy may have read the other (B-11): 400.
 */
const statusOfHead = ({ req, request }: Context): number | undefined => {
  // Safe: Node puts the server on every socket that it accepted
  const { server } = req.socket as Socket & { readonly server?: Server | null }
  const limit = server?.maxHeadersCount ?? MAX_HEADER_LINES
  if (limit !== 0 && req.rawHeaders.length >= 2 * limit) return 431
  return hasTwoHosts(request) ? 400 : undefined
}

/**
 * Where a guard can be, for messages: at most one guard per operation, between the path and the handler. Everywhere
 * else it is refused. If possible, it throws when it is written. Otherwise each request is a 500, and its error names
 * the fix. A guard that runs in the wrong place never lets a request through.
 */
export const fix = 'write router.get(path, withAuth(a), handler), or guard the whole router: withAuth(a)(router)'

const wrapped =
  'a tracer that wraps functions and drops their properties looks the same: let it skip those that have the property Symbol.for("koa-with-auth/guard")'

const misplaced = (message: string): Error => withCode(new Error(message), 'ERR_GUARD_MISPLACED')

const runsOutside = (): never => {
  throw misplaced(`withAuth(a) runs outside of an operation; ${fix}`)
}

// Until its first request is through, a guard looks for guards and settings in a wrong place
const recordReader = (): ((ctx: Context) => Exchange) => {
  let isFirst = true
  return (ctx) => {
    // `router.param` calls a guard with a string
    const exchange = typeof ctx === 'object' ? exchangeOf(ctx) : runsOutside()
    if (isFirst) {
      warnOfLateSettings(ctx)
      const late = lateGuardAt(ctx)
      if (late !== undefined) throw misplaced(late)
      for (const { stack } of matchedLayers(ctx)) likeAnyOther(stack)
      isFirst = false
    }
    return exchange
  }
}

/**
 * Checks that a guard runs in the layer of a route, as the first guard in it, and throws otherwise. Returns whether a guard of
 * another layer ran before in this request.
 */
const enterOperation = (ctx: Context, exchange: Exchange): boolean => {
  if (runningLayer(ctx) === undefined) {
    const isRouted = matchedLayers(ctx).some(({ methods }) => methods.includes(ctx.method))
    if (isRouted && ctx['routerPath'] === undefined) throw misplaced(`withAuth(a): ${routerTooOld}`)
    return runsOutside()
  }
  // The router makes a new array of captures for every layer that it runs, so it identifies the layer that runs
  const captures: unknown = ctx['captures']
  const before = exchange.captures
  if (before === captures) {
    throw misplaced(`withAuth(...) is in one operation twice; remove one (${wrapped})`)
  }
  exchange.captures = captures
  return before !== undefined
}

type Enforce = (ctx: Context, next: Next) => Promise<unknown>

export const enforce = (requirement: Requirement, { levels, then = [] }: GuardSource): Enforce => {
  const authenticator = effective(requirement)
  return authenticator === undefined ? admitAnyone(levels) : enforceAuthenticator(authenticator, levels, then)
}

/** A guard for the layer of a route; it guards no routers. */
export const guardFor = (requirement: Requirement, origin: GuardSource): Enforce & GuardProperties =>
  markGuard(enforce(requirement, origin), requirement, origin)

const admitAnyone = (levels: ReadonlyArray<string>): Enforce => {
  const read = recordReader()
  return (ctx, next) => {
    const exchange = read(ctx)
    const isNested = enterOperation(ctx, exchange)
    if (decisions.hasSubscribers) recordPublic(ctx, levels)
    return runAs(ctx, exchange, undefined, nothingSent, isNested, asOperation(ctx, exchange, next))
  }
}

const enforceAuthenticator = (
  authenticator: Authenticator<unknown>,
  levels: ReadonlyArray<string>,
  then: ReadonlyArray<ThenMiddleware>,
): Enforce => {
  const decide = deciding(authenticator, levels)
  const read = recordReader()
  const parametersOf = parameterReaderOf(authenticator.description)
  const behind = then.length === 0 ? undefined : afterGuard(then)
  const { whenRefused } = guardHeadersOf(authenticator.description)
  return (ctx, next) => {
    const exchange = read(ctx)
    const run = behind === undefined ? next : behind(ctx, next)
    const isNested = enterOperation(ctx, exchange)
    return decide(ctx, exchange, asOperation(ctx, exchange, run, whenRefused), isNested, parametersOf?.(ctx))
  }
}

const ofApplication = ['application']

export const applicationGuard = (authenticator: Authenticator<unknown>, requirement: Requirement): Middleware => {
  const decide = deciding(authenticator, ofApplication)
  const run = (ctx: Context, next: Next): Promise<unknown> => {
    const exchange = exchangeOf(ctx)
    // guards of operations inside see that this guard has let the caller in
    exchange.captures = ofApplication
    return decide(ctx, exchange, notingErrors(ctx, next), false)
  }
  return markGuard(run, requirement, { levels: ofApplication })
}

// Functions of the application are no operation: one may answer the exception of another function unseen
const notingErrors =
  (ctx: Context, next: Next): Next =>
  () =>
    next().catch((error: unknown) => {
      markThrown(ctx)
      throw error
    })

type Decide = (
  ctx: Context,
  exchange: Exchange,
  next: Next,
  isNested: boolean,
  parameters?: PathParameters,
) => Promise<unknown>

/**
 * The decision of a guard without the check of its place. Upgrades use it, too. `isNested`: whether a guard around it
 * has let the caller in. `refuseEarly` returns the status of a request that is refused before it is read. `parameters`: those of
 * the path that `owned` reads.
 */
export const deciding = (
  authenticator: Authenticator<unknown>,
  levels: ReadonlyArray<string>,
  refuseEarly?: (ctx: Context) => number | undefined,
): Decide => {
  checkObjects(authenticator.description)
  const decide = decideOf(authenticator)
  const recorder = decisionRecorder(authenticator, levels)
  const self: Deciding = { ...guardHeadersOf(authenticator.description), recorder }
  return (ctx, exchange, next, isNested, parameters) => {
    const begun = decisions.hasSubscribers ? recorder.begin(ctx, parameters) : undefined
    // the guard around it has read the same head
    const status = (isNested ? undefined : statusOfHead(ctx)) ?? refuseEarly?.(ctx)
    if (status !== undefined) return respondUnread(self, ctx, exchange, status, begun)
    const before = take(ctx.response)
    const attempt = begun?.attempt ?? new Attempt(ctx.request, parameters)
    exchange.attempt = attempt
    const result = begun === undefined ? decide(attempt) : recorder.evaluate(begun)
    if (result instanceof Promise) return proceedLater(self, ctx, exchange, next, isNested, result, before, begun)
    const done = proceed(self, ctx, exchange, next, isNested, result, before, begun)
    return done instanceof Promise ? done : Promise.resolve(done)
  }
}

type Recorder = ReturnType<typeof decisionRecorder>
type Begun = ReturnType<Recorder['begin']> | undefined

interface Deciding extends ReturnType<typeof guardHeadersOf> {
  readonly recorder: Recorder
}

const respondUnread = (self: Deciding, ctx: Context, exchange: Exchange, status: number, begun: Begun) => {
  if (begun !== undefined) self.recorder.refused(ctx, begun)
  applyHeaders(ctx, exchange, self.whenRefused)
  return Promise.resolve(respondEarly(ctx, status))
}

const proceed = (
  self: Deciding,
  ctx: Context,
  exchange: Exchange,
  next: Next,
  isNested: boolean,
  result: Result,
  before: ReturnType<typeof take>,
  begun: Begun,
): Promise<unknown> | void => {
  const grounds = E.isRight(result) ? evidenceOf(result) : nothingSent
  // A charge is asynchronous, so it makes a late result, which has no charges any more
  if (grounds.charges.length > 0 && exchange.attempt?.isUncounted !== true)
    return proceedLater(self, ctx, exchange, next, isNested, Promise.resolve(result), before, begun)
  if (begun !== undefined) self.recorder.settled(ctx, begun, result)
  restore(ctx.response, before)
  if (E.isLeft(result)) return refuse(self, ctx, exchange, isNested, result.left)
  if (!E.isRight(result)) throw new TypeError('an authenticator must return an Either')
  applyHeaders(ctx, exchange, self.whenAdmitted)
  return runAs(ctx, exchange, result.right, grounds, isNested, concluding(ctx, exchange, next))
}

// These two apart: a function whose parameters a closure reads keeps them on the heap, also if it makes no closure
const proceedLater = (
  self: Deciding,
  ctx: Context,
  exchange: Exchange,
  next: Next,
  isNested: boolean,
  result: Promise<Result>,
  ...rest: readonly [before: ReturnType<typeof take>, begun: Begun]
) =>
  concludedInTime(
    result,
    exchange.settings.timeout,
    (late) => proceed(self, ctx, exchange, next, isNested, late, ...rest),
    exchange.attempt,
  )

const refuse = ({ whenRefused }: Deciding, ctx: Context, exchange: Exchange, isNested: boolean, error: AuthError) => {
  applyHeaders(ctx, exchange, whenRefused)
  // a refused request has none, also if some were found, and costs nothing, also if a guard above has let it in
  showObjects(ctx.request, undefined)
  const { charged } = exchange
  if (charged !== undefined) exchange.charged = undefined
  charged?.forEach((takeBack) => takeBack())
  const answer = () => answerFailure(ctx, exchange.settings, error, whenRefused)
  return runAs(ctx, exchange, undefined, nothingSent, isNested, concluding(ctx, exchange, answer))
}

// Some authenticators need the outcome before the response is sent, because the client may retry at once
const concluding = <A extends Promise<unknown> | void>(ctx: Context, exchange: Exchange, run: () => A) =>
  exchange.outcomes === undefined ? run : outcomeOf(ctx, exchange, run)

const outcomeOf =
  <A>(ctx: Context, exchange: Exchange, run: () => A) =>
  async (): Promise<Awaited<A>> => {
    let isDone = false
    try {
      const result = await run()
      isDone = ctx.status < 300
      return result
    } finally {
      const { outcomes = [] } = exchange
      exchange.outcomes = undefined
      await Promise.all(outcomes.map((tell) => tell(isDone)))
    }
  }

type Result = E.Either<AuthError, unknown>

// An exception of a hook: its handler answers. Without one, an http-errors 4xx keeps its status, any other is Koa's 500
const answerFailure = (
  ctx: Context,
  settings: Settings,
  error: AuthError,
  guardHeaders: GuardHeaders,
): void | Promise<void> => {
  if (error._tag === 'raised') {
    const answered = answeredBy(error.error)
    if (answered !== undefined) return respondException(ctx, answered, true)
    if (handlerOf(settings.exceptionHandlers, error.error) !== undefined) {
      return answerException(ctx, error.error, settings)
    }
    if (httpStatusOf(error.error) === undefined) throw serverError(error.error)
  }
  try {
    return respondFailure(ctx, error, settings, guardHeaders)?.catch((raised: unknown) => {
      throw serverError(raised)
    })
  } catch (raised) {
    throw serverError(raised)
  }
}

// The functions of an operation. Signing in and out is possible only there, because middleware above may answer an exception
// before the sessions see it, so it is noted here for them
const asOperation = (ctx: Context, exchange: Exchange, next: Next, whenRefused?: GuardHeaders): Next =>
  exchange.source === undefined && !isGoneExpected() ? next : operationOf(ctx, exchange, next, whenRefused)

const operationOf =
  (ctx: Context, exchange: Exchange, next: Next, whenRefused: GuardHeaders | undefined): Next =>
  async () => {
    exchange.operations++
    try {
      return await next()
    } catch (error) {
      if (whenRefused !== undefined && isGone(error)) {
        return await answerGone(ctx, next, error, (failure) =>
          respondFailure(ctx, failure, exchange.settings, whenRefused),
        )
      }
      markThrown(ctx)
      throw answerable(error, exchange.settings)
    } finally {
      exchange.operations--
    }
  }

type Guarded = Context['request'] & { auth?: unknown; objects?: Objects | undefined }

/**
 * Runs with this principal. `isNested`: whether a guard around it has set another principal.
 *
 * `ctx.request.auth` is set while an operation runs, and so are the accepted credentials. Two layers of a router
 * can match one URL. So those of an outer guard are restored when the request comes back to it. With the setting
 * `state` the principal is in `ctx.state` too, where older handlers read it.
 */
const runAs = <A extends Promise<unknown> | void>(
  ctx: Context,
  exchange: Exchange,
  principal: unknown,
  { accepted, objects }: Pick<Evidence, 'accepted' | 'objects'>,
  isNested: boolean,
  run: () => A,
): A | Promise<Awaited<A>> => {
  if (isNested) return runInside(ctx, exchange, principal, accepted, objects, run)
  const { state } = exchange.settings
  // `auth` is a property that this package adds to the request
  const request: Guarded = ctx.request
  request.auth = principal
  if (exchange.accepted !== accepted) exchange.accepted = accepted
  if (exchange.objects !== objects) exchange.objects = objects
  // a public operation keeps the values of other functions there
  if (state !== undefined && principal !== undefined) ctx.state[state] = principal
  return run()
}

const runInside = async <A>(
  ctx: Context,
  exchange: Exchange,
  principal: unknown,
  accepted: Exchange['accepted'],
  objects: Objects | undefined,
  run: () => A,
): Promise<Awaited<A>> => {
  const request: Guarded = ctx.request
  const { state } = exchange.settings
  const outer = request.auth
  const outerAccepted = exchange.accepted
  const outerEnding = exchange.ending
  const outerObjects = exchange.objects
  const outerState: unknown = state === undefined ? undefined : ctx.state[state]
  const set = (auth: unknown, letIn: Exchange['accepted'], found: Objects | undefined, inState: unknown): void => {
    request.auth = auth
    exchange.accepted = letIn
    exchange.objects = found
    request.objects = found
    if (state === undefined) return
    if (inState === undefined) delete ctx.state[state]
    else ctx.state[state] = inState
  }
  set(principal, accepted, objects, principal)
  if (accepted !== outerAccepted) {
    const around = outerEnding ?? outerAccepted
    exchange.ending = accepted.length === 0 ? around : [...around, ...accepted]
  }
  try {
    return await run()
  } finally {
    set(outer, outerAccepted, outerObjects, outerState)
    exchange.ending = outerEnding
  }
}

/**
 * Runs middleware one after the other, then `next`. An exception of it is a rejection, as of a handler.
 *
 * The middleware is that of `withAuth(a, { then: [loadTenant, limitPerUser] })`, and belongs to the guard. It runs if
 * this guard lets the caller in, before `param` hooks and the handler. A level that replaces the guard replaces it too.
 * With `also`, the middleware of the levels above still runs, each with the principal of its own level.
 *
 * It is not a check of access. OpenAPI ignores it; the audit lists it.
 */
const afterGuard = (steps: ReadonlyArray<ThenMiddleware>): ((ctx: Context, next: Next) => Next) => {
  const isMixed = steps.some(({ above }) => above > 0)
  return (ctx, next) => async () => {
    const principal: unknown = Reflect.get(ctx.request, 'auth')
    const from = (at: number): Promise<unknown> => {
      const step = steps[at]
      let isCalled = false
      const goOn = (): Promise<unknown> => {
        if (isCalled) return Promise.reject(new Error('next() called multiple times'))
        isCalled = true
        return from(at + 1)
      }
      const run = async (): Promise<unknown> => {
        try {
          return await (step === undefined ? next() : step.run(ctx, goOn))
        } catch (error) {
          // an earlier function may answer it
          markThrown(ctx)
          // Koa treats null and undefined as no error, and would never answer
          // eslint-disable-next-line @typescript-eslint/only-throw-error -- as it was thrown
          throw error ?? new Error('null or undefined was thrown behind a guard')
        }
      }
      if (!isMixed) return run()
      const exchange = exchangeOf(ctx)
      return runAs(ctx, exchange, inherited(principal, step?.above ?? 0), exchange, true, run)
    }
    return from(0)
  }
}

// `also` lets in `{ inherited, own }`
const inherited = (principal: unknown, above: number): unknown =>
  above === 0 || typeof principal !== 'object' || principal === null
    ? principal
    : inherited(Reflect.get(principal, 'inherited'), above - 1)
