// Who may sign in.
import type { Client, Row } from '@libsql/client'
import type { SessionUser } from 'koa-with-auth'
import { hash, needsRehash, verify } from 'koa-with-auth/passwords'

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
      const stored = typeof row?.['password'] === 'string' ? row['password'] : undefined
      // without such a user the answer is no, and takes as long
      if (!(await verify(stored, password))) return undefined
      if (stored !== undefined && needsRehash(stored)) {
        // where another sign-in was first, or the password was changed meanwhile, nothing is written
        const args = [await hash(password), username, stored]
        await database.execute({ sql: 'update users set password = ? where username = ? and password = ?', args })
      }
      return userIn(row)
    },
  }
}
