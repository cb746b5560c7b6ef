/** The accounts, in the SQLite file DATABASE_URL. Replace this with your database. */
import { createClient } from '@libsql/client'

export interface Account {
  readonly email: string
  readonly hash: string
  readonly role: 'admin' | 'member'
  // sealed secrets of the authenticator app: the active one, and one that is not confirmed
  readonly totp: string | null
  readonly pending: string | null
}

export const openAccounts = async (url: string) => {
  const database = createClient({ url })
  const run = (sql: string, ...args: Array<string | null>) => database.execute({ sql, args })
  await run('create table if not exists accounts (email text primary key, hash, role, totp, pending)')
  await run('create table if not exists recovery (email text, digest text, primary key (email, digest))')
  return {
    find: async (email: string) => {
      const { rows } = await run('select * from accounts where email = ?', email)
      return rows[0] as unknown as Account | undefined
    },
    all: async () => (await run('select email from accounts order by email')).rows.map(({ email }) => String(email)),
    /** Sets a password, if the account is still as the link found it; a new address gets an account. */
    setPassword: async (email: string, before: string, hash: string, role: Account['role']) => {
      const sql = `insert into accounts (email, hash, role) select ?1, ?3, ?4 where ?2 = '' or exists (select 1 from accounts where email = ?1)
        on conflict (email) do update set hash = excluded.hash where hash = ?2`
      return (await run(sql, email, before, hash, role)).rowsAffected > 0
    },
    renew: ({ email, hash }: Account, made: string) =>
      run('update accounts set hash = ? where email = ? and hash = ?', made, email, hash),
    setPending: (email: string, text: string) => run('update accounts set pending = ? where email = ?', text, email),
    setTotp: async (email: string, sealed: string | null, digests: ReadonlyArray<string>) => {
      await run('update accounts set totp = ?, pending = null where email = ?', sealed, email)
      await run('delete from recovery where email = ?', email)
      for (const digest of digests) await run('insert into recovery values (?, ?)', email, digest)
    },
    useRecovery: async (email: string, digests: ReadonlyArray<string>) => {
      const sql = `delete from recovery where email = ? and digest in (${digests.map(() => '?').join()})`
      return (await run(sql, email, ...digests)).rowsAffected > 0
    },
  }
}
