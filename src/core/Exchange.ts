/**
 * The records of one request, and of one decision about it.
 *
 * The record of a request, the `Exchange`, is on its Koa context and its response, for as long as they live. The record of a decision,
 * the `Attempt`, is made by the guard, handed down by the tree of the authenticator, and gone with the decision. A finding of a part of the tree
 * is in its result (`Evidence`), never here. Without an attempt, `evaluate` makes a new attempt.
 */
import * as E from 'fp-ts/lib/Either.js'
import type { Challenge } from './Challenge.js'
import type { Context, Request } from './Request.js'
import { isForged } from './CrossOrigin.js'
import { constantFailure, isAmbient, isOfSessions, withChallenges, type Description, type Leaf } from './Description.js'
import { PrincipalSource, type EndSource } from './ends.js'
import { accept, evidenceOf, merge, nothingSent, plainEvidence, restsOn } from './Evidence.js'
import type { Charge, Evidence, Objects } from './Evidence.js'
import { forged as forgedError, invalid as invalidError, type AuthError } from './AuthError.js'
import { isAnonymous, refused, type Decode, type Decoded, type Evaluation, type Result } from './Result.js'
import { defaults, type Settings } from './Settings.js'

export class Attempt {
  readonly request: Request
  /** The parameters of the route that runs; `undefined` outside of a guard, where those of the context count. */
  declare readonly parameters: PathParameters | undefined
  /** The objects that other members have found before this part is asked, see `core/allOf.ts`. */
  declare readonly objects: Objects | undefined
  /** The attempt of the whole decision; `undefined` if this is that attempt. The fields below are of the whole attempt alone. */
  declare private readonly outer: Attempt | undefined
  /** @internal Whether no guess is counted, nor refused by a count: `expectGuarded` sends wrong credentials on purpose. */
  declare isUncounted: boolean | undefined
  /** @internal The credentials that were decoded before their kind was asked. */
  declare decoded: DecodedAhead | undefined
  /** @internal How many hooks were asked: one that is late, after a time limit, tells nothing any more. */
  asked = 0
  /** @internal The decisions of authenticators and keys that the hook which is asked has called itself. */
  declare told: ReadonlyArray<E.Right<unknown>> | undefined
  /** @internal For the record of the decision, if there is a subscriber. Nothing is decided by it. */
  declare notes: Notes | undefined

  constructor(request: Request, parameters?: PathParameters, objects?: Objects, outer?: Attempt) {
    this.request = request
    // Few have these, and each field is allocated for every request
    if (outer !== undefined) this.outer = outer
    if (parameters !== undefined) this.parameters = parameters
    if (objects !== undefined) this.objects = objects
  }

  /** The attempt of the whole decision. */
  get whole(): Attempt {
    return this.outer ?? this
  }

  /** The same decision, for a part that is asked after others have found objects. */
  knowing(objects: Objects | undefined): Attempt {
    return objects === this.objects ? this : new Attempt(this.request, this.parameters, objects, this.whole)
  }
}

// Nothing is behind the prototype, whose properties would count
Object.setPrototypeOf(Attempt.prototype, null)

/** @internal Notes for the record of a decision, beside its result. */
interface Notes {
  /** The kinds that let in, in order. */
  readonly passed: Leaf[]
  /** Whether the object was there that `owned` refused last. */
  isFound: boolean
}

/**
 * An authenticator that also finds objects (`owned`), by their names. They are in `ctx.request.objects` if it lets in.
 */
export interface Finds<O> {
  /** Only a type: no such property exists. */
  readonly finds?: O
}

/** A guarded type that finds the objects `O`; without objects, the type itself. */
export type Finding<M, O> = unknown extends O ? M : M & Finds<O>

/** The objects that an authenticator finds; `unknown` if it finds none. */
export type ObjectsOf<M> = M extends Finds<infer O> ? O : unknown

/** Parameters of a path, decoded, without a prototype. */
export type PathParameters = Readonly<Record<string, string>>

export const showObjects = (request: Request, objects: Objects | undefined): void => {
  // `objects` is a property that this package adds to the request
  const shown: Request & { objects?: Objects | undefined } = request
  if (shown.objects !== objects) shown.objects = objects
}

export const shownObjects = (request: Request & { readonly objects?: Objects | undefined }): Objects | undefined =>
  request.objects

/** @internal The result of one `decode` for one value. */
interface DecodedAhead {
  readonly decode: Decode
  readonly sent: unknown
  readonly credentials: Decoded
}

