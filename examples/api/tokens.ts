// The tokens that POST /token issues: random, expiring, kept as a digest, in the database or in Redis.
import { createHash, randomBytes } from 'node:crypto'
import type { Client } from '@libsql/client'

const LIFETIME = 3600_000

// They are too long to be guessed, so a fast hash is enough
const digest = (token: string): string => createHash('sha256').update(token).digest('hex')

/** Where issued tokens are kept. */
export interface Tokens {
  /** Stores the user of an issued token. */
  readonly keep: (hash: string, username: string, lifetime: number) => Promise<void>
  /** The user of a token, while it is valid. */
  readonly owner: (hash: string) => Promise<string | undefined>
  /** Ends all tokens of a user. */
  readonly end: (username: string) => Promise<void>
}

/** A new token for a user. */
export const issue = async (tokens: Tokens, username: string): Promise<string> => {
  const token = randomBytes(32).toString('base64url')
  await tokens.keep(digest(token), username, LIFETIME)
  return token
}

/** The name of the user of a token. */
export const ownerOf = (tokens: Tokens, token: string): Promise<string | undefined> => tokens.owner(digest(token))

export const databaseTokens = (database: Client): Tokens => ({
  async keep(hash, username, lifetime) {
    await database.execute({
      sql: 'insert into tokens values (?, ?, ?)',
      args: [hash, username, Date.now() + lifetime],
    })
  },
  async owner(hash) {
    const { rows } = await database.execute({
      sql: 'select username from tokens where hash = ? and expires_at > ?',
      args: [hash, Date.now()],
    })
    const username = rows[0]?.['username']
    return typeof username === 'string' ? username : undefined
  },
  async end(username) {
    await database.execute({ sql: 'delete from tokens where username = ?', args: [username] })
  },
})

export const redisTokens = (command: (args: string[]) => Promise<unknown>): Tokens => ({
  async keep(hash, username, lifetime) {
    // First, so that every stored token is found by `end`
    await command(['SADD', `tokens-of:${username}`, hash])
    await command(['PEXPIRE', `tokens-of:${username}`, String(lifetime)])
    await command(['SET', `token:${hash}`, username, 'PX', String(lifetime)])
  },
  async owner(hash) {
    const username = await command(['GET', `token:${hash}`])
    return typeof username === 'string' ? username : undefined
  },
  async end(username) {
    const hashes = await command(['SMEMBERS', `tokens-of:${username}`])
    const keys = Array.isArray(hashes) ? hashes.map((hash) => `token:${String(hash)}`) : []
    await command(['DEL', `tokens-of:${username}`, ...keys])
  },
})
