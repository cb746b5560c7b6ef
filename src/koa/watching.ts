/**
 * Reports the decision about each guarded request once, when its response has ended, even if the client has gone. If a
 * request passes two guards, the one that decided last counts.
 *
 * Without a subscriber of the channel, none of this runs. With one, a request pays for one object, which is the record,
 * and two listeners that all requests share.
 */
import type { ServerResponse } from 'node:http'
import * as E from 'fp-ts/lib/Either.js'
import type { Context, Request } from 'koa'
import { newAttempt, type Attempt } from '../core/Attempt.js'
import type { AuthError } from '../core/AuthError.js'
import type { Authenticator } from '../core/Authenticator.js'
import type { Evaluation } from '../core/Result.js'
import { decisions } from '../core/events.js'
import { decidedBy, witnessed, type Decided, type Draft } from '../core/decided.js'
import { decisionMark } from '../core/data.js'
import { settingsOf } from '../core/Settings.js'

/** Watches the decisions of one guard. */
interface Watching {
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

// What is known of a request: nothing yet; that it was answered before it was decided; its record; that this is
// published
type Progress = 'undecided' | 'answered' | Draft | 'published'

interface Watched extends ServerResponse {
  [decisionMark]?: Progress
}

/** Watches the decisions of an authenticator. */
export const watching = (authenticator: Authenticator<unknown>, levels: ReadonlyArray<string>): Watching => {
  const level = levels.join(' + ')
  // made once, when there is a subscriber
  let witness: Authenticator<unknown> | undefined
  let decided: Decided | undefined
  return {
    begin: (ctx) => {
      watch(ctx.res)
      return { attempt: newAttempt(ctx.request), at: performance.now() }
    },
    evaluate: ({ attempt }) => (witness ??= witnessed(authenticator)).evaluate(attempt.request, attempt),
    settled: (ctx, { attempt, at }, result) => {
      const { request } = ctx
      const draft = draftOf(ctx, level, performance.now() - at)
      decided ??= decidedBy(authenticator.description)
      decided(draft, result, attempt.passed ?? [], request)
      if (attempt.isRecalled) draft.cached = true
      const subject = E.isRight(result) ? subjectOf(request, result.right) : undefined
      if (subject !== undefined) draft.subject = subject
      note(ctx.res, draft)
    },
    refused: (ctx, { at }) => {
      const draft = draftOf(ctx, level, performance.now() - at)
      draft.outcome = 'refused'
      draft.failure = 'malformed'
      note(ctx.res, draft)
    },
  }
}

/** Notes that an operation is public. */
export const watchPublic = (ctx: Context, levels: ReadonlyArray<string>): void => {
  watch(ctx.res)
  note(ctx.res, draftOf(ctx, levels.join(' + '), 0))
}

/** Notes that a request was answered with a status that its response does not write. */
export const answeredWith = (response: ServerResponse, status: number): void => settle(response, status)

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

const watch = (response: Watched): void => {
  if (response[decisionMark] !== undefined) return
  response[decisionMark] = 'undecided'
  response.on('finish', answered)
  response.on('close', answered)
}

const note = (response: Watched, draft: Draft): void => {
  const progress = response[decisionMark]
  if (progress === 'published') return
  response[decisionMark] = draft
  if (progress === 'answered') settle(response, statusOf(response))
}

function answered(this: ServerResponse): void {
  settle(this, statusOf(this))
}

// Published when both are there: what was decided, and what was answered
const settle = (response: Watched, status: number): void => {
  const progress = response[decisionMark]
  if (progress === 'undecided') response[decisionMark] = 'answered'
  if (typeof progress !== 'object') return
  response[decisionMark] = 'published'
  progress.status = status
  decisions.publish(Object.freeze(progress))
}

// nginx's status for a client that went away before it was answered
const CLIENT_CLOSED_REQUEST = 499

const statusOf = ({ headersSent, statusCode }: ServerResponse): number =>
  headersSent ? statusCode : CLIENT_CLOSED_REQUEST
