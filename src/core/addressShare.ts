/**
 * How many of an account's guesses one address may use. It can never use all of them and lock the account's owner out.
 *
 * The narrow limits often ensure that already: 5 in 15 minutes cannot become 1,000 in a day. If they do not, an address
 * gets less than half of what the account allows, because two of its windows can overlap one window of the account.
 */
import { numberIn, type Limiter, type Limiters } from './Limiter.js'

/** The share of one address; `undefined` if the other limits are narrow enough, or unknown. */
export const addressShare = ({ accountAndAddress, account, address }: Limiters): number | undefined => {
  const points = numberIn(account, 'points')
  if (points === undefined) return undefined
  const most = Math.min(...[accountAndAddress, address].map((one) => mostWithin(one, numberIn(account, 'duration'))))
  return most < points ? undefined : Math.max(1, Math.floor((points - 1) / 2))
}

// How many a limiter lets pass in any `duration` seconds; a duration of 0 never ends
const mostWithin = (limiter: Limiter | undefined, duration: number | undefined): number => {
  const points = numberIn(limiter, 'points')
  const own = numberIn(limiter, 'duration')
  if (points === undefined || own === undefined || duration === undefined) return Infinity
  if (own === 0) return points
  return duration === 0 ? Infinity : points * (Math.ceil(duration / own) + 1)
}
