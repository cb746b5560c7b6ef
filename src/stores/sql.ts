/**
 * The common part of the engines in SQL: the statements, and how expired rows go. An engine runs statements, and does not know their meaning.
 *
 * There are two tables. `auth_texts` has a row for each key, whose text is null after it was ended. `auth_members` has a row for each
 * member of a set. Both have `until`, in milliseconds since 1970. Each statement finds its rows by a key or an index, so it takes as long
 * with a thousand rows as with a hundred million.
 */
import { identity } from 'fp-ts/lib/function.js'
import { digest } from '../crypto/secrets.js'
import { fewAtOnce, wholeLifetime, type Store } from './Store.js'

export type SqlValue = string | number | null

export type SqlRow = Readonly<Record<string, unknown>>

interface Dialect {
  /** The tables, as they are written in statements. */
  readonly texts?: string
  readonly sets?: string
  /** In milliseconds. */
  readonly now: string
  /** A string as a value, a lifetime as one, and a column of strings. Default: `?`, and the column. */
  readonly text?: string
  readonly lifetime?: string
  readonly column?: (name: string) => string
  /** The clauses of `insert`, `end` and `add` for a row that is there. */
  readonly conflicts: Readonly<Record<'insert' | 'end' | 'add', string>>
  /** Deletes a few expired rows of a table with this primary key, without waiting for locks of others. */
  readonly pruning: (table: string, key: string) => string
}

/** The statements, with `?` for each value. An expired row counts as missing. */
export const statementsIn = (dialect: Dialect) => {
  const { texts = 'auth_texts', sets = 'auth_members', now, conflicts, pruning } = dialect
  const { text = '?', lifetime = '?', column = identity } = dialect
  const until = `${now} + ${lifetime}`
  const live = `until > ${now}`
  const update = `update ${texts} set text = ${text}, until = ${until} where id = ${text} and text is not null and ${live}`
  return {
    get: (keys: number) =>
      `select ${column('id')}, ${column('text')} from ${texts} where id in (${Array(keys).fill(text).join(', ')}) and text is not null and ${live}`,
    insert: `insert into ${texts} (id, text, until) values (${text}, ${text}, ${until}) ${conflicts.insert}`,
    update,
    updateIf: `${update} and text = ${text}`,
    end: `insert into ${texts} (id, text, until) values (${text}, null, ${until}) ${conflicts.end}`,
    add: `insert into ${sets} (set_id, member, until) values (${text}, ${text}, ${until}) ${conflicts.add}`,
    members: `select ${column('member')} from ${sets} where set_id = ${text} and ${live}`,
    prunings: [pruning(texts, 'id'), pruning(sets, 'set_id, member')],
  }
}

/** The statements that create the tables, each of which can run twice. `types`: those of keys, members and texts. */
export const tablesIn = (
  end = '',
  nameOf = identity<string>,
  types = ['text', 'text', 'text'],
  isIndexInside = false,
) => {
  const [key, member, text] = types
  const made = (name: string, columns: ReadonlyArray<string>, primary: string): ReadonlyArray<string> => {
    const index = isIndexInside ? [`key ${name}_until (until)`] : []
    const lines = [...columns, 'until bigint not null', `primary key (${primary})`, ...index]
    const table = `create table if not exists ${nameOf(name)} (\n  ${lines.join(',\n  ')}\n)${end}`
    return isIndexInside ? [table] : [table, `create index if not exists ${name}_until on ${nameOf(name)} (until)`]
  }
  const texts = made('auth_texts', [`id ${key} not null`, `text ${text}`], 'id')
  return [...texts, ...made('auth_members', [`set_id ${key} not null`, `member ${member} not null`], 'set_id, member')]
}

/** The conflicts of a database that knows `on conflict`. */
export const onConflict = (now: string, greatest: 'greatest' | 'max'): Dialect['conflicts'] => ({
  insert: `on conflict (id) do update set text = excluded.text, until = excluded.until where auth_texts.until <= ${now}`,
  end: `on conflict (id) do update set text = null,
until = case when auth_texts.text is null then ${greatest}(auth_texts.until, excluded.until) else excluded.until end`,
  add: `on conflict (set_id, member) do update set until = ${greatest}(auth_members.until, excluded.until)`,
})

