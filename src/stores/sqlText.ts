/**
 * Writes the values into a statement of SQL, for a client method that runs a whole string and binds no values.
 */

/** The value for a question mark: a string, a whole number, or null. */
export type SqlValue = string | number | null

// Hexadecimal digits, so that no quote or control character can end the literal
const literal = (value: SqlValue): string =>
  value === null
    ? 'null'
    : typeof value === 'number'
      ? value.toFixed(0)
      : `cast(x'${Buffer.from(value).toString('hex')}' as text)`

/** Replaces the question marks by the values. Throws a TypeError if their numbers differ. */
export const withValues = (sql: string, values: ReadonlyArray<SqlValue>): string => {
  const parts = sql.split('?')
  if (parts.length !== values.length + 1) throw new TypeError('there must be as many values as question marks')
  return parts.map((part, at) => (at === 0 ? part : literal(values[at - 1] ?? null) + part)).join('')
}
