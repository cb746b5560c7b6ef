/** How many guesses at an account one address may use: never so many that the owner of the account is locked out. */
import { describe, expect, it } from 'vitest'
import { sharesOf } from '../../src/guesses/Limiter.js'

const figures = (points?: number, duration?: number) => ({
  consume: async () => undefined,
  reward: async () => undefined,
  points,
  duration,
})
const day = 86_400

type Figures = [points?: number | undefined, duration?: number]

describe('T-05 the share of one address', () => {
  it.each<[description: string, pair: Figures, account: Figures | undefined, share?: number]>([
    ['no limit for the account', [5, 60], undefined],
    ['an account with an unknown limit', [5, 60], []],
    ['a limit for both that never reaches that of the account', [5, 900], [1000, day]],
    ['a limit for both that reaches it in several windows', [5, 900], [480, day], 239],
    ['two windows that overlap one', [5, 60], [10, 60], 4],
    ['two windows that overlap one, and still leave a guess', [5, 60], [11, 60]],
    ['an odd number of guesses: less than half of them', [9, 60], [7, 60], 3],
    ['an even number of guesses: less than half of them', [9, 60], [8, 60], 3],
    ['two guesses: one', [9, 60], [2, 60], 1],
    ['one guess: one', [9, 60], [1, 60], 1],
    ['a limit for both without points', [undefined, 60], [10, 60], 4],
    ['a limit for both without a duration', [5], [100, 60], 49],
    ['an account without a duration', [5, 60], [100], 49],
    ['an account without a duration, and a limit for both that never ends', [5, 0], [100], 49],
    ['a limit for both that never ends', [5, 0], [6, 60]],
    ['a limit for both that never ends, as high as that of the account', [5, 0], [5, 60], 2],
    ['an account whose window never ends', [5, 60], [100, 0], 49],
    ['two limits that never end', [5, 0], [6, 0]],
  ])('%s', (_description, pair, account, share) => {
    expect(sharesOf({ accountAndAddress: figures(...pair), account: account && figures(...account) }).ofAddress).toBe(
      share,
    )
  })

  it('is the limit of an address, if that is lower', () => {
    const limiters = { accountAndAddress: figures(9, 60), account: figures(10, 60) }
    expect(sharesOf(limiters).ofAddress).toBe(4)
    for (const pair of [figures(9, 60), figures(undefined, 60), figures(9)]) {
      expect(sharesOf({ ...limiters, accountAndAddress: pair, address: figures(4, 60) }).ofAddress).toBeUndefined()
    }
  })
})
