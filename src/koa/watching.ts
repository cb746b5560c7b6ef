/**
 * Reports the decision about each guarded request once, when its response has ended, even if the client has gone. If a
 * request passes two guards, the guard that decided last counts.
 *
 * Without a subscriber of the channel, none of this runs. With a subscriber, a request pays for one object, which is the record,
 * and two listeners that all requests share.
 */
import type { ServerResponse } from 'node:http'
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from 'koa'
import { evidenceOf } from '../core/Evidence.js'
import { exchangeOfResponse, knownExchange, settingsOf, Attempt } from '../core/Exchange.js'
import type { Exchange, PathParameters } from '../core/Exchange.js'
import { branchesOf, outcomeOf, whyOf, type AuthError } from '../core/AuthError.js'
import { decideOf, make, mapLeaves, type Authenticator } from '../core/Authenticator.js'
import { andThen, isAnonymous, type Evaluation } from '../core/Result.js'
import { ownFields, ownOrGetter, unawaited } from '../core/data.js'
import type { EndSource } from '../core/ends.js'
import { decisions, type Names, type Decision, type DecisionBranch } from '../core/events.js'
import { type Leaf, type Description, leaves, schemeNameOf } from '../core/Description.js'
import { alternativesOf } from '../core/Alternative.js'

interface BegunDecision {
  readonly attempt: Attempt
  readonly at: number
}

// `undecided`, then its record, then `published`. It is `answered` if the response ended before the decision
type Progress = 'undecided' | 'answered' | Draft | 'published'

// Safe: it is written here alone
const progressOf = (exchange: Exchange): Progress => (exchange.decision as Progress | undefined) ?? 'undecided'

export const decisionRecorder = (authenticator: Authenticator<unknown>, levels: ReadonlyArray<string>) => {
  const level = levels.join(' + ')
  // made once, when there is a subscriber; a single kind needs no notes
  let witness: Authenticator<unknown> | undefined
  let writeResult: WriteResult | undefined
  return {
    begin: (ctx: Context, parameters?: PathParameters): BegunDecision => {
      beginRecord(ctx)
      const attempt = new Attempt(ctx.request, parameters)
      attempt.notes = { passed: [], isFound: false }
      return { attempt, at: performance.now() }
    },
    evaluate: ({ attempt }: BegunDecision): Evaluation<unknown> =>
      (witness ??=
        leaves(authenticator.description).length === 1
          ? authenticator
          : mapLeaves(authenticator, recordingLeaf)).evaluate(attempt.request, attempt),
    settled: (ctx: Context, { attempt, at }: BegunDecision, result: E.Either<AuthError, unknown>): void => {
      const { request } = ctx
      const draft = draftOf(ctx, level, performance.now() - at)
      writeResult ??= resultWriter(authenticator.description)
      writeResult(draft, result, attempt.notes?.passed ?? [], request)
      if (draft.object !== undefined && attempt.notes?.isFound === true) draft.found = true
      if (E.isRight(result)) Object.assign(draft, namesOf(request, result.right, evidenceOf(result).accepted))
      if (evidenceOf(result).isCached) draft.cached = true
      note(ctx, draft)
    },
    refused: (ctx: Context, { at }: BegunDecision): void => {
      const draft = draftOf(ctx, level, performance.now() - at)
      draft.outcome = 'refused'
      draft.failure = 'malformed'
      note(ctx, draft)
    },
  }
}

export const recordPublic = (ctx: Context, levels: ReadonlyArray<string>): void => {
  beginRecord(ctx)
  note(ctx, draftOf(ctx, levels.join(' + '), 0))
}

/** Notes that a request was answered with a status that its response does not write. */
export const answeredWith = (response: ServerResponse, status: number): void => {
  const exchange = knownExchange(response)
  if (exchange !== undefined) settleRecord(exchange, status)
}

// `routerPath` is the pattern of the layer that runs; it can be a RegExp
const draftOf = ({ method, routerPath }: Context, level: string, durationMs: number): Draft => ({
  outcome: 'public',
  level,
  method,
  route: String(routerPath ?? ''),
  status: 0,
  durationMs,
})

