/**
 * Reports the decision about each guarded request once, when its response has ended, even if the client has gone. If a
 * request passes two guards, the one that decided last counts.
 *
 * Without a subscriber of the channel, none of this runs. With one, a request pays for one object, which is the record,
 * and two listeners that all requests share.
 */
import { channel } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from 'koa'
import { newAttempt, type Attempt } from '../core/Attempt.js'
import type { AuthError } from '../core/AuthError.js'
import type { Authenticator } from '../core/Authenticator.js'
import type { Evaluation } from '../core/Result.js'
import { decisions } from '../core/events.js'
import { decidedBy, recordingLeaves, type Decided, type Draft } from '../core/decided.js'
import { exchangeOfResponse, knownExchange, settingsOf, type Exchange } from '../core/Settings.js'

/**
 * What development help listens to (`development.ts`): each copy of a router that a level made, and the router of each
 * request that is watched. Without a listener, nothing happens.
 */
export const copiedRouters = channel('koa-with-auth:copied-router')
export const askedRouters = channel('koa-with-auth:asked-router')

/** A router, and the copy of it that a level guards. */
export interface CopiedRouter {
  readonly router: object
  readonly copy: object
}

/** Watches the decisions of one guard. */
interface DecisionRecorder {
  /** Begins with a request. Returns what the others need. */
  readonly begin: (ctx: Context) => Begun
  /** Decides as the authenticator does, and takes notes. */
  readonly evaluate: (begun: Begun) => Evaluation<unknown>
  /** Notes the result. */
  readonly settled: (ctx: Context, begun: Begun, result: E.Either<AuthError, unknown>) => void
  /** Notes that the request was refused before it was read. */
  readonly refused: (ctx: Context, begun: Begun) => void
}

/** A decision that is watched, and when it began. */
interface Begun {
  readonly attempt: Attempt
  readonly at: number
}

// `undecided`, then its record, then `published`. It is `answered` if the response ended before the decision
type Progress = 'undecided' | 'answered' | Draft | 'published'

// Safe: it is written here alone
const progressOf = (exchange: Exchange): Progress => (exchange.decision as Progress | undefined) ?? 'undecided'

/** Watches the decisions of an authenticator. */
export const decisionRecorder = (
  authenticator: Authenticator<unknown>,
  levels: ReadonlyArray<string>,
): DecisionRecorder => {
  const level = levels.join(' + ')
  // made once, when there is a subscriber
  let witness: Authenticator<unknown> | undefined
  let decided: Decided | undefined
  return {
    begin: (ctx) => {
      watch(ctx)
      return { attempt: newAttempt(ctx.request), at: performance.now() }
    },
    evaluate: ({ attempt }) => (witness ??= recordingLeaves(authenticator)).evaluate(attempt.request, attempt),
    settled: (ctx, { attempt, at }, result) => {
      const { request } = ctx
      const draft = draftOf(ctx, level, performance.now() - at)
      decided ??= decidedBy(authenticator.description)
      decided(draft, result, attempt.passed ?? [], request)
      if (attempt.isRecalled) draft.cached = true
      const subject = E.isRight(result) ? subjectOf(request, result.right) : undefined
      if (subject !== undefined) draft.subject = subject
      note(ctx, draft)
    },
    refused: (ctx, { at }) => {
      const draft = draftOf(ctx, level, performance.now() - at)
      draft.outcome = 'refused'
      draft.failure = 'malformed'
      note(ctx, draft)
    },
  }
}

/** Notes that an operation is public. */
export const recordPublic = (ctx: Context, levels: ReadonlyArray<string>): void => {
  watch(ctx)
  note(ctx, draftOf(ctx, levels.join(' + '), 0))
}

/** Notes that a request was answered with a status that its response does not write. */
export const answeredWith = (response: ServerResponse, status: number): void => {
  const exchange = knownExchange(response)
  if (exchange !== undefined) settle(exchange, status)
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

/** The name of a principal in records, if the application gives it one. */
export const subjectOf = (request: Request, principal: unknown): string | undefined => {
  const subject = settingsOf(request).events?.subject
  if (subject === undefined || principal === undefined) return undefined
  try {
    const answer: unknown = subject(principal)
    return typeof answer === 'string' ? answer : undefined
  } catch {
    // an exception must not prevent the response, so the record has no subject
    return undefined
  }
}

const watch = (ctx: Context): void => {
  if (askedRouters.hasSubscribers) askedRouters.publish(ctx['router'])
  const exchange = exchangeOfResponse(ctx)
  if (exchange.decision !== undefined) return
  exchange.decision = 'undecided'
  ctx.res.on('finish', answered)
  ctx.res.on('close', answered)
}

const note = (ctx: Context, draft: Draft): void => {
  const exchange = exchangeOfResponse(ctx)
  const progress = progressOf(exchange)
  if (progress === 'published') return
  exchange.decision = draft
  if (progress === 'answered') settle(exchange, statusOf(ctx.res))
}

function answered(this: ServerResponse): void {
  answeredWith(this, statusOf(this))
}

// Published when both are there: what was decided, and what was answered
const settle = (exchange: Exchange, status: number): void => {
  const progress = progressOf(exchange)
  if (progress === 'undecided') exchange.decision = 'answered'
  if (typeof progress !== 'object') return
  exchange.decision = 'published'
  progress.status = status
  decisions.publish(Object.freeze(progress))
}

// nginx's status for a client that went away before it was answered
const CLIENT_CLOSED_REQUEST = 499

const statusOf = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent ? statusCode : CLIENT_CLOSED_REQUEST
