// The accounts of the shop, in one SQLite file: names, addresses, hashes of passwords, second factors that the library
// has sealed, and identities of providers. Every change is one statement or one batch, so two processes can share the file.
import { createClient, type Client, type InStatement, type Row } from '@libsql/client'
import { hash } from 'koa-with-auth/passwords'

export interface Account {
  readonly username: string
  /** Where mails go; accounts that a provider made have none. */
  readonly address: string | undefined
  readonly verified: boolean
  /** The hash of the password. */
  readonly password: string | undefined
  /** Whether a second factor is set up. */
  readonly hasFactor: boolean
  readonly isActive: true
}

export interface Identity {
  readonly issuer: string
  readonly subject: string
}

const tables = [
  `create table if not exists users (username text primary key, address text unique, verified integer not null default 0,
    password text, totp text, totp_pending text)`,
  'create table if not exists recovery (username text not null, digest text not null, primary key (username, digest))',
  `create table if not exists identities (issuer text not null, subject text not null, username text not null,
    primary key (issuer, subject))`,
]

// A password and each identity of a provider is a way to sign in, as each passkey is; a mail is none
const ways = `select (select count(*) from users where username = ? and password is not null) +
  (select count(*) from identities where username = ?) as ways`

const text = (row: Row | undefined, name: string): string | undefined => {
  const value = row?.[name]
  return typeof value === 'string' ? value : undefined
}

const accountIn = (row: Row | undefined): Account | undefined => {
  const username = text(row, 'username')
  if (row === undefined || username === undefined) return undefined
  return {
    username,
    address: text(row, 'address'),
    verified: row['verified'] === 1,
    password: text(row, 'password'),
    hasFactor: row['totp'] !== null,
    isActive: true,
  }
}

/** The users of the first start. Everybody can read these passwords, so replace them. */
export const demonstration = ['anna', 'bert']

