/**
 * Tells what was decided about a request, when its answer is settled: once for each guarded request, whatever becomes of it.
 * Of two guards that a request passes, the one that decided last counts.
 *
 * The guard asks whether the channel has subscribers; without one, none of this runs.
 */
import type { ServerResponse } from 'node:http'
import type { Context } from 'koa'
import type { Evaluation } from '../core/Evaluation.js'
import type { AuthError } from '../core/AuthError.js'
import type { Authenticator } from '../core/Authenticator.js'
import { decisions } from '../core/events/channels.js'
import { decided } from '../core/events/decided.js'
import type { Decision } from '../core/events/Decision.js'
import { passedFor, wasRecalled, witnessed } from '../core/events/witnessed.js'
import { decisionMark } from '../core/marks.js'
import { settingsOf } from '../core/Settings.js'
import type { Request } from 'koa'
import * as E from 'fp-ts/lib/Either.js'

/** One decision under way. */
export interface Watch {
  readonly evaluate: (request: Request) => Evaluation<unknown>
  /** Notes what it came to. */
  readonly settled: (result: E.Either<AuthError, unknown>) => void
  /** Notes that the request was refused unread. */
  readonly refused: () => void
}

type Known = Omit<Decision, 'status'>

interface Watched extends ServerResponse {
  [decisionMark]?: { decision: Known | undefined; isAnswered: boolean; readonly answered: (status?: number) => void }
}

/** Watches the decisions of one guard. */
export const watching = (authenticator: Authenticator<unknown>, levels: ReadonlyArray<string>) => {
  const { description } = authenticator
  const level = levels.join(' + ')
  // made where somebody listens, and then once
  let witness: Authenticator<unknown> | undefined
  return (ctx: Context): Watch => {
    const begun = performance.now()
    const note = noteOf(ctx)
    const common = () => ({ level, ...placeOf(ctx), durationMs: performance.now() - begun })
    return {
      evaluate: (request) => (witness ??= witnessed(authenticator)).evaluate(request),
      settled: (result) => {
        const subject = E.isRight(result) ? subjectOf(ctx, result.right) : undefined
        note({
          ...decided(description, result, passedFor(ctx.request), ctx.request),
          ...common(),
          ...(wasRecalled(ctx.request) && { cached: true }),
          ...(subject !== undefined && { subject }),
        })
      },
      refused: () => note({ outcome: 'refused', failure: 'malformed', ...common() }),
    }
  }
}

/** Notes that an operation asks for nothing. */
export const watchPublic = (ctx: Context, levels: ReadonlyArray<string>): void =>
  noteOf(ctx)({ outcome: 'public', level: levels.join(' + '), ...placeOf(ctx), durationMs: 0 })

// The router says which layer runs; a pattern can be a regular expression
const placeOf = ({ method, routerPath }: Context) => ({ method, route: String(routerPath ?? '') })

const subjectOf = (ctx: Context, principal: unknown): string | undefined => {
  const subject = settingsOf(ctx.request).events?.subject
  if (subject === undefined || principal === undefined) return undefined
  try {
    const answer: unknown = subject(principal)
    return typeof answer === 'string' ? answer : undefined
  } catch {
    // a record without a subject is better than no answer
    return undefined
  }
}

// Published when both are there: what was decided, and what was answered
const noteOf = (ctx: Context): ((decision: Known) => void) => {
  const response: Watched = ctx.res
  const before = response[decisionMark]
  if (before !== undefined) return (decision) => (before.decision = decision)
  let given: number | undefined
  const tell = (): void => {
    if (state.decision === undefined || !state.isAnswered) return
    const decision = state.decision
    state.decision = undefined
    decisions.publish(Object.freeze({ ...decision, status: given ?? statusOf(response) }))
  }
  const answered = (status?: number): void => {
    if (state.isAnswered) return
    state.isAnswered = true
    given = status
    tell()
  }
  const state: NonNullable<Watched[typeof decisionMark]> = { decision: undefined, isAnswered: false, answered }
  response[decisionMark] = state
  response.once('finish', answered)
  response.once('close', answered)
  return (decision) => {
    state.decision = decision
    tell()
  }
}

/** Notes that a request was answered with a status that its response does not write. */
export const answeredWith = (response: ServerResponse, status: number): void => {
  const { [decisionMark]: state }: Watched = response
  state?.answered(status)
}

// nginx's word for a client that went away before it was answered
const CLIENT_CLOSED_REQUEST = 499

const statusOf = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent ? statusCode : CLIENT_CLOSED_REQUEST
