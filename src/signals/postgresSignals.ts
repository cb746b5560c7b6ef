/** Signals over a channel of PostgreSQL (`listen` and `notify`): entry point `koa-with-auth/stores`. */
import * as is from '../core/checks.js'
import { checkOptions, declareFactory } from '../core/options.js'
import type { PostgresQuery } from '../stores/postgresStore.js'
import type { Signals } from './signals.js'

/** The connections. */
export interface PostgresSignalsOptions {
  /** Runs one statement, as that of `postgresStore`. */
  readonly query: PostgresQuery
  /**
   * Listens to a channel on a connection of its own, not through a pooler in transaction mode. Calls `onPayload` with each payload, and
   * resolves to a function that ends it. It is called again when nothing was heard for a while, so it should connect anew.
   */
  readonly listen: (channel: string, onPayload: (payload: string) => void) => PromiseLike<() => unknown>
}

// A name that needs no quotes
const CHANNEL = 'koa_with_auth_ends'

const statement = 'select pg_notify($1, $2)'

/**
 * Signals for `sessions(app, { signals })` and `apiKeys({ signals })`, which may share them, over one channel of PostgreSQL. Throws a
 * TypeError for options that cannot work.
 *
 * @example
 * import { postgresSignals } from 'koa-with-auth/stores'
 *
 * declare const sql: { // postgres() of postgres.js
 *   unsafe: (sql: string, values: unknown[]) => Promise<object[]>
 *   listen: (channel: string, onPayload: (payload: string) => void) => Promise<{ unlisten: () => Promise<void> }>
 * }
 * const signals = () =>
 *   postgresSignals({
 *     query: (text, values) => sql.unsafe(text, values),
 *     listen: async (channel, onPayload) => (await sql.listen(channel, onPayload)).unlisten,
 *   })
 */
export const postgresSignals = (options: PostgresSignalsOptions): Signals => {
  const { query, listen } = checkOptions('postgresSignals', options, { query: is.hook(2), listen: is.hook(2) })
  let stop: (() => unknown) | undefined
  let calls = 0
  return {
    publish: async (message) => void (await query(statement, [CHANNEL, message])),
    subscribe: async (listener) => {
      const call = ++calls
      const stopping = stop
      stop = undefined
      try {
        await stopping?.()
      } catch {
        // its connection is lost
      }
      const listening = await listen(CHANNEL, (payload) => listener(String(payload)))
      // it was too late: another call has a connection of its own
      if (call !== calls) await listening()
      else stop = listening
    },
  }
}

declareFactory('postgresSignals', postgresSignals)
