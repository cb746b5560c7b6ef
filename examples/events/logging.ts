/**
 * Decisions as lines of a log, by pino. A record contains no credential, so nothing has to be redacted.
 *
 * The record is a nested object, because lines of pino and records both have a `level`.
 */
import { on, type Outcome } from 'koa-with-auth/events'
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

/** Writes a line for each decision. Returns a function that ends it. */
export const logDecisions = (logger: Logger): (() => void) =>
  on('decision', (decision) => {
    const { outcome, failure = outcome, method, route, status } = decision
    logger[levels[outcome]]({ auth: decision }, `${method} ${route} ${status} ${failure}`)
  })
