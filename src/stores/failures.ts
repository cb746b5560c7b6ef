/** Failures of databases: the codes in an error. An error of a builder of queries has that of its driver in it. */

import { unlessThrown } from '../core/data.js'

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

/** Recognizes errors by their codes, which are separated by blanks. */
export const withCode = (codes: string): ((error: unknown) => boolean) => {
  const known = new Set(codes.split(/\s+/))
  return (error) => codesOf(error).some((code) => known.has(code))
}

/** Goes on after an expected failure. */
export const otherwiseIf =
  <A>(isExpected: (error: unknown) => boolean, next: () => Promise<A>) =>
  async (error: unknown): Promise<A> => {
    if (!isExpected(error)) throw error
    return next()
  }

// Of Node, PostgreSQL (class 08, and a server that shuts down), postgres.js, mysql2, MySQL and MariaDB
const hasLostCode = withCode(
  `ECONNRESET EPIPE 08000 08001 08003 08004 08006 57P01 57P02 57P03 CONNECTION_CLOSED CONNECTION_DESTROYED CONNECTION_ENDED
  PROTOCOL_CONNECTION_LOST ER_SOCKET_UNEXPECTED_CLOSE ER_CMD_CONNECTION_CLOSED ER_CONNECTION_KILLED ER_SERVER_SHUTDOWN
  ER_CLIENT_INTERACTION_TIMEOUT 1053 1927 2006 2013 4031 45009`,
)

/** Whether the connection was lost. pg says it in words alone. */
export const isLost = (error: unknown): boolean =>
  hasLostCode(error) ||
  (error instanceof Error && /connection (?:terminated|is closed|closed)|socket closed/i.test(error.message))

// As Redis begins its errors: `OOM command not allowed ...`
const firstWord = /^[A-Z][A-Z\d_]+\b/

/** The failure as one word without a value: a code, the first word of Redis, or the name of the error. Never throws. */
export const failureWord = (error: unknown): string => unlessThrown(() => wordIn(error)) ?? 'Error'

const wordIn = (error: unknown): string | undefined => {
  const { name, message } = error instanceof Error ? error : new Error('')
  const words = [...codesOf(error), firstWord.exec(message)?.[0] ?? '', name]
  return words.find((word) => /^\w{2,40}$/.test(word))
}