/**
 * All facts about a request, in one place that a debugger shows: `ctx[Symbol.for('koa-with-auth/exchange')]`. A
 * field whose type is above this folder belongs to the module that its comment names.
 */
export class Exchange {
  /** The settings in force where the request is now. */
  declare settings: Settings
  /** The captures of the layer whose guard ran last: the router makes new captures for each layer, see `koa/guard.ts`. */
  captures: unknown = undefined
  /** How many guarded operations are running, each inside of the operation before, see `koa/guard.ts`. */
  declare operations: number
  /** Whether signing in or out has begun, see `sessions/signing.ts`. */
  declare isSigning: boolean | undefined
  /** Whether the operation threw, see `koa/settings.ts`. */
  declare hasThrown: boolean | undefined
  /** Why signing in or out was refused outside of a guarded operation, see `sessions/signing.ts`. */
  declare misplaced: Error | undefined
  /** The headers of the guarded operation that answers, see `koa/responseHeaders.ts`; `undefined` if none does. */
  headers: unknown = undefined
  /** Their context and realm, and the function that writes the head. Here, because a record of them is a sixth of what a guard allocates. */
  headContext: unknown = undefined
  declare headRealm: string
  /** `undefined` for the function of Node's class. */
  declare writeHead: unknown
  /** The decision, if there is a subscriber, see `koa/watching.ts`. */
  declare decision: unknown
  /** Whether a token in the field `Authorization` carries the session, which browsers send by no form or link. */
  declare isByToken: boolean | undefined
  /** The challenge of tokens that carry sessions, if the application has some: the kinds of the root do not know it. */
  declare carrier: (() => Challenge) | undefined
  /** The source of the signed-in user, see `kinds/sessionUser.ts`. */
  declare source: unknown
  /** The session and its changes, see `sessions/RequestSession.ts`. */
  declare session: unknown
  /** The decision that a guard makes, or made last. */
  attempt: Attempt | undefined = undefined
  /** The accepted credentials that can end. */
  declare accepted: ReadonlyArray<EndSource>
  /** The same with those of the guards around this guard; `undefined` if it is the outermost. */
  declare ending: ReadonlyArray<EndSource> | undefined
  /** The signals that wait for their end, see `koa/authSignal.ts`. */
  declare opened: unknown
  /** Fields that the decision adds to the response, see `guesses/rateLimit.ts`. */
  declare fields: Readonly<Record<string, string>> | undefined
  /** Take back the points of rate limits, if a guard refuses the request after all. */
  declare charged: ReadonlyArray<() => void> | undefined
  /** Called before the response is sent, with whether the operation answered with a 2xx, see `webhooks/deliveries.ts`. Never reject. */
  declare outcomes: Array<(isDone: boolean) => Promise<void>> | undefined
  declare objects: Objects | undefined
}

// Nothing is behind the prototype, whose properties would count. The usual values are on it, so a request that keeps them takes no memory
Object.setPrototypeOf(Exchange.prototype, null)
Object.assign(Exchange.prototype, {
  settings: defaults,
  operations: 0,
  headRealm: defaults.realm,
  accepted: nothingSent.accepted,
} satisfies Partial<Exchange>)

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

/** The record of a response: that of its first context, because middleware can make another context for the same response. */
export const exchangeOfResponse = (ctx: Context, exchange = exchangeOf(ctx)): Exchange => {
  const response: Context['res'] & Carrying = ctx.res
  return (response[exchangeMark] ??= exchange)
}

export const settingsOf = ({ ctx }: Request): Settings => knownExchange(ctx)?.settings ?? defaults

/** Gives a request settings, also if middleware made another context for it. */
export const carry = ({ ctx }: Request, settings: Settings): void => {
  exchangeOf(ctx).settings = settings
}

/** The decision for which a hook is asked; `undefined` if no guard asks it. */
export const attemptOf = (request: Request | undefined): Attempt | undefined => {
  const ctx: Context | undefined = request?.ctx
  const attempt = ctx && knownExchange(ctx)?.attempt
  return attempt?.request === request ? attempt : undefined
}

export const askHook = ({ whole }: Attempt): void => {
  whole.asked++
  if (whole.told !== undefined) whole.told = undefined
}

/** @internal Gives the hook that runs the decision of an authenticator that it called. `asked`: after a time limit, another hook may run. */
export const tell = <R extends Result<unknown>>(
  attempt: Attempt | undefined,
  asked: number | undefined,
  result: R,
): R => {
  if (attempt !== undefined && attempt.asked === asked && E.isRight(result))
    attempt.told = attempt.told === undefined ? [result] : [...attempt.told, result]
  return result
}