/** The names of a principal in records, if the application names it: the subject, and the actor for it. */
export const namesOf = (request: Request, principal: unknown, accepted: ReadonlyArray<EndSource> = []): Names => {
  const events = settingsOf(request).events
  if (events === undefined || principal === undefined) return {}
  const subject = namedBy(events.subject, principal)
  const actor =
    events.actor === undefined
      ? (namedBy(actorOf, principal) ?? accepted.map(actorOf).findLast(isName))
      : namedBy(events.actor, principal)
  return { ...(subject !== undefined && { subject }), ...(actor !== undefined && { actor }) }
}

const isName = (u: unknown): u is string => typeof u === 'string' && u !== ''

// RFC 8693 §4.1: the outermost `act` is the current actor. A principal of the application may name him by a string
const actorOf = (one: unknown): string | undefined => {
  const act: unknown = typeof one === 'object' && one !== null ? ownOrGetter(one, 'act') : undefined
  if (typeof act !== 'object' || act === null) return isName(act) ? act : undefined
  const { sub, client_id } = ownFields(act)
  return [sub, client_id].find(isName)
}

const namedBy = (name: (principal: unknown) => unknown, principal: unknown): string | undefined => {
  try {
    const answer = unawaited(name(principal))
    return typeof answer === 'string' ? answer : undefined
  } catch {
    // an exception must not prevent the response, so the record has no name
    return undefined
  }
}

const beginRecord = (ctx: Context): void => {
  const exchange = exchangeOfResponse(ctx)
  if (exchange.decision !== undefined) return
  exchange.decision = 'undecided'
  ctx.res.on('finish', onAnswered)
  ctx.res.on('close', onAnswered)
}

const note = (ctx: Context, draft: Draft): void => {
  const exchange = exchangeOfResponse(ctx)
  const progress = progressOf(exchange)
  if (progress === 'published') return
  exchange.decision = draft
  if (progress === 'answered') settleRecord(exchange, answeredStatus(ctx.res))
}

function onAnswered(this: ServerResponse): void {
  answeredWith(this, answeredStatus(this))
}

// Published when both are there: the decision, and the status of the answer
const settleRecord = (exchange: Exchange, status: number): void => {
  const progress = progressOf(exchange)
  if (progress === 'undecided') exchange.decision = 'answered'
  if (typeof progress !== 'object') return
  exchange.decision = 'published'
  progress.status = status
  decisions.publish(Object.freeze(progress))
}

// nginx's status for a client that went away before it was answered
const CLIENT_CLOSED_REQUEST = 499

const answeredStatus = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent ? statusCode : CLIENT_CLOSED_REQUEST

/** A record that is not published yet, so it can be written to: one object a request. */
type Draft = { -readonly [K in keyof Decision]: Decision[K] }

/** Writes a decision into a draft; `passed` are the kinds that let in, in order. */
type WriteResult = (
  draft: Draft,
  result: E.Either<AuthError, unknown>,
  passed: ReadonlyArray<Leaf>,
  request: Request,
) => void

