// Counts wrong passwords and codes, and what asks for mails: in the SQLite file, or in Redis.
import type { Client } from '@libsql/client'
import * as E from 'fp-ts/lib/Either.js'
import * as O from 'fp-ts/lib/Option.js'
import * as t from 'io-ts'
import type { Context } from 'koa'
import { authenticator, Challenge, throttled, type Limiter, type Limiters } from 'koa-with-auth'
import { refuse, refuseBy } from './answers.js'

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

// No account has a longer name, so it is wrong before it is counted
const MAX_NAME = 320

const Guess = t.type({ username: t.string, check: t.Function })

/** Counts a guess at an account. It resolves to what `check` found; otherwise the request was answered. */
export type Guessing = <A extends object>(
  ctx: Context,
  username: string,
  check: () => Promise<A | undefined>,
) => Promise<A | undefined>

/** Counts guesses by the same limiters as the kinds of the library do. */
export const guessing = (limiter: Limiters): Guessing => {
  const counted = throttled({ limiter })(
    authenticator({
      challenge: Challenge.make('Form'),
      ambient: true,
      extract: ({ ctx }) => O.fromNullable(ctx.state['guess']),
      credentials: Guess,
      // Safe: only the function below sets it
      authenticate: (_request, { check }) => (check as () => Promise<object | undefined>)(),
    }),
  )
  return async <A extends object>(ctx: Context, username: string, check: () => Promise<A | undefined>) => {
    if (username.length > MAX_NAME) {
      refuse(ctx, 403, 'wrong')
      return undefined
    }
    ctx.state['guess'] = { username, check }
    const result = await counted.evaluate(ctx.request)
    // Safe: the authenticator returns what `check` returned
    if (E.isRight(result)) return result.right as A
    if (result.left._tag === 'raised') throw result.left.error
    if (result.left._tag === 'invalid') refuse(ctx, 403, 'wrong')
    else refuseBy(ctx, result.left)
    return undefined
  }
}
