/**
 * What is known of one request, and of one decision about it.
 *
 * The record of a request, the `Exchange`, is on its Koa context and its response, for as long as they live. The record of a decision,
 * the `Attempt`, is made by the guard, handed down by the tree of the authenticator, and gone with the decision: so what a part of
 * the tree notes for another part never has to be removed. Without an attempt, `evaluate` makes one.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from './Request.js'
import type { Leaf } from './Description.js'
import { PrincipalSource, withAccepted, type Accepted, type EndSource } from './ends.js'
import { andThen, type Decode, type Decoded, type Evaluation, type Result } from './Result.js'
import { defaults, type Settings } from './Settings.js'

export class Attempt {
  readonly request: Request
  /** @internal The kinds that let in, in order; only if a record of the decision needs them. */
  declare passed: Leaf[] | undefined
  /** @internal The guesses that stay counted, see `guesses/throttled.ts`. */
  declare guesses: ReadonlyArray<PendingGuess> | undefined
  /** @internal The credentials that were decoded before their kind was asked. */
  declare decoded: DecodedAhead | undefined
  /** @internal Whether a remembered verification answered. */
  declare isRecalled: boolean | undefined
  /** @internal Whether no guess is counted, nor refused by a count: `expectGuarded` sends wrong credentials on purpose. */
  declare isUncounted: boolean | undefined
  /** @internal Whether something else than a credential decided (`recoverUnavailable`). */
  declare isRecovered: boolean | undefined
  /** @internal What let in so far: tokens, and what can end. A part of the tree that goes on without it restores what was before. */
  accepted: Accepted | undefined = undefined
  /** @internal What was accepted before a function was asked that may call authenticators itself. */
  acceptedAhead: Accepted | undefined = undefined
  /** @internal The principal of the last authenticator that such a function called. */
  declare letIn: unknown
  /** @internal What `owned` has found, by name. A part of the tree that goes on without it restores what was there. */
  declare objects: Objects | undefined
  /** @internal The parameters of the route that runs; `undefined` outside of a guard, where those of the context count. */
  parameters: PathParameters | undefined = undefined
  /** @internal Whether the object was there that `owned` refused last; only for records. */
  declare isFound: boolean | undefined
  /** @internal What parts of the tree said before any object was looked up, see `core/allOf.ts`. */
  declare ahead: Map<object, AskedAhead> | undefined

  constructor(request: Request) {
    this.request = request
  }
}

/** @internal What a part of the tree said, and what it noted. */
interface AskedAhead {
  readonly result: Result<unknown>
  readonly accepted: Accepted | undefined
}

/** Objects by the names that `owned` gave them, without a prototype. */
export type Objects = Readonly<Record<string, unknown>>

/**
 * An authenticator that also finds objects (`owned`), by their names. They are in `ctx.request.objects` if it lets in.
 */
export interface Finds<O> {
  /** Only a type: no such property exists. */
  readonly finds?: O
}

/** What is guarded and finds the objects `O`; if there are none, it is shown as it is. */
export type Finding<M, O> = unknown extends O ? M : M & Finds<O>

/** The objects that an authenticator finds; `unknown` if it finds none. */
export type ObjectsOf<M> = M extends Finds<infer O> ? O : unknown

/** Parameters of a path, decoded, without a prototype. */
export type PathParameters = Readonly<Record<string, string>>

/** @internal What finds later objects, and conditions, read: `request.objects`. */
export const showObjects = (attempt: Attempt, objects: Objects | undefined): void => {
  attempt.objects = objects
  const request: Request & { objects?: Objects | undefined } = attempt.request
  request.objects = objects
}

/** @internal A guess that is counted, unless a kind later knows its credential. */
export interface PendingGuess {
  readonly sent: unknown
  readonly limiter: object
  readonly key: string
  readonly takeBack: () => void
}

/** @internal What one `decode` made of one value. */
interface DecodedAhead {
  readonly decode: Decode
  readonly sent: unknown
  readonly credentials: Decoded
}

// What few decisions write is no property until then. Nothing is behind the prototype, whose properties would count
Object.setPrototypeOf(Attempt.prototype, null)

/**
 * What is known of one request, in one place that a debugger shows: `ctx[Symbol.for('koa-with-auth/exchange')]`. A
 * field whose type is above this folder belongs to the module that its comment names.
 */
