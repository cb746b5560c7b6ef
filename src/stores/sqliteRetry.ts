/**
 * Waits for a lock on an SQLite file without blocking the event loop. All callers share one wait.
 */
import type { Client } from '@libsql/client'
import { isBusy, type SqliteConnection } from './sqliteConnection.js'

/** Asks again while the file is locked. After 1.5 seconds it is an outage, and rejects with the failure. */
export type Retry = <A>(ask: (client: Client) => Promise<A>) => Promise<A>

// `roundMs`: how long one wait checks whether the lock is gone
const limits = { giveUpAfterMs: 1500, roundMs: 100, leastPauseMs: 1, furtherPauseMs: 8 }

// locked, or closed by a request that failed
const isPassing = (error: unknown): boolean =>
  isBusy(error) || (error instanceof Error && 'code' in error && error.code === 'CLIENT_CLOSED')

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Makes a retry for a connection. */
export const sqliteRetry = ({ use, isLocked }: Pick<SqliteConnection, 'use' | 'isLocked'>): Retry => {
  let waiting: Promise<void> | undefined
  // A lock has no queue. A process that asks seldom gets it by chance, if another one writes without a pause
  const round = async (): Promise<void> => {
    const until = performance.now() + limits.roundMs
    do await pause(limits.leastPauseMs + Math.random() * limits.furtherPauseMs)
    while (performance.now() < until && (await isLocked()))
  }
  const again = async <A>(ask: (client: Client) => Promise<A>, error: unknown, until: number): Promise<A> => {
    if (!isPassing(error) || performance.now() > until) throw error
    waiting ??= round().finally(() => {
      waiting = undefined
    })
    await waiting
    return use(ask, (next) => again(ask, next, until))
  }
  // a lock causes a failure immediately, so the time begins with the first one
  return (ask) => use(ask, (error) => again(ask, error, performance.now() + limits.giveUpAfterMs))
}
