// Who may sign in.
import type { Client, Row } from '@libsql/client'
import type { SessionUser } from 'koa-with-auth/sessions'
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
    /** An active user. Sessions and tokens contain only the name, so a right that is removed is gone immediately. */
    userOf: async (username: string): Promise<SessionUser | undefined> => userIn(await rowOf(username)),

    /** The user behind a name and password, if both are right and the account is active. */
    async signIn(username: string, password: string): Promise<SessionUser | undefined> {
      const row = await rowOf(username)
      const stored = typeof row?.['password'] === 'string' ? row['password'] : undefined
      // Without such a user the result is false, after the same work
      if (!(await verify(stored, password))) return undefined
      if (stored !== undefined && needsRehash(stored)) {
        // If another sign-in was first, or the password was changed meanwhile, nothing is written
        const args = [await hash(password), username, stored]
        await database.execute({ sql: 'update users set password = ? where username = ? and password = ?', args })
      }
      return userIn(row)
    },
  }
}
