/** C-03: the laws of one-time ids find each wrong implementation. */
import { memoryStore, type SessionStore } from 'koa-with-auth/sessions'
import { spentOver, type Spent } from 'koa-with-auth/sign-in'
import { laws } from 'koa-with-auth/testing/laws'
import { LawViolations } from 'koa-with-auth/testing/laws'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

const good = () => spentOver(memoryStore())
type Good = ReturnType<typeof good>
const failing: Spent = { spend: () => Promise.reject(new Error('down')) }

// These stores read the clock of the process
const elapse = (ms: number): void => void vi.advanceTimersByTime(ms)
beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance'] }))
afterEach(() => void vi.useRealTimers())

const broken = async (spent: Spent, down?: Spent): Promise<ReadonlyArray<string>> => {
  const failed: string[] = []
  for (const { name, check } of laws.spent(spent, { down, elapse }).tests) {
    await check().catch((error: unknown) => {
      expect(error).toBeInstanceOf(LawViolations)
      failed.push(name.split(/[: ]/)[0]!)
    })
  }
  return failed
}

const known = (keyOf: (id: string) => string = (id) => id) => {
  const until = new Map<string, number>()
  return {
    isSpent: (id: string) => (until.get(keyOf(id)) ?? 0) > Date.now(),
    keep: (id: string, ms: number) => void until.set(keyOf(id), Date.now() + ms),
  }
}

const over = (
  keyOf: (id: string) => string,
  lifetimeOf = (ms: number) => ms,
  wait = () => Promise.resolve(),
): Spent => {
  const { isSpent, keep } = known(keyOf)
  return {
    spend: async (id, ms) => {
      if (isSpent(id)) return false
      if (wait !== none) await wait()
      keep(id, lifetimeOf(ms))
      return true
    },
  }
}
const none = () => Promise.resolve()
const same = (id: string) => id
const all = (ms: number) => ms

describe('C-03 the laws of one-time ids', () => {
  it('hold for memory', async () => {
    await laws.spent(good(), { down: failing, elapse }).check()
    expect(laws.spent(good()).tests).toHaveLength(4)
    expect(laws.spent(good(), { down: failing }).tests).toHaveLength(5)
    expect(laws.spent(over(same, all, none)).tests).toHaveLength(3)
    expect(await broken(over(same, all, none))).toEqual([])
  })

  it('hold in real time, too', async () => {
    vi.useRealTimers()
    await laws.spent(good()).check()
  })

  it('hold for a store that takes longer than a short lifetime', async () => {
    const { spend: _spend, ...plain } = memoryStore()
    const slow: SessionStore = {
      ...plain,
      read: async (id) => {
        elapse(60)
        return plain.read(id)
      },
    }
    expect(await broken(spentOver(slow))).toEqual([])
  })

  it.each<readonly [string, Spent, ReadonlyArray<string>]>([
    ['reads, waits, then writes', over(same, all, () => new Promise((resolve) => setTimeout(resolve, 5))), ['once']],
    ['is always true', { spend: () => Promise.resolve(true) }, ['once', 'lasts']],
    ['is never true', { spend: () => Promise.resolve(false) }, ['once', 'lasts', 'apart']],
    ['reads the lifetime as seconds', over(same, (ms) => ms * 1000, none), ['lasts']],
    ['keeps ids for a thousandth', over(same, (ms) => ms / 1000, none), ['lasts']],
    ['ignores letter case', over((id) => id.toLowerCase(), all, none), ['apart']],
    ['trims ids', over((id) => id.trim(), all, none), ['apart']],
    ['cuts ids off', over((id) => id.slice(0, 255), all, none), ['apart']],
    ['normalises ids', over((id) => id.normalize(), all, none), ['apart']],
    // Safe: what a database driver returns
    [
      'answers with a number',
      { spend: (id, ms) => good().spend(id, ms).then(Number) as never },
      ['once', 'lasts', 'apart'],
    ],
  ])('one that %s breaks a law', async (_name, spent, laws) => {
    expect(await broken(spent)).toEqual(laws)
  })

  it.each<readonly [string, (kept: Good) => Good['release']]>([
    ['does nothing', () => () => Promise.resolve()],
    [
      'reads the time as seconds',
      (kept) =>
        (id, ms = 0) =>
          kept.release(id, ms * 1000),
    ],
  ])('a release that %s breaks a law', async (_name, releaseOf) => {
    const kept = good()
    expect(await broken({ ...kept, release: releaseOf(kept) })).toEqual(['release'])
  })

  it('a release of one id that releases all breaks a law', async () => {
    let kept = good()
    const forgetful: Spent = {
      spend: (id, ms) => kept.spend(id, ms),
      release: () => Promise.resolve(void (kept = good())),
    }
    expect(await broken(forgetful)).toEqual(['release'])
  })

  it.each<readonly [string, Spent]>([
    ['true', { spend: () => Promise.resolve(true) }],
    ['false', { spend: () => Promise.resolve(false) }],
    ['true now and then', { spend: () => (Math.random() < 0.999 ? Promise.resolve(true) : failing.spend('', 0)) }],
  ])('one that is %s in an outage breaks a law', async (_name, down) => {
    expect(await broken(good(), down)).toEqual(['outage'])
  })

  it('anything else is a TypeError', () => {
    expect(() => laws.spent(memoryStore as never)).toThrow('laws.spent(spent) has no method spend')
    expect(() => laws.spent(good(), { down: 7 as never })).toThrow('has no method spend')
    expect(() => laws.spent(good(), { elapse: 7 as never })).toThrow('elapse')
  })
})