// Whether a principal says when it ends
const canEnd = (principal: unknown): principal is object =>
  typeof principal === 'object' && principal !== null && 'expiresAt' in principal

/**
 * @internal The evidence of the result of a hook: its own, and that of the authenticators that it called. A function may have called several, so
 * only those count that let in the `same` principal. A bare RTE may have changed the principal, so the `last` counts.
 */
export const evidenceFor = (
  { whole: { told } }: Attempt,
  result: E.Right<unknown>,
  counts: 'all' | 'same' | 'last',
  own = evidenceOf(result),
): Evidence => {
  const all = canEnd(result.right) ? merge(own, restsOn(new PrincipalSource(result.right))) : own
  // most hooks that are told something answer it
  if (told === undefined || (told.length === 1 && told[0] === result)) return all
  const counted = counts === 'last' ? told.slice(-1) : told
  return counted
    .filter((one) => evidenceOf(one) !== own && (counts !== 'same' || one.right === result.right))
    .reduce((before, one) => merge(before, evidenceOf(one)), all)
}

/** @internal Charges for a request that passed (`rateLimit`), which may refuse it: the last step of a whole decision. */
export const charged = <P>(result: Result<P>, { whole }: Attempt): Evaluation<P> => {
  const charges = whole.isUncounted !== true && E.isRight(result) ? evidenceOf(result).charges : []
  return charges.length === 0 ? result : chargeAll(result, charges, whole.request)
}

const chargeAll = async <P>(
  result: Result<P>,
  charges: ReadonlyArray<Charge>,
  { ctx }: Request,
): Promise<Result<P>> => {
  const taken: Array<() => void> = []
  for (const charge of charges) {
    const { refusal, takeBack } = await charge()
    if (refusal !== undefined) {
      for (const giveBack of taken) giveBack()
      // Safe: only `rateLimit` charges, and it refuses by a failure
      return E.left(refusal as AuthError)
    }
    if (takeBack !== undefined) taken.push(takeBack)
  }
  // for a guard that refuses afterwards, such as one below `guardApp`
  const exchange = exchangeOfResponse(ctx)
  exchange.charged = [...(exchange.charged ?? []), ...taken]
  // charged once, also if a hook has asked this authenticator, so that a decision around it rests on the same evidence
  return E.isRight(result) ? accept(result.right, { ...evidenceOf(result), charges: [] }) : result
}

/**
 * Completes the result of a hook. A failure gets its challenges. A success becomes `forged` if another site made the
 * browser send the credential. `invalid` and `forged` are made once, so that the responder can reuse their responses.
 */
export const finishingHookResult = (
  description: Description,
  ambient = isAmbient(description),
): ((result: Result<unknown>, request: Request) => Result<unknown>) => {
  const invalid = constantFailure(description, invalidError)
  const failure = (result: E.Left<AuthError>): Result<unknown> =>
    result === refused ? invalid : E.left(withChallenges(description, result.left))
  if (!ambient) return (result) => (E.isLeft(result) ? failure(result) : result)
  const forged = constantFailure(description, forgedError)
  // another cookie comes by itself, also beside a token of the attacker
  const isSession = isOfSessions(description)
  return (result, request) => {
    if (E.isLeft(result)) return failure(result)
    if (isAnonymous(result) || (isSession && knownExchange(request.ctx)?.isByToken === true)) return result
    return isForged(request, settingsOf(request)) ? forged : result
  }
}

/** @internal Completes the result of the hook of a kind. A success gets its evidence: that of each credential of the kind, and that of the hook. */
export const finishingKind = (leaf: Leaf, known: Evidence, isFunction: boolean) => {
  const finishHookResult = finishingHookResult(leaf)
  // a success by a credential that browsers do not send by themselves stays as it is
  const isChecked = leaf.ambient
  const isPlain = known === plainEvidence
  const complete = (result: E.Right<unknown>, attempt: Attempt): Result<unknown> => {
    const said = evidenceOf(result)
    const own = evidenceFor(attempt, result, isFunction ? 'same' : 'all', said)
    return isPlain && !own.isAnonymous && own === said ? result : accept(result.right, merge(known, own))
  }
  return (answered: Result<unknown>, attempt: Attempt, answer: unknown): Result<unknown> => {
    const result = isChecked || E.isLeft(answered) ? finishHookResult(answered, attempt.request) : answered
    if (E.isLeft(result)) return result
    // Most hooks answer the principal itself, and call no authenticator
    const isBare = isPlain && result.right === answer && attempt.whole.told === undefined && !canEnd(answer)
    return isBare ? result : complete(result, attempt)
  }
}
