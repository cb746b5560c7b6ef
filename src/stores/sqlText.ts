/**
 * A statement of SQL with its values in it, for what runs a string as a whole and binds none.
 */

/** What stands for a question mark: a string, a whole number, or null. */
export type SqlValue = string | number | null

// Hexadecimal digits, which no string can break out of, whatever quotes and control characters are in it
const literal = (value: SqlValue): string =>
  value === null
    ? 'null'
    : typeof value === 'number'
      ? value.toFixed(0)
      : `cast(x'${Buffer.from(value).toString('hex')}' as text)`

/** Puts the values in the places of the question marks, of which there must be as many; else a TypeError. */
export const withValues = (sql: string, values: ReadonlyArray<SqlValue>): string => {
  const parts = sql.split('?')
  if (parts.length !== values.length + 1) throw new TypeError('as many values as question marks')
  return parts.map((part, at) => (at === 0 ? part : literal(values[at - 1] ?? null) + part)).join('')
}
