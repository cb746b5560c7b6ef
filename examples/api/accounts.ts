// Who may sign in, and which clients there are.
import type { Client, Row } from '@libsql/client'
import type { SessionUser } from 'koa-with-auth'
import { digest, verifyPassword } from './passwords.js'

const userIn = (row: Row | undefined): SessionUser | undefined => {
  if (row === undefined || typeof row['username'] !== 'string' || row['is_active'] !== 1) return undefined
  return { username: row['username'], isSuperuser: row['is_superuser'] === 1, isStaff: row['is_staff'] === 1 }
}

export const accounts = (database: Client) => {
  const rowOf = async (username: string): Promise<Row | undefined> => {
    const { rows } = await database.execute({ sql: 'select * from users where username = ?', args: [username] })
    return rows[0]
  }
  return {
    /** An active user. Sessions and tokens hold the name alone, so that a right that is taken away is gone at once. */
    userOf: async (username: string): Promise<SessionUser | undefined> => userIn(await rowOf(username)),

    /** The user behind a name and password, if both are right and the account is active. */
    async signIn(username: string, password: string): Promise<SessionUser | undefined> {
      const row = await rowOf(username)
      const hash = row?.['password']
      const verified = await verifyPassword(password, typeof hash === 'string' ? hash : undefined)
      return verified ? userIn(row) : undefined
    },

    /** The client that an API key belongs to. */
    async clientOf(key: string): Promise<{ name: string } | undefined> {
      const { rows } = await database.execute({
        sql: 'select name from clients where api_key_hash = ?',
        args: [digest(key)],
      })
      const name = rows[0]?.['name']
      return typeof name === 'string' ? { name } : undefined
    },
  }
}
