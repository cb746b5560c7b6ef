/**
 * Spec files of one worker share a process and its modules, which saves loading them 250 times. So before each file,
 * what the package keeps on `globalThis` is removed. A file must leave the process as it found it. If it does not, it
 * fails here, and not some other file later.
 */
import { afterAll, expect, vi } from 'vitest'

const isOurs = (key: PropertyKey): boolean =>
  typeof key === 'symbol' && Symbol.keyFor(key)?.startsWith('koa-with-auth/') === true

for (const key of Reflect.ownKeys(globalThis)) if (isOurs(key)) Reflect.deleteProperty(globalThis, key)

// The events of `process` that a test could wait for, or silence
const events = ['warning', 'unhandledRejection', 'uncaughtException', 'SIGINT', 'SIGTERM'] as const

const state = () => ({
  env: { ...process.env },
  folder: process.cwd(),
  listeners: Object.fromEntries(events.map((event) => [event, process.listenerCount(event)])),
  functions: [fetch, Date, setTimeout, setInterval, setImmediate, queueMicrotask, process.emitWarning],
  ofObjects: Reflect.ownKeys(Object.prototype),
  ofArrays: Reflect.ownKeys(Array.prototype),
  hasFakeTimers: vi.isFakeTimers(),
})

const before = state()
afterAll(() => {
  vi.restoreAllMocks()
  const after = state()
  // So that only the file that left something fails
  vi.useRealTimers()
  expect(after, 'what a spec file changes in its process, it must put back').toStrictEqual(before)
})