/** Opens the file, and fills it if it is new. A user who was deleted does not come back. */
export const openAccounts = async (url: string) => {
  const database: Client = createClient({ url, timeout: 1000 })
  await database.execute('pragma journal_mode = wal')
  const { rows } = await database.execute("select 1 from sqlite_master where type = 'table' and name = 'users'")
  const users: InStatement[] = []
  for (const name of rows.length === 0 ? demonstration : []) {
    const args = [name, `${name}@shop.example`, await hash(`${name}-secret`)]
    users.push({ sql: 'insert into users (username, address, password) values (?, ?, ?) on conflict do nothing', args })
  }
  await database.batch([...tables, ...users], 'write')

  const one = async (sql: string, ...args: string[]): Promise<Row | undefined> =>
    (await database.execute({ sql, args })).rows[0]
  const changed = async (sql: string, args: Record<string, string> | string[]): Promise<boolean> =>
    (await database.execute({ sql, args })).rowsAffected > 0
  const rowOf = (username: string) => one('select * from users where username = ?', username)
  const ownerOf = async ({ issuer, subject }: Identity): Promise<string | undefined> =>
    text(await one('select username from identities where issuer = ? and subject = ?', issuer, subject), 'username')

  return {
    database,
    find: async (username: string): Promise<Account | undefined> => accountIn(await rowOf(username)),
    byAddress: async (address: string): Promise<Account | undefined> =>
      accountIn(await one('select * from users where address = ?', address)),

    /** What a link of a reset changes. */
    stampOf: ({ username, address = '', password = '' }: Account): string =>
      JSON.stringify([username, address, password]),
    /** Sets another password, if nothing was changed since the stamp. Of two at once, one does. */
    async setPassword(stamp: string, password: string): Promise<boolean> {
      const [username = '', address = '', stored = ''] = JSON.parse(stamp) as string[]
      const sql = `update users set password = ? where username = ? and coalesce(address, '') = ? and coalesce(password, '') = ?`
      return changed(sql, [await hash(password), username, address, stored])
    },
    /** Keeps a new hash of the same password. */
    renew: ({ username, password = '' }: Account, renewed: string): Promise<boolean> =>
      changed('update users set password = ? where username = ? and password = ?', [renewed, username, password]),
    /** How many ways to sign in a user has, without passkeys. */
    waysOf: async (user: string): Promise<number> => Number((await one(ways, user, user))?.['ways']),
    removePassword: (user: string): Promise<boolean> =>
      changed('update users set password = null where username = ?', [user]),
    /** Notes that the address is the user's, unless something was changed since the stamp. */
    verify: (stamp: string): Promise<boolean> => {
      const [username = '', address = ''] = JSON.parse(stamp) as string[]
      return changed('update users set verified = 1 where username = ? and address = ?', [username, address])
    },

    secretOf: async (username: string) => text(await rowOf(username), 'totp'),
    pendingOf: async (username: string) => text(await rowOf(username), 'totp_pending'),
    enrol: (username: string, sealed: string): Promise<boolean> =>
      changed('update users set totp_pending = ? where username = ?', [sealed, username]),
    /** Makes the pending secret active, with a new set of recovery codes. Of several at once, one does. */
    async activate(user: string, sealed: string, digests: ReadonlyArray<string>): Promise<boolean> {
      const isPending = 'exists (select 1 from users where username = :user and totp_pending = :sealed)'
      const args = { user, sealed }
      const results = await database.batch(
        [
          { sql: `delete from recovery where username = :user and ${isPending}`, args },
          ...digests.map((digest) => ({
            sql: `insert into recovery select :user, :digest where ${isPending}`,
            args: { ...args, digest },
          })),
          {
            sql: 'update users set totp = :sealed, totp_pending = null where username = :user and totp_pending = :sealed',
            args,
          },
        ],
        'write',
      )
      return (results.at(-1)?.rowsAffected ?? 0) > 0
    },
    async setRecovery(username: string, digests: ReadonlyArray<string>): Promise<void> {
      await database.batch(recoverySet(username, digests), 'write')
    },
    useRecovery: (username: string, digests: ReadonlyArray<string>): Promise<boolean> =>
      changed(`delete from recovery where username = ? and digest in (${digests.map(() => '?').join()})`, [
        username,
        ...digests,
      ]),
    async removeFactor(username: string): Promise<void> {
      const sql = 'update users set totp = null, totp_pending = null where username = ?'
      await database.batch([{ sql, args: [username] }, ...recoverySet(username, [])], 'write')
    },

    ownerOf,
    /** The account of an identity. A new one gets an account of this name, unless the name is taken. */
    async withIdentity({ issuer, subject }: Identity, name: string): Promise<Account | undefined> {
      const known = await ownerOf({ issuer, subject })
      if (known !== undefined) return accountIn(await rowOf(known))
      const account = `insert into users (username) select ?
        where not exists (select 1 from identities where issuer = ? and subject = ?) on conflict do nothing`
      const identity = 'insert into identities select ?, ?, ? where changes() = 1 on conflict do nothing'
      await database.batch(
        [
          { sql: account, args: [name, issuer, subject] },
          { sql: identity, args: [issuer, subject, name] },
        ],
        'write',
      )
      const owner = await ownerOf({ issuer, subject })
      return owner === undefined ? undefined : accountIn(await rowOf(owner))
    },
    /** Adds an identity, and resolves to whether it is this account's now. One of another account stays there. */
    async link(username: string, { issuer, subject }: Identity): Promise<boolean> {
      await changed('insert into identities values (?, ?, ?) on conflict do nothing', [issuer, subject, username])
      return (await ownerOf({ issuer, subject })) === username
    },
    async identitiesOf(username: string): Promise<ReadonlyArray<Identity>> {
      const sql = 'select issuer, subject from identities where username = ? order by issuer, subject'
      const found = await database.execute({ sql, args: [username] })
      return found.rows.map((row) => ({ issuer: text(row, 'issuer') ?? '', subject: text(row, 'subject') ?? '' }))
    },
    close: () => database.close(),
  }
}

const recoverySet = (username: string, digests: ReadonlyArray<string>): InStatement[] => [
  { sql: 'delete from recovery where username = ?', args: [username] },
  ...digests.map((digest) => ({ sql: 'insert into recovery values (?, ?)', args: [username, digest] })),
]

export type Accounts = Awaited<ReturnType<typeof openAccounts>>
