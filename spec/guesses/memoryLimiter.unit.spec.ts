/** The limiter that counts where the application names none. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { memoryLimiter } from '../../src/guesses/memoryLimiter.js'

const passes = (limiter: ReturnType<typeof memoryLimiter>, key: string) =>
  Promise.resolve(limiter.consume(key)).then(
    () => true,
    () => false,
  )

const used = async (points: number) => {
  const limiter = memoryLimiter(points, 900)
  for (let at = 0; at < points; at++) expect(await passes(limiter, 'anna')).toBe(true)
  return limiter
}

describe('T-13 a name that was guessed at too often', () => {
  it('stays refused, however many other names are guessed at', async () => {
    const limiter = await used(10)
    for (let at = 0; at < 110_000; at++) await limiter.consume(`name ${at}`)
    expect(await passes(limiter, 'anna')).toBe(false)
  })

  it('stays refused until its window ends, also if the system clock is set forward', async () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const limiter = await used(10)
    vi.setSystemTime(Date.now() + 86_400_000)
    expect(await passes(limiter, 'anna')).toBe(false)
    vi.advanceTimersByTime(899_999)
    expect(await passes(limiter, 'anna')).toBe(false)
    vi.advanceTimersByTime(1)
    expect(await passes(limiter, 'anna')).toBe(true)
  })
})

it('keeps at most 100,000 counts: an old one that is low goes', async () => {
  const limiter = memoryLimiter(1, 900)
  await limiter.consume('anna')
  for (let at = 0; at < 100_000; at++) await limiter.consume(`name ${at}`)
  expect(await passes(limiter, 'anna')).toBe(true)
})

it('drops a count whose window has ended before any other, however high it is', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const limiter = await used(5)
  vi.advanceTimersByTime(900_000)
  for (let at = 0; at < 100_000; at++) await limiter.consume(`name ${at}`)
  for (let at = 0; at < 7; at++) expect(await limiter.consume(`name ${at}`)).toMatchObject({ consumedPoints: 2 })
})

it('says how many points are left, and how long its window lasts', async () => {
  vi.useFakeTimers({ toFake: ['Date', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const limiter = memoryLimiter(2, 900)
  const answers = []
  for (let at = 0; at < 3; at++) {
    answers.push(await Promise.resolve(limiter.consume('anna')).catch((refused: unknown) => refused))
    vi.advanceTimersByTime(1000)
  }
  expect(answers).toEqual([
    { consumedPoints: 1, remainingPoints: 1, msBeforeNext: 900_000 },
    { consumedPoints: 2, remainingPoints: 0, msBeforeNext: 899_000 },
    { consumedPoints: 3, remainingPoints: 0, msBeforeNext: 898_000 },
  ])
})

it('gives back what was taken, and no more', async () => {
  const limiter = memoryLimiter(2, 900)
  await limiter.consume('anna')
  for (const key of ['anna', 'anna', 'bert']) await limiter.reward?.(key)
  expect(await limiter.consume('anna')).toMatchObject({ consumedPoints: 1 })
})
