/** The accounts, in tables of the database. An account keeps its id when its address changes. */
import { randomUUID } from 'node:crypto'
import type { Row, Run } from './store.js'

export interface Account {
  readonly id: string
  readonly email: string
  readonly hash: string
  readonly role: 'admin' | 'member'
  // sealed secrets of the authenticator app: the active one, and one that is not confirmed
  readonly totp: string | null
  readonly pending: string | null
}

const tables = [
  `create table if not exists accounts (id varchar(36) primary key, email varchar(254) not null unique, hash varchar(255) not null,
    role varchar(10) not null, totp varchar(255), pending varchar(255))`,
  'create table if not exists recovery (account varchar(36), digest varchar(64), primary key (account, digest))',
]

// Safe: the columns of the table
const accountIn = (rows: ReadonlyArray<Row>) => rows[0] as unknown as Account | undefined

export const openAccounts = async (run: Run) => {
  // of several processes that start at once, one is told that the table was made meanwhile
  for (const sql of tables) await run(sql).catch(() => run(sql))
  const byId = async (id: string) => accountIn((await run('select * from accounts where id = ?', id)).rows)
  const byEmail = async (email: string) => accountIn((await run('select * from accounts where email = ?', email)).rows)
  const set = async (sql: string, ...values: string[]) =>
    (await run(`update accounts set ${sql}`, ...values)).changed > 0
  /** Whether a change was made: not if another account has the address. */
  const isFree = async (email: string, change: Promise<boolean>) =>
    change.catch(async (error) => {
      if (await byEmail(email)) return false
      throw error
    })
  const setRecovery = async (id: string, digests: ReadonlyArray<string>) => {
    await run('delete from recovery where account = ?', id)
    for (const digest of digests) await run('insert into recovery values (?, ?)', id, digest)
  }
  return {
    byId,
    byEmail,
    all: async () => (await run('select email from accounts order by email')).rows.map(({ email }) => String(email)),
    add: (email: string, hash: string, role: Account['role']) => {
      const sql = 'insert into accounts (id, email, hash, role) values (?, ?, ?, ?)'
      return isFree(email, run(sql, randomUUID(), email, hash, role).then(() => true)) // prettier-ignore
    },
    /** Sets a password, if the one before is still the same. */
    setHash: (id: string, before: string, hash: string) => set('hash = ? where id = ? and hash = ?', hash, id, before),
    setEmail: (id: string, before: string, email: string) =>
      isFree(email, set('email = ? where id = ? and email = ?', email, id, before)),
    setPending: (id: string, sealed: string) => set('pending = ? where id = ?', sealed, id),
    /** Makes the pending secret active. Of two at once, one does. */
    confirm: (id: string, sealed: string) =>
      set('totp = pending, pending = null where id = ? and pending = ?', id, sealed),
    removeApp: async (id: string) => {
      await set('totp = null, pending = null where id = ?', id)
      await setRecovery(id, [])
    },
    setRecovery,
    useRecovery: async (id: string, digests: ReadonlyArray<string>) => {
      const sql = `delete from recovery where account = ? and digest in (${digests.map(() => '?').join()})`
      return (await run(sql, id, ...digests)).changed > 0
    },
    spareCodes: async (id: string) => (await run('select digest from recovery where account = ?', id)).rows.length,
    remove: async (id: string) => {
      await run('delete from accounts where id = ?', id)
      await setRecovery(id, [])
    },
  }
}

export type Accounts = Awaited<ReturnType<typeof openAccounts>>
