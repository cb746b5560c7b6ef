/** Look-ups of ends: a few at a time, one after growing pauses while the store fails, and never so many that requests wait. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { AuthEndedError, End, type EndCause } from '../../src/core/ends.js'
import { ends } from '../../src/ends/ends.js'
import { ownEnds } from '../support/runs/ownEnds.js'

const MANY = 20_000

beforeEach(() => void vi.useFakeTimers({ toFake: ['Date', 'performance', 'setTimeout', 'clearTimeout'], now: 0 }))
afterEach(() => void vi.useRealTimers())

/** A store: what it answers, how often it was asked, and how often in one turn of the event loop at most. */
const store = (answer: () => Promise<EndCause | number>) => {
  const state = { answer, asked: 0, atOnce: 0, mostAtOnce: 0, inTurn: 0, mostInTurn: 0 }
  // a class for each test, because a class of ends asks one store
  class Asked extends End {
    override named(): string {
      return 'anna'
    }
    override async ask(): Promise<EndCause | number> {
      state.asked++
      state.mostAtOnce = Math.max(state.mostAtOnce, ++state.atOnce)
      state.mostInTurn = Math.max(state.mostInTurn, ++state.inTurn)
      setImmediate(() => (state.inTurn = 0))
      return state.answer().finally(() => state.atOnce--)
    }
  }
  const reasons: AuthEndedError[] = []
  const open = (at = Infinity): End => {
    const end = new Asked(at)
    ends().open(end, { abort: (reason) => void reasons.push(reason) })
    return end
  }
  return { ...{ open, reasons }, state }
}

// however busy the machine is
const until = (isSo: () => boolean) => vi.waitUntil(isSo, { timeout: 30_000 })
const turn = () => new Promise((resolve) => void setImmediate(resolve))
const turns = async (count: number): Promise<void> => {
  for (let at = 0; at < count; at++) await turn()
}
const never = () => new Promise<never>(() => {})
const fails = () => Promise.reject(new Error('down'))
const lives = () => Promise.resolve(Infinity)

