/**
 * Spec files of one worker share a process and its modules, which saves loading them 250 times. So before each file,
 * what the package keeps on `globalThis` is removed. A file must leave the process as it found it. If it does not, it
 * fails here, and not some other file later.
 */
import { readFileSync } from 'node:fs'
import { afterAll, expect, vi } from 'vitest'

declare module 'vitest' {
  interface TaskMeta {
    /** The processor time that a file took, with that of processes which it started and which ended before it did. */
    processorSeconds?: number
  }
}

// Linux counts in hundredths of a second. Elsewhere it is without other processes.
const processorSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  const own = (user + system) / 1e6
  if (process.platform !== 'linux') return own
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
  return own + (Number(fields[13]) + Number(fields[14])) / 100
}
const spentBefore = processorSeconds()

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
// Vitest reads what a hook takes from the text of its first parameter
afterAll(({}, file) => {
  file.meta.processorSeconds = processorSeconds() - spentBefore
  vi.restoreAllMocks()
  const after = state()
  // So that only the file that left something fails
  vi.useRealTimers()
  expect(after, 'what a spec file changes in its process, it must put back').toStrictEqual(before)
})
