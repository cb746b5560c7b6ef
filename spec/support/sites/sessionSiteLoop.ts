/**
 * Measures how long an event loop was blocked by its own code, not by a busy machine. The histogram of perf_hooks
 * counts both, and on a busy machine most of it is the machine. Two times are subtracted: how long this thread waited
 * for a processor, as Linux reports it, and the longest time that an idle thread beside it waited for its turn.
 */
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'

const interval = 2

const beside = `
const { workerData } = require('node:worker_threads')
const gap = new Float64Array(workerData)
let last = process.hrtime.bigint()
setInterval(() => {
  const now = process.hrtime.bigint()
  gap[0] = Math.max(gap[0], Number(now - last) / 1e6)
  last = now
}, ${interval})
`

const waited = (): number => {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[1]) / 1e6
  } catch {
    return 0
  }
}

/** Watches this thread. Returns the longest time since `reset`, in milliseconds. */
export const watchLoop = () => {
  const shared = new SharedArrayBuffer(8)
  const gap = new Float64Array(shared)
  new Worker(beside, { eval: true, workerData: shared }).unref()
  let longest = 0
  let last = { at: performance.now(), waited: waited() }
  setInterval(() => {
    const now = { at: performance.now(), waited: waited() }
    longest = Math.max(longest, now.at - last.at - (now.waited - last.waited) - (gap[0] ?? 0))
    gap[0] = 0
    last = now
  }, interval)
  return { heldFor: () => longest, reset: () => void (longest = 0) }
}
