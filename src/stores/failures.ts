/**
 * Failures of databases: what an error says in codes, and what is asked again after it. An error of a builder of queries has that of its
 * driver in it.
 */
import { setTimeout as pause } from 'node:timers/promises'

const WRAPPED_IN = ['cause', 'original', 'parent', 'driverError', 'meta']

/** The codes of an error, and of the errors in it, such as `42P01`, `ECONNRESET` or 1213. */
const codesOf = (error: unknown, depth = 0): ReadonlyArray<string> => {
  if (typeof error !== 'object' || error === null || depth > 4) return []
  const own = ['code', 'errno'].flatMap((name) => {
    const code: unknown = Reflect.get(error, name)
    return typeof code === 'string' || typeof code === 'number' ? [String(code)] : []
  })
  return [...own, ...WRAPPED_IN.flatMap((name) => codesOf(Reflect.get(error, name), depth + 1))]
}

export const hasCode = (error: unknown, codes: ReadonlySet<string>): boolean =>
  codesOf(error).some((code) => codes.has(code))

// Of Node, PostgreSQL (class 08, and a server that shuts down), postgres.js, mysql2, MySQL and MariaDB
const LOST = new Set(
  `ECONNRESET EPIPE 08000 08001 08003 08004 08006 57P01 57P02 57P03 CONNECTION_CLOSED CONNECTION_DESTROYED CONNECTION_ENDED
  PROTOCOL_CONNECTION_LOST ER_SOCKET_UNEXPECTED_CLOSE ER_CMD_CONNECTION_CLOSED ER_CONNECTION_KILLED ER_SERVER_SHUTDOWN
  ER_CLIENT_INTERACTION_TIMEOUT 1053 1927 2006 2013 4031 45009`.split(/\s+/),
)

// pg says it in words alone
const isLost = (error: unknown): boolean =>
  hasCode(error, LOST) ||
  (error instanceof Error && /connection (?:terminated|is closed|closed)|socket closed/i.test(error.message))

/** Asks a read once more if the connection was lost meanwhile. */
export const readAgain = async <A>(ask: () => Promise<A>): Promise<A> => {
  try {
    return await ask()
  } catch (error) {
    if (isLost(error)) return ask()
    throw error
  }
}

// One statement of two that wait for one another was undone, or one that met a newer row
const UNDONE = new Set(['40P01', '40001', '1213', 'ER_LOCK_DEADLOCK', '1020', 'ER_CHECKREAD'])

const MOST_TRIES = 20

/** Asks again what the database has undone as a whole because of what others did. */
export const unlessUndone = async <A>(ask: () => Promise<A>, times = 1): Promise<A> => {
  try {
    return await ask()
  } catch (error) {
    if (times >= MOST_TRIES || !hasCode(error, UNDONE)) throw error
  }
  await pause(Math.random() * 2 * times)
  return unlessUndone(ask, times + 1)
}

// As Redis begins its errors: `OOM command not allowed ...`
const firstWord = /^[A-Z][A-Z\d_]+\b/

/** What failed, as one word without a value: a code, the first word of Redis, or the name of the error. */
export const failureWord = (error: unknown): string => {
  const { name, message } = error instanceof Error ? error : new Error('')
  const words = [...codesOf(error), firstWord.exec(message)?.[0] ?? '', name]
  return words.find((word) => /^\w{2,40}$/.test(word)) ?? 'Error'
}