interface SqlEngine {
  readonly statements: ReturnType<typeof statementsIn>
  readonly read: (sql: string, values: ReadonlyArray<SqlValue>) => Promise<ReadonlyArray<SqlRow>>
  readonly change: (sql: string, values: ReadonlyArray<SqlValue>) => Promise<boolean>
  /** How a string is written as a value, and read in a row, if it is not written as it is. */
  readonly written?: (text: string) => string
  readonly readText?: (column: unknown) => string
  /** Called after each write, which waits for its promise, if it returns a promise. */
  readonly prune: () => Promise<void> | undefined
}

// The longest values that the index of a table can hold in each database, in bytes
const LONGEST_KEY = 500
const LONGEST_MEMBER = 2000

/** Throws a RangeError for a string that would come back changed, because UTF-8 cannot write it. */
export const wellFormed = (text: string): string => {
  if (text.isWellFormed()) return text
  throw new RangeError('a store keeps well-formed strings only, and this string has half of a surrogate pair')
}

/** How a database writes strings that cannot hold a NUL: it or its driver would cut the string there. Throws a RangeError for such a string. */
export const withoutNul =
  (database: string) =>
  (text: string): string => {
    if (!text.includes('\0')) return text
    throw new RangeError(`${database} keeps no NUL in a string`)
  }

// A character has three bytes at most
const isShort = (text: string, longest: number): boolean =>
  3 * text.length <= longest || Buffer.byteLength(text) <= longest

const storedKey = (key: string): string => (isShort(wellFormed(key), LONGEST_KEY) ? key : `sha256 ${digest(key)}`)

const storedMember = (member: string): string => {
  if (isShort(wellFormed(member), LONGEST_MEMBER)) return member
  throw new RangeError(`a member has at most ${LONGEST_MEMBER} bytes`)
}

const columnText = (column: unknown): string => {
  if (typeof column === 'string') return column
  throw new TypeError('a row of the store has a column that is no string')
}

export const sqlStore = ({ statements, read, ...engine }: SqlEngine): Store => {
  const { written = identity, readText = columnText } = engine
  const change = async (sql: string, ...values: ReadonlyArray<SqlValue>): Promise<boolean> => {
    const isChanged = await engine.change(sql, values)
    await engine.prune()
    return isChanged
  }
  const key = (given: string): string => written(storedKey(given))
  const text = (given: string): string => written(wellFormed(given))
  // by the number of keys, because each request of a session asks
  const selects: string[] = []
  const get = async (keys: ReadonlyArray<string>): Promise<ReadonlyArray<string | undefined>> => {
    const select = (selects[keys.length] ??= statements.get(keys.length))
    const rows = await read(select, keys.map(key))
    const found = new Map(rows.map((row) => [readText(row['id']), readText(row['text'])]))
    return keys.map((one) => found.get(storedKey(one)))
  }
  return {
    get: fewAtOnce(get),
    insert: async (id, kept, lifetime) => change(statements.insert, key(id), text(kept), wholeLifetime(lifetime)),
    update: async (id, kept, lifetime, was) => {
      const values = [text(kept), wholeLifetime(lifetime), key(id)]
      return was === undefined
        ? change(statements.update, ...values)
        : change(statements.updateIf, ...values, text(was))
    },
    end: async (id, lifetime) => void (await change(statements.end, key(id), wholeLifetime(lifetime))),
    add: async (set, member, lifetime) =>
      void (await change(statements.add, key(set), written(storedMember(member)), wholeLifetime(lifetime))),
    members: async (set) => (await read(statements.members, [key(set)])).map((row) => readText(row['member'])),
  }
}

const PRUNE_EVERY = 1000
// A client that lost its connection may never answer
const PRUNE_AGAIN = 300_000

/**
 * Prunes beside writes, at most once a second, and again at the next write where there may be more. `run` resolves to how many rows went.
 * A failure of it is ignored: the rows stay, and the write before it is good.
 */
export const besideWrites = (
  prunings: ReadonlyArray<string>,
  run: (pruning: string) => Promise<number>,
  atOnce: number,
): (() => Promise<void> | undefined) => {
  let dueAt = 0
  const prune = async (): Promise<void> => {
    dueAt = performance.now() + PRUNE_AGAIN
    let mayBeMore = false
    try {
      for (const pruning of prunings) if ((await run(pruning)) >= atOnce) mayBeMore = true
    } catch {
      mayBeMore = false
    }
    dueAt = mayBeMore ? 0 : performance.now() + PRUNE_EVERY
  }
  return () => (performance.now() >= dueAt ? prune() : undefined)
}
