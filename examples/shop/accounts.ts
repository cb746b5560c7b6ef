// The accounts of the shop: names, addresses, hashes of passwords, second factors that the library has sealed, and identities of providers.
// Every change is one statement, or can be begun again, so several processes share the database, and a crash leaves nothing half.
import { hash } from 'koa-with-auth/passwords'
import type { Database, Row } from './database.js'

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

// `recovery` has the digests of the recovery codes, with blanks between them; `made_by` is the identity that made the account
const tablesOf = ({ key, options }: Database): ReadonlyArray<string> => [
  `create table if not exists shop_users (username ${key} primary key, address ${key} unique, verified integer not null default 0,
    password text, totp text, totp_pending text, recovery text, made_by text) ${options}`,
  `create table if not exists shop_identities (issuer ${key} not null, subject ${key} not null, username ${key} not null,
    primary key (issuer, subject)) ${options}`,
]

// A password and each identity of a provider is a way to sign in, as each passkey is; a mail is none
const ways = `select (select count(*) from shop_users where username = ? and password is not null) +
  (select count(*) from shop_identities where username = ?) as ways`

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
    hasFactor: text(row, 'totp') !== undefined,
    isActive: true,
  }
}

/** The users of the first start. Everybody can read these passwords, so replace them. */
export const demonstration = ['anna', 'bert']

const fill = async ({ run, unlessThere }: Database): Promise<void> => {
  const { rows } = await run('select count(*) as users from shop_users')
  if (Number(rows[0]?.['users']) > 0) return
  const users = await Promise.all(
    demonstration.map(async (name) => [name, `${name}@shop.example`, await hash(`${name}-secret`)]),
  )
  const values = users.map(() => '(?, ?, ?)').join()
  const sql = `insert into shop_users (username, address, password) values ${values} ${unlessThere('username')}`
  await run(sql, ...users.flat())
}

/** Makes the tables, and fills them if they are new. A user who was deleted does not come back. */
export const openAccounts = async (database: Database) => {
  const { run, unlessThere } = database
  for (const table of tablesOf(database)) await run(table)
  await fill(database)

  const one = async (sql: string, ...values: string[]): Promise<Row | undefined> => (await run(sql, ...values)).rows[0]
  const changed = async (sql: string, ...values: Array<string | null>): Promise<boolean> =>
    (await run(sql, ...values)).changed > 0
  const rowOf = (username: string) => one('select * from shop_users where username = ?', username)
  const ownerOf = async ({ issuer, subject }: Identity): Promise<string | undefined> =>
    text(
      await one('select username from shop_identities where issuer = ? and subject = ?', issuer, subject),
      'username',
    )

  return {
    find: async (username: string): Promise<Account | undefined> => accountIn(await rowOf(username)),
    byAddress: async (address: string): Promise<Account | undefined> =>
      accountIn(await one('select * from shop_users where address = ?', address)),

    /** What a link of a reset changes. */
    stampOf: ({ username, address = '', password = '' }: Account): string =>
      JSON.stringify([username, address, password]),
    /** Sets another password, if nothing was changed since the stamp. Of two at once, one does. */
    async setPassword(stamp: string, password: string): Promise<boolean> {
      const [username = '', address = '', stored = ''] = JSON.parse(stamp) as string[]
      const sql = `update shop_users set password = ? where username = ? and coalesce(address, '') = ? and coalesce(password, '') = ?`
      return changed(sql, await hash(password), username, address, stored)
    },
    /** Keeps a new hash of the same password. */
    renew: ({ username, password = '' }: Account, renewed: string): Promise<boolean> =>
      changed('update shop_users set password = ? where username = ? and password = ?', renewed, username, password),
    /** How many ways to sign in a user has, without passkeys. */
    waysOf: async (user: string): Promise<number> => Number((await one(ways, user, user))?.['ways']),
    removePassword: (user: string): Promise<boolean> =>
      changed('update shop_users set password = null where username = ?', user),
    /** Notes that the address is the user's, unless something was changed since the stamp. */
    verify: (stamp: string): Promise<boolean> => {
      const [username = '', address = ''] = JSON.parse(stamp) as string[]
      return changed('update shop_users set verified = 1 where username = ? and address = ?', username, address)
    },

    secretOf: async (username: string) => text(await rowOf(username), 'totp'),
    pendingOf: async (username: string) => text(await rowOf(username), 'totp_pending'),
    enrol: (username: string, sealed: string): Promise<boolean> =>
      changed('update shop_users set totp_pending = ? where username = ?', sealed, username),
    /** Makes the pending secret active, with a new set of recovery codes. Of several at once, one does. */
    activate: (user: string, sealed: string, digests: ReadonlyArray<string>): Promise<boolean> => {
      const sql = `update shop_users set totp = ?, totp_pending = null, recovery = ? where username = ? and totp_pending = ?`
      return changed(sql, sealed, digests.join(' '), user, sealed)
    },
    setRecovery: (username: string, digests: ReadonlyArray<string>): Promise<boolean> =>
      changed('update shop_users set recovery = ? where username = ?', digests.join(' '), username),
    /** Takes one of these out of the set, and resolves to whether it was there. Of two at once, the later one looks again. */
    async useRecovery(username: string, digests: ReadonlyArray<string>): Promise<boolean> {
      for (;;) {
        const kept = text(await rowOf(username), 'recovery') ?? ''
        const all = kept.split(' ')
        const left = all.filter((one) => !digests.includes(one))
        if (left.length === all.length) return false
        const sql = 'update shop_users set recovery = ? where username = ? and recovery = ?'
        if (await changed(sql, left.join(' '), username, kept)) return true
      }
    },
    removeFactor: (username: string): Promise<boolean> =>
      changed('update shop_users set totp = null, totp_pending = null, recovery = null where username = ?', username),

    ownerOf,
    /** The account of an identity. A new one gets an account of this name, unless the name is taken. */
    async withIdentity({ issuer, subject }: Identity, name: string): Promise<Account | undefined> {
      const known = await ownerOf({ issuer, subject })
      if (known !== undefined) return accountIn(await rowOf(known))
      const by = JSON.stringify([issuer, subject])
      await run(`insert into shop_users (username, made_by) values (?, ?) ${unlessThere('username')}`, name, by)
      // whoever made the account, also if its process ended before the identity was written
      const identity = `insert into shop_identities (issuer, subject, username) select ?, ?, username from shop_users
        where username = ? and made_by = ? ${unlessThere('shop_identities.username')}`
      await run(identity, issuer, subject, name, by)
      const owner = await ownerOf({ issuer, subject })
      return owner === undefined ? undefined : accountIn(await rowOf(owner))
    },
    /** Adds an identity, and resolves to whether it is this account's now. One of another account stays there. */
    async link(username: string, { issuer, subject }: Identity): Promise<boolean> {
      const sql = `insert into shop_identities (issuer, subject, username) values (?, ?, ?) ${unlessThere('username')}`
      await run(sql, issuer, subject, username)
      return (await ownerOf({ issuer, subject })) === username
    },
    async identitiesOf(username: string): Promise<ReadonlyArray<Identity>> {
      const sql = 'select issuer, subject from shop_identities where username = ? order by issuer, subject'
      const { rows } = await run(sql, username)
      return rows.map((row) => ({ issuer: text(row, 'issuer') ?? '', subject: text(row, 'subject') ?? '' }))
    },
  }
}

export type Accounts = Awaited<ReturnType<typeof openAccounts>>