/** How results are written into records. Everything that does not depend on the request is computed once, if there is a subscriber. */
const resultWriter = (description: Description): WriteResult => {
  const all = leaves(description)
  const only = all.length === 1 ? all[0] : undefined
  const schemes = new Map(all.map((leaf) => [leaf, schemeNamerOf(leaf)]))
  const nameOf = (leaf: Leaf, request: Request): string => schemes.get(leaf)?.(request) ?? 'custom'
  const passedTogether = alternativeThatPassed(description)

  const schemeOf = (passed: ReadonlyArray<Leaf>, request: Request): string | undefined => {
    if (only !== undefined) return nameOf(only, request)
    const sent = passedTogether(passed)
    return sent.length === 0 ? undefined : sent.map((leaf) => nameOf(leaf, request)).join(' + ')
  }
  const failed = (draft: Draft, error: AuthError, passed: ReadonlyArray<Leaf>, request: Request): void => {
    const why = whyOf(error)
    draft.outcome = outcomeOf(error)
    // no credential was wrong: one was not sent
    draft.failure = why === 'partial' ? 'absent' : error._tag
    if (why !== undefined) draft.why = why
    if (only !== undefined) draft.scheme = nameOf(only, request)
    else {
      const asked = all.filter((leaf) => !passed.includes(leaf))
      const branches = branchesInWords(branchesOf(error), asked, (leaf) => nameOf(leaf, request))
      if (branches.length > 0) draft.branches = Object.freeze(branches)
    }
    if ('object' in error && error.object !== undefined) draft.object = error.object
    if ('retryAfter' in error && error.retryAfter !== undefined) draft.retryAfter = error.retryAfter
  }
  return (draft, result, passed, request) => {
    if (E.isLeft(result)) return failed(draft, result.left, passed, request)
    draft.outcome = isAnonymous(result) ? 'anonymous' : 'accepted'
    if (draft.outcome === 'anonymous') return
    const scheme = schemeOf(passed, request)
    if (scheme !== undefined) draft.scheme = scheme
    const via = description._tag === 'AnyOf' ? viaOf(result.right) : undefined
    if (via !== undefined) draft.via = via
  }
}

// A name that no request changes is made once
const schemeNamerOf = (leaf: Leaf): ((request: Request) => string | undefined) => {
  if (leaf.schemeFor !== undefined) return (request) => schemeNameOf(leaf, request)
  const name = schemeNameOf(leaf)
  return () => name
}

// In `[allOf([a, b]), c]`, `a` can pass although `c` let in. The alternative that is complete is reported
const alternativeThatPassed = (description: Description) => {
  const alternatives = alternativesOf(description).map(({ demands }) => demands.map(({ leaf }) => leaf))
  // one credential each: the last that passed let the caller in
  if (alternatives.every(({ length }) => length <= 1)) return (passed: ReadonlyArray<Leaf>) => passed.slice(-1)
  return (passed: ReadonlyArray<Leaf>): ReadonlyArray<Leaf> => {
    const last = passed.at(-1)
    if (last === undefined) return []
    const whole = alternatives.find((each) => each.includes(last) && each.every((leaf) => passed.includes(leaf)))
    return whole ?? [last]
  }
}

// Relies on `alt`, `allOf` and `firstPresent`: they collect branches in the order of the leaves
const branchesInWords = (
  branches: ReadonlyArray<AuthError>,
  all: ReadonlyArray<Leaf>,
  nameOf: (leaf: Leaf) => string,
): DecisionBranch[] => {
  let at = 0
  return branches.map((branch) => {
    const found = all.findIndex((leaf, index) => index >= at && challengesWith(leaf, branch))
    if (found >= 0) at = found + 1
    const leaf = all[found]
    const why = whyOf(branch)
    return Object.freeze<DecisionBranch>({
      scheme: leaf === undefined ? 'custom' : nameOf(leaf),
      failure: branch._tag,
      ...(branch.skipped === true && { skipped: true }),
      ...(why !== undefined && { why }),
    })
  })
}

const challengesWith = ({ challenge }: Leaf, error: AuthError): boolean => {
  if (error.challenge === undefined) return false
  try {
    return (typeof challenge === 'function' ? challenge(error) : challenge).scheme === error.challenge.scheme
  } catch {
    return false
  }
}

// An object of alternatives reports the member that let the caller in
const viaOf = (principal: unknown): string | undefined => {
  if (typeof principal !== 'object' || principal === null) return undefined
  if (!('via' in principal) || !('principal' in principal)) return undefined
  return typeof principal.via === 'string' ? principal.via : undefined
}

/** Decides as this authenticator does, and notes in the attempt that it let the caller in. */
const recordingLeaf = (self: Authenticator<unknown>): Authenticator<unknown> => {
  const { description } = self
  if (description._tag !== 'Leaf') return self
  const decide = decideOf(self)
  return make(description, (attempt) =>
    andThen(decide(attempt), (result) => {
      if (E.isRight(result)) attempt.whole.notes?.passed.push(description)
      return result
    }),
  )
}