export class Exchange {
  /** The settings in force where the request is now. */
  settings: Settings = defaults
  /** The captures of the layer whose guard ran last: the router makes new ones for each layer, see `koa/guard.ts`. */
  captures: unknown = undefined
  /** How many guarded operations are running, each inside of the one before, see `koa/guard.ts`. */
  declare operations: number
  /** Whether signing in or out has begun, see `sessions/signing.ts`. */
  declare isSigning: boolean | undefined
  /** Whether the operation threw, see `koa/settings.ts`. */
  declare hasThrown: boolean | undefined
  /** Why signing in or out was refused outside of a guarded operation, see `sessions/signing.ts`. */
  declare misplaced: Error | undefined
  /** What completes the head of the response, see `koa/responseHeaders.ts`. */
  head: unknown = undefined
  /** What was decided, if there is a subscriber, see `koa/watching.ts`. */
  declare decision: unknown
  /** The applications that the request is in, see `apiApp.ts`. */
  declare visits: unknown
  /** Who is signed in, see `kinds/sessionUser.ts`. */
  declare source: unknown
  /** The session and its changes, see `sessions/RequestSession.ts`. */
  declare session: unknown
  /** The decision that a guard makes, or made last. */
  attempt: Attempt | undefined = undefined
  /** The access token that was verified last, see `jwt/tokenKind.ts`. */
  declare verified: unknown
  /** What let the request in: tokens, and what can end. */
  accepted: Accepted | undefined = undefined
  /** The same with what the guards around this one let in; `undefined` if there is none around it. */
  declare ending: Accepted | undefined
  /** What waits for the end of that, see `koa/authSignal.ts`. */
  declare opened: unknown
  /** Fields that the decision adds to the response, see `guesses/rateLimit.ts`. */
  declare fields: Readonly<Record<string, string>> | undefined
  /** What is called, before the response is sent, with whether the operation did its work, see `webhooks/deliveries.ts`. */
  declare outcomes: Array<Outcome> | undefined
  /** The objects that the operation runs with. */
  objects: Objects | undefined = undefined
}

// The same for a request
Object.setPrototypeOf(Exchange.prototype, null)
Exchange.prototype.operations = 0

/** @internal Is called with whether the operation ran, and answered with a 2xx. It never rejects. */
type Outcome = (isDone: boolean) => Promise<void>

/** On a Koa context and its response: the record of the request. */
const exchangeMark: unique symbol = Symbol.for('koa-with-auth/exchange')

interface Carrying {
  [exchangeMark]?: Exchange
}

/** The record of a request. The first call makes it. */
export const exchangeOf = (ctx: object): Exchange => {
  const carrying: Carrying = ctx
  return (carrying[exchangeMark] ??= new Exchange())
}

/** The record of a request, or of the request of a response; `undefined` if there is none yet. */
export const knownExchange = (carrying: object): Exchange | undefined => {
  const { [exchangeMark]: exchange }: Carrying = carrying
  return exchange
}

/**
 * The record that the response of a request carries. It is that of its first context, because middleware can make
 * another context for the same response.
 */
export const exchangeOfResponse = (ctx: Context, exchange = exchangeOf(ctx)): Exchange => {
  const response: Context['res'] & Carrying = ctx.res
  return (response[exchangeMark] ??= exchange)
}

export const settingsOf = ({ ctx }: Request): Settings => knownExchange(ctx)?.settings ?? defaults

/** Gives a request settings, also if middleware made another context for it. */
export const carry = ({ ctx }: Request, settings: Settings): void => {
  exchangeOf(ctx).settings = settings
}

// --- what let a request in, so that `authSignal` can say when it ends

/** The decision for which a hook is asked; `undefined` if no guard asks it. */
export const attemptOf = (request: Request | undefined): Attempt | undefined => {
  const ctx: Context | undefined = request?.ctx
  const attempt = ctx && knownExchange(ctx)?.attempt
  return attempt?.request === request ? attempt : undefined
}

/** The result of a hook that lets in, and notes what can end. `wasRecovered` is what `isRecovered` was when it was asked. */
export const letIn = <P>(
  attempt: Attempt | undefined,
  wasRecovered: boolean | undefined,
  source: EndSource,
  principal: P,
): Result<P> => {
  // after a time limit, `recoverUnavailable` may have decided without it
  if (attempt !== undefined && attempt.isRecovered === wasRecovered) {
    attempt.accepted = withAccepted(attempt.accepted, source)
    attempt.letIn = principal
  }
  return E.right(principal)
}

/** @internal A principal that says when it expires ends then. */
export const noteExpiry = (attempt: Attempt, principal: unknown): void => {
  if (typeof principal !== 'object' || principal === null || !('expiresAt' in principal)) return
  attempt.accepted = withAccepted(attempt.accepted, new PrincipalSource(principal))
}

/** @internal Decides as `decide` does, and notes what can end of what let in, as `letIn` does. */
export const noting = (
  decide: (attempt: Attempt) => Evaluation<unknown>,
  source: (request: Request) => EndSource,
): ((attempt: Attempt) => Evaluation<unknown>) => {
  const noted = (result: Result<unknown>, attempt: Attempt, isRecovered: boolean | undefined): Result<unknown> => {
    if (E.isRight(result) && attempt.isRecovered === isRecovered) {
      attempt.accepted = withAccepted(attempt.accepted, source(attempt.request))
    }
    return result
  }
  return (attempt) => {
    const { isRecovered } = attempt
    const result = decide(attempt)
    return result instanceof Promise
      ? result.then((late) => noted(late, attempt, isRecovered))
      : noted(result, attempt, isRecovered)
  }
}

/** @internal Decides as `decide`, a function, does. It may call an authenticator, and let somebody else in. */
export const askingFunction =
  (decide: (attempt: Attempt) => Evaluation<unknown>) =>
  (attempt: Attempt): Evaluation<unknown> => {
    const { accepted } = attempt
    attempt.acceptedAhead = accepted
    return andThen(decide(attempt), (result) => {
      if (E.isRight(result) && attempt.letIn !== result.right) {
        attempt.accepted = accepted
        noteExpiry(attempt, result.right)
      }
      return result
    })
  }
