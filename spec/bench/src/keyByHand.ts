/**
 * The check of an API key that a careful developer would write by hand: one header line, the form and the checksum of
 * the key, its SHA-256, one statement of one client with a time limit, a check of the result, whether the key is
 * revoked or expired, and a principal with Dates. It knows one kind of key and one database. It has no touch, and no
 * events.
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Client } from '@libsql/client'
import type { Context } from 'koa'
import { accept, deny, once } from './byHand.js'

interface Kept {
  readonly id: string
  readonly owner: string
  readonly name: string
  readonly scopes: ReadonlyArray<string>
  readonly prefix?: string
  readonly last4?: string
  readonly createdAt: number
  readonly expiresAt?: number
  readonly revokedAt?: number
  readonly rotatedAt?: number
  readonly lastUsedAt?: number
}
interface Looked {
  readonly kept: Kept
  readonly until: number
}

/** The record under a digest, and when the secret ends. */
export type LookUp = (digest: string) => Promise<Looked | undefined>

const keptIn = (text: string): Kept => {
  const kept: unknown = JSON.parse(text)
  if (typeof kept !== 'object' || kept === null) throw new TypeError('no record')
  const { id, owner, name, scopes, createdAt } = kept as Partial<Kept>
  if (typeof id !== 'string' || typeof owner !== 'string' || typeof name !== 'string') throw new TypeError('no record')
  if (!Array.isArray(scopes) || typeof createdAt !== 'number') throw new TypeError('no record')
  return kept as Kept
}

const statement = 'select until, record from auth_key_digests join auth_keys using (id) where digest in (?)'

export const lookUpInSqlite =
  (client: Client): LookUp =>
  async (digest) => {
    const { rows } = await client.execute({ sql: statement, args: [digest] })
    const row = rows[0]
    if (row === undefined) return undefined
    const until = row['until']
    return { kept: keptIn(String(row['record'])), until: typeof until === 'number' ? until : Infinity }
  }

export const lookUpInRedis =
  (command: (args: string[]) => Promise<unknown>): LookUp =>
  async (digest) => {
    const found = await command(['GET', `{koa-with-auth:keys}:digest:${digest}`])
    if (typeof found !== 'string') return undefined
    const begin = digest.length + 1
    const blank = found.indexOf(' ', begin)
    const until = blank === begin ? Infinity : Number(found.slice(begin, blank))
    return { kept: keptIn(found.slice(blank + 1)), until }
  }

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const hasChecksum = (key: string): boolean => {
  let rest = crc32(key.slice(0, -6))
  for (let at = key.length - 1; at >= key.length - 6; at--) {
    if (alphabet[rest % 62] !== key[at]) return false
    rest = Math.floor(rest / 62)
  }
  return true
}

const dateOf = (time: number | undefined): Date | undefined => (time === undefined ? undefined : new Date(time))
const principalOf = (kept: Kept, end: number) => ({
  id: kept.id,
  owner: kept.owner,
  name: kept.name,
  scopes: Object.freeze(kept.scopes),
  prefix: kept.prefix,
  last4: kept.last4,
  createdAt: new Date(kept.createdAt),
  expiresAt: end === Infinity ? undefined : new Date(end),
  rotatedAt: dateOf(kept.rotatedAt),
  lastUsedAt: dateOf(kept.lastUsedAt),
})

const TIMEOUT = 2000
const inTime = <A>(answer: Promise<A>): Promise<A> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the store is silent')), TIMEOUT)
    answer.then(
      (value) => {
        clearTimeout(timer)
        resolve(value)
      },
      (error: Error) => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

/** Whether a request is accepted. Otherwise it writes the response. */
export const keyByHand = (prefix: string, lookUp: LookUp): ((ctx: Context) => Promise<boolean>) => {
  const form = new RegExp(`^${prefix}_[0-9A-Za-z]{38}$`)
  const found = async (key: string | undefined) => {
    if (key === undefined || !form.test(key) || !hasChecksum(key)) return undefined
    const looked = await inTime(lookUp(hash('sha256', key)))
    if (looked === undefined || looked.kept.revokedAt !== undefined) return undefined
    const end = Math.min(looked.kept.expiresAt ?? Infinity, looked.until)
    return end <= Date.now() ? undefined : principalOf(looked.kept, end)
  }
  return async (ctx) => {
    try {
      const principal = await found(once(ctx, 'x-api-key'))
      if (principal === undefined) deny(ctx, 'ApiKey realm="api", in="header", name="X-API-Key"', 'X-API-Key')
      else accept(ctx, principal, 'X-API-Key')
      return principal !== undefined
    } catch {
      ctx.set('Retry-After', '5')
      ctx.status = 503
      return false
    }
  }
}
