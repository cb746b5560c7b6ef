/**
 * Decisions as lines of a log, by pino. A record has no credential in it, so nothing has to be redacted.
 *
 * The record is a member of its own: pino's lines have a `level`, and so have records.
 */
import { onDecision, type Outcome } from 'koa-with-auth/events'
import type { Logger } from 'pino'

const levels: Readonly<Record<Outcome, 'debug' | 'info' | 'warn' | 'error'>> = {
  accepted: 'debug',
  anonymous: 'debug',
  public: 'debug',
  refused: 'info',
  forbidden: 'warn',
  throttled: 'warn',
  unavailable: 'error',
  raised: 'error',
}

/** Writes a line for each decision; returns a function that ends it. */
export const logDecisions = (logger: Logger): (() => void) =>
  onDecision((decision) => {
    const { outcome, failure = outcome, method, route, status } = decision
    logger[levels[outcome]]({ auth: decision }, `${method} ${route} ${status} ${failure}`)
  })
