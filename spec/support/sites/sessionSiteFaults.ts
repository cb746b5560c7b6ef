/** A fault under load, from its beginning to the recovery, and what must be true for every fault. */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Site, SiteState } from './sessionSite.js'
import { isWell, longest, summary, type Entry, type Load } from './sessionSiteLoad.js'

export interface Fault {
  readonly begin: () => Promise<void> | void
  readonly end: () => Promise<void> | void
}

interface Outcome {
  /** From a while before the fault until the service has recovered. */
  readonly all: ReadonlyArray<Entry>
  readonly before: ReadonlyArray<Entry>
  /** Sent and answered during the fault. */
  readonly during: ReadonlyArray<Entry>
  /** Sent after the last failure. */
  readonly after: ReadonlyArray<Entry>
  /** How long after the end of the fault the last failure was, in milliseconds. */
  readonly recovery: number
  /** Since the fault began. */
  readonly state: SiteState
}

const quiet = 1000
/** The service must recover by itself within this time, in milliseconds. */
const allowed = 30_000

// Every kind of request was sent since then, and succeeded
const isServed = ({ entries }: Load, since: number): boolean =>
  new Set(entries.filter((one) => one.begun > since && isWell(one)).map(({ asked }) => asked)).size === 5

// When the last response that was not well came
const troubleSince = ({ entries }: Load, since: number): number =>
  Math.max(since, ...entries.filter((one) => one.begun > since && !isWell(one)).map((one) => one.ended))

const until = async (isSo: () => boolean, begun: number): Promise<void> => {
  while (!isSo() && performance.now() - begun < allowed) await pause(20)
}

/** Until a site that has just started has reached its full speed. */
export const warm = (): Promise<void> => pause(1500)

/** Causes a fault for a while, ends it, and waits until the service has recovered, or should have. */
export const underFault = async (site: Site, load: Load, fault: Fault, held = 2000): Promise<Outcome> => {
  const from = performance.now()
  // on a busy machine, the site's own time limit can be over
  await until(() => isServed(load, troubleSince(load, from)), from)
  const well = troubleSince(load, from)
  await site.reset()
  const begun = performance.now()
  await fault.begin()
  const down = performance.now()
  await pause(held)
  const isAsked = (asked: Entry['asked']): boolean =>
    load.entries.some((one) => one.asked === asked && one.begun > down && one.ended < performance.now())
  await until(() => isAsked('guarded') && isAsked('write'), down)
  const up = performance.now()
  await fault.end()
  const ended = performance.now()
  const lastTrouble = (): number => Math.max(ended, troubleSince(load, down))
  await until(() => performance.now() - lastTrouble() >= quiet && isServed(load, lastTrouble()), ended)
  const back = lastTrouble()
  return {
    all: load.entries.filter((one) => one.begun > from),
    before: load.entries.filter((one) => one.begun > well && one.ended < begun),
    during: load.entries.filter((one) => one.begun > down && one.ended < up),
    after: load.entries.filter((one) => one.begun > back),
    recovery: back - ended,
    state: await site.state(),
  }
}

/** The site's `TIMEOUT`, in milliseconds. */
export const timeout = 500

const of = (entries: ReadonlyArray<Entry>, ...asked: ReadonlyArray<Entry['asked']>): Entry[] =>
  entries.filter((one) => asked.includes(one.asked))

// As one line
const figures = ({ during, recovery, state }: Outcome): string =>
  [
    JSON.stringify(summary(during)),
    `cookies ${during.filter(({ setCookie }) => setCookie.length > 0).length}`,
    `longest ${longest(during).toFixed(0)} ms (without a session ${longest(of(during, 'without')).toFixed(0)} ms)`,
    `back after ${recovery.toFixed(0)} ms`,
    `loop held for ${state.heldFor.toFixed(0)} ms`,
    `resident ${(state.resident / 1e6).toFixed(0)} MB`,
    JSON.stringify(state.failures),
  ].join('; ')

/** What must be true for every fault. During the fault, guarded operations answer one of `guarded`, and writes 503. */
export const expectHeld = (outcome: Outcome, guarded: ReadonlyArray<number>): void => {
  const { all, before, during, after, state } = outcome
  const reported = figures(outcome)
  // No stranger passes, and no handler runs for one
  expect(all.filter((one) => one.isOfAnother)).toEqual([])
  expect(of(all, 'wrong').filter(({ status }) => status !== 401 && status !== 503)).toEqual([])
  expect(state.calls['strangers']).toBe(0)
  // No request hangs
  expect(all.filter(({ status }) => typeof status === 'string')).toEqual([])
  // Before and after: the same cookies are valid
  for (const entries of [before, after]) {
    expect(Object.keys(summary(entries)).sort()).toEqual([
      'guarded 200',
      'public 200',
      'without 200',
      'write 201',
      'wrong 401',
    ])
  }
  expect(outcome.recovery, reported).toBeLessThan(allowed)
  // During the fault
  expect(of(during, 'guarded').length).toBeGreaterThan(0)
  expect(of(during, 'guarded').filter(({ status }) => !guarded.includes(Number(status)))).toEqual([])
  expect(of(during, 'write').length).toBeGreaterThan(0)
  expect(of(during, 'write').filter(({ status }) => status !== 503)).toEqual([])
  expect(of(during, 'public', 'without').filter(({ status }) => status !== 200)).toEqual([])
  expect(during.filter(({ setCookie }) => setCookie.length > 0)).toEqual([])
  for (const { status, challenge, retryAfter, body } of during) {
    if (status !== 503) continue
    expect(challenge).toBeUndefined()
    expect(retryAfter).toMatch(/^\d+$/)
    expect(JSON.parse(body)).toMatchObject({ status: 503 })
  }
  // Requests without a session show how long the machine takes for anything.
  // Nothing hangs, and a blocked event loop waits there for the store.
  expect(longest(during) - longest(of(during, 'without')), reported).toBeLessThan(allowed)
  expect(state.heldFor, reported).toBeLessThan(500)
}
