/** `refusedGuesses` knows for how long a guess is refused, and keeps a bounded number of them. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { refusedGuesses } from '../../src/guesses/throttled.js'

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('refused guesses', () => {
  it('M-07 a guess stays refused for as many seconds as its limiter says', () => {
    const refused = refusedGuesses()
    refused.add('a', 60)
    vi.advanceTimersByTime(59_999)
    expect(refused.has('a')).toBe(true)
    vi.advanceTimersByTime(1)
    expect(refused.has('a')).toBe(false)
    expect(refused.isEmpty()).toBe(true)
  })

  it('M-07 a guess whose limiter does not say stays refused until it is deleted', () => {
    const refused = refusedGuesses()
    refused.add('a', undefined)
    vi.advanceTimersByTime(9_000_000_000)
    expect([refused.has('a'), refused.has('b')]).toStrictEqual([true, false])
    refused.delete('a')
    expect(refused.has('a')).toBe(false)
  })

  it('the oldest is dropped if there are more than 10,000; a guess that is refused again is not the oldest', () => {
    const refused = refusedGuesses()
    for (let at = 0; at < 10_000; at++) refused.add(`${at}`, 60)
    refused.add('0', 60)
    expect(refused.has('1')).toBe(true)
    refused.add('one more', 60)
    expect(['0', '1', '2', 'one more'].map(refused.has)).toStrictEqual([true, false, true, true])
  })
})
