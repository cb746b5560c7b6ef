/** A grant at a provider that has ended while an operation ran: its guard answers, if the operation does not. */
import type { Context, Middleware, Next } from 'koa'
import { because, expired, type AuthError } from '../core/AuthError.js'
import { channels } from '../core/events.js'

/** A mark, so that two copies of the package recognize each other's errors. */
export const goneMark: unique symbol = Symbol.for('koa-with-auth/gone')

/** An error that says that a grant has ended. */
export interface Gone extends Error {
  readonly [goneMark]: {
    /** Answers instead of the 401. */
    readonly onGone?: Middleware | undefined
  }
}

// The channel is one object in a process, for two copies of the package, too
// Safe: this file alone writes the property
const upstreamChannel = channels.upstream as object as { [goneMark]?: true }

/** Notes that operations of this process call a provider, so that guards look at their errors. */
export const expectGone = (): void => {
  upstreamChannel[goneMark] = true
}

export const isGoneExpected = (): boolean => upstreamChannel[goneMark] === true

export const isGone = (error: unknown): error is Gone => error instanceof Error && goneMark in error

/** The failure: the caller is known, and must begin at the provider again. */
const gone: AuthError = because(expired, 'upstream')

// Answers an error once, although a hook that answers it may throw another
const answeredContexts = new WeakSet<Context>()

/** Answers by the hook of the application, or by `refuse` with the failure. */
export const answerGone = async (
  ctx: Context,
  next: Next,
  error: Gone,
  refuse: (failure: AuthError) => void | Promise<void>,
): Promise<void> => {
  const { onGone } = error[goneMark]
  if (onGone === undefined || answeredContexts.has(ctx)) return refuse(gone)
  answeredContexts.add(ctx)
  try {
    await onGone(ctx, next)
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown
    return refuse(gone)
  }
}
