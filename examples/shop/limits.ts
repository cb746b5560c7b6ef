// Counts wrong passwords and codes, and what asks for mails: in the SQLite file, or in Redis.
import type { Client } from '@libsql/client'
import type { Limiter, Limiters } from 'koa-with-auth'

interface Limit {
  readonly keyPrefix: string
  readonly points: number
  /** In seconds. */
  readonly duration: number
}

export type LimiterOf = (limit: Limit) => Limiter

/** Limiters in an SQLite file, so that several processes count together. */
export const sqliteLimiters = async (database: Client): Promise<LimiterOf> => {
  await database.execute(
    'create table if not exists guesses (key text primary key, points integer not null, until integer not null)',
  )
  const consuming = `insert into guesses values (:key, 1, :until) on conflict (key) do update set
    points = case when until <= :now then 1 else points + 1 end,
    until = case when until <= :now then excluded.until else until end returning points, until`
  return ({ keyPrefix, points, duration }) => ({
    ...{ points, duration },
    consume: async (key) => {
      const now = Date.now()
      const args = { key: `${keyPrefix}:${key}`, now, until: now + duration * 1000 }
      const { rows } = await database.execute({ sql: consuming, args })
      const consumedPoints = Number(rows[0]?.['points'])
      const msBeforeNext = Number(rows[0]?.['until']) - now
      const counted = { consumedPoints, msBeforeNext, remainingPoints: Math.max(0, points - consumedPoints) }
      if (consumedPoints > points) throw counted
      return counted
    },
    reward: (key) =>
      database.execute({
        sql: 'update guesses set points = points - 1 where key = ? and points > 0',
        args: [`${keyPrefix}:${key}`],
      }),
  })
}

const MINUTES = 60
const DAY = 24 * 60 * MINUTES

export const limitersOf = (limiterOf: LimiterOf): Limiters => ({
  accountAndAddress: limiterOf({ keyPrefix: 'account-address', points: 10, duration: 15 * MINUTES }),
  account: limiterOf({ keyPrefix: 'account', points: 3000, duration: DAY }),
})