describe('look-ups', () => {
  it('of many ends are 16 at once, and at most 200 in a turn of the event loop', async () => {
    const waiting = ownEnds()
    const { open, state } = store(lives)
    for (let at = 0; at < MANY; at++) open()
    expect(state.asked).toBeLessThanOrEqual(16)
    await until(() => state.asked === MANY && state.atOnce === 0)
    expect(state).toMatchObject({ mostAtOnce: 16, asked: MANY })
    // two turns are counted as one, because the first of them begins before the count does
    expect(state.mostInTurn).toBeLessThanOrEqual(400)
    expect(waiting()).toBe(MANY)
  })

  it('while the store fails are one after 1, 2, 4 and at most 30 seconds, and then all', async () => {
    ownEnds()
    const { open, state } = store(fails)
    for (let at = 0; at < MANY; at++) open()
    await turns(5)
    expect(state.asked).toBe(16)
    for (const pause of [1, 2, 4, 8, 16, 30, 30, 30]) {
      const before = state.asked
      vi.advanceTimersByTime(pause * 1000 - 1)
      await turns(3)
      expect(state.asked).toBe(before)
      vi.advanceTimersByTime(1)
      await turns(3)
      expect(state.asked).toBe(before + 1)
    }
    // hints, also about all, ask nothing more
    const before = state.asked
    ends().askAboutAll()
    ends().askAbout('anna')
    await turns(50)
    expect(state.asked).toBe(before)
    state.answer = lives
    vi.advanceTimersByTime(30_000)
    await until(() => state.asked === before + MANY)
    await turns(20)
    expect(state.asked).toBe(before + MANY)
  })

  it('end what has ended as soon as the store answers again', async () => {
    ownEnds()
    const { open, state, reasons } = store(fails)
    open()
    open()
    await turns(3)
    state.answer = () => Promise.resolve('signed out')
    vi.advanceTimersByTime(1000)
    await turns(3)
    expect(reasons.map(({ cause }) => cause)).toEqual(['signed out', 'signed out'])
  })

  it('at their own time end all of them after a few questions that failed', async () => {
    ownEnds()
    const { open, state, reasons } = store(() => Promise.resolve(10_000))
    for (let at = 0; at < MANY; at++) open(10_000)
    await until(() => state.asked === MANY && state.atOnce === 0)
    state.answer = fails
    state.asked = 0
    vi.advanceTimersByTime(10_000)
    // a message about them meanwhile makes no hint of an end whose time has come
    ends().askAbout('anna')
    await until(() => reasons.length === MANY)
    expect(state.asked).toBeLessThanOrEqual(100)
    expect(reasons[0]).toEqual(new AuthEndedError('expired'))
  })

  it('are forgotten with their end, however many come and go in an outage', async () => {
    const waiting = ownEnds()
    const { open, state } = store(fails)
    const all = Array.from({ length: MANY }, () => open())
    ends().askAbout('anna')
    for (const end of all) ends().close(end)
    await turns(MANY / 1000 + 3)
    const kept = open()
    state.answer = lives
    vi.advanceTimersByTime(30_000)
    await turns(5)
    expect([waiting(), state.asked]).toEqual([1, 16 + 1])
    expect(kept.asking).toBe('no')
  })

  it('are asked again if something was said meanwhile', async () => {
    ownEnds()
    const answers: Array<(found: EndCause | number) => void> = []
    const { open, state, reasons } = store(() => new Promise((resolve) => void answers.push(resolve)))
    open()
    ends().askAbout('anna')
    ends().askAbout('anna')
    expect(state.asked).toBe(1)
    answers[0]?.(Infinity)
    await turns(2)
    expect([state.asked, reasons]).toEqual([2, []])
    answers[1]?.('revoked')
    await turns(2)
    expect(reasons).toHaveLength(1)
    // an answer about a credential that was closed meanwhile starts no timer, and no other question
    const closed = open()
    ends().askAbout('anna')
    ends().close(closed)
    answers[2]?.(60_000)
    await turns(2)
    expect([state.asked, vi.getTimerCount()]).toEqual([3, 0])
  })

  it('of two that failed end none whose time has come while others are not answered', async () => {
    ownEnds()
    const answers: Array<(found?: number) => void> = []
    const { open, state, reasons } = store(() => Promise.resolve(1000))
    for (let at = 0; at < 17; at++) open(1000)
    await until(() => state.asked === 17 && state.atOnce === 0)
    state.answer = () =>
      new Promise((resolve, reject) => {
        answers.push((found) => (found === undefined ? reject(new Error('down')) : resolve(found)))
      })
    vi.advanceTimersByTime(1000)
    for (const answer of answers.splice(0, 2)) answer()
    await turns(3)
    expect([reasons.length, state.asked]).toEqual([2, 17 + 16])
    for (const answer of answers) answer(Infinity)
    await turns(3)
    expect([reasons.length, state.asked]).toEqual([2, 17 + 17])
  })

  it('go on when an end at its own time is answered, and when the end is closed that the next question was for', async () => {
    ownEnds()
    const { open, state } = store(fails)
    open(500)
    await turns(3)
    state.answer = lives
    vi.advanceTimersByTime(500)
    await turns(3)
    expect([state.asked, vi.getTimerCount()]).toEqual([2, 0])
    state.answer = fails
    const lost = open()
    await turns(3)
    ends().close(lost)
    vi.advanceTimersByTime(1000)
    open()
    await turns(3)
    expect(state.asked).toBe(4)
  })

  it('that never end are 16, and none of another store waits for them', async () => {
    ownEnds()
    const silent = store(never)
    for (let at = 0; at < 100; at++) silent.open()
    const other = store(() => Promise.resolve('revoked'))
    other.open()
    await turns(3)
    expect([silent.state.asked, other.reasons.length]).toEqual([16, 1])
  })
})

describe('20,000 ends', () => {
  it('of one user are ended in many turns of the event loop', async () => {
    const waiting = ownEnds()
    let inTurn = 0
    let most = 0
    const list = Array.from({ length: MANY }, () => {
      const end = new (class extends End {
        override named = () => 'bert'
      })(Infinity)
      ends().open(end, {
        abort: () => {
          most = Math.max(most, ++inTurn)
          setImmediate(() => (inTurn = 0))
        },
      })
      return end
    })
    ends().end('bert', () => 'signed out')
    expect(list.filter(({ target }) => target !== undefined).length).toBeGreaterThan(MANY / 2)
    await until(() => waiting() === 0)
    expect(most).toBeLessThanOrEqual(1000)
  })

  it('of one user that take long are ended 16 in a turn', async () => {
    ownEnds()
    let over = 0
    for (let at = 0; at < 100; at++) {
      const end = new (class extends End {
        override named = () => 'bert'
      })(Infinity)
      ends().open(end, {
        abort: () => {
          over++
          vi.advanceTimersByTime(1)
        },
      })
    }
    ends().end('bert', () => 'signed out')
    expect(over).toBe(16)
    await until(() => over === 100)
  })

  it('that are due in one turn, after a clock was set, end in many turns', async () => {
    const waiting = ownEnds()
    let inTurn = 0
    let most = 0
    for (let at = 0; at < MANY; at++) {
      ends().open(new End(3_600_000 + at), {
        abort: () => {
          most = Math.max(most, ++inTurn)
          setImmediate(() => (inTurn = 0))
        },
      })
    }
    vi.setSystemTime(8_000_000)
    vi.advanceTimersByTime(1000)
    expect(waiting()).toBeGreaterThan(MANY / 2)
    await until(() => waiting() === 0)
    expect(most).toBeLessThanOrEqual(1000)
  })
})
