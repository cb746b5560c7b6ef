// Who may sign in, and the tokens and sessions issued to them.
import { randomBytes } from 'node:crypto'
import type { Client } from '@libsql/client'
import type { SessionUser } from 'koa-with-auth'
import { digest, verifyPassword } from './passwords.js'

const TOKEN_LIFETIME = 3600_000

export const accounts = (database: Client) => ({
  /** The user behind a name and password, if both are right and the account is active. */
  async signIn(username: string, password: string): Promise<SessionUser | undefined> {
    const { rows } = await database.execute({ sql: 'select * from users where username = ?', args: [username] })
    const hash = rows[0]?.['password']
    const verified = await verifyPassword(password, typeof hash === 'string' ? hash : undefined)
    if (!verified || rows[0]?.['is_active'] !== 1) return undefined
    return { username, isSuperuser: rows[0]['is_superuser'] === 1, isStaff: rows[0]['is_staff'] === 1 }
  },

  /** A new token: random, expiring, kept as a digest. */
  async issueToken(username: string): Promise<string> {
    const token = randomBytes(32).toString('base64url')
    await database.execute({
      sql: 'insert into tokens values (?, ?, ?)',
      args: [digest(token), username, Date.now() + TOKEN_LIFETIME],
    })
    return token
  },

  /** Whom a token was issued to, if it is still good and the user still active. */
  async ownerOf(token: string): Promise<{ username: string } | undefined> {
    const { rows } = await database.execute({
      sql: `select username from tokens join users using (username)
            where hash = ? and expires_at > ? and is_active = 1`,
      args: [digest(token), Date.now()],
    })
    const username = rows[0]?.['username']
    return typeof username === 'string' ? { username } : undefined
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
})

/** The sessions cannot be read now: nobody is anonymous for that. */
export class SessionsUnavailable extends Error {}

const load = async (database: Client, id: string): Promise<unknown> => {
  const { rows } = await database.execute({
    sql: 'select data from sessions where id = ? and expires_at > ?',
    args: [id, Date.now()],
  })
  const data = rows[0]?.['data']
  return typeof data === 'string' ? JSON.parse(data) : undefined
}

/** koa-session's store. A logged-out cookie is worth nothing, because its session is gone. */
export const sessionStore = (database: Client) => ({
  async get(id: string, _maxAge: number, { ctx = {} }: { ctx?: object }): Promise<unknown> {
    try {
      return await load(database, id)
    } catch {
      // koa-session would fail every request that has a cookie; this way only what asks for the session fails
      const refuse = () => {
        throw new SessionsUnavailable()
      }
      Object.defineProperty(ctx, 'session', { get: refuse, set: refuse })
      return undefined
    }
  },
  async set(id: string, data: unknown, maxAge: number): Promise<void> {
    await database.execute({
      sql: 'insert into sessions values (?, ?, ?) on conflict do update set data = excluded.data, expires_at = excluded.expires_at',
      args: [id, JSON.stringify(data), Date.now() + maxAge],
    })
  },
  async destroy(id: string): Promise<void> {
    await database.execute({ sql: 'delete from sessions where id = ?', args: [id] })
  },
})
