/** What a process keeps, after its garbage was collected. Measure without a turn of the event loop: files share the process. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Collects garbage now. */
export const collect = (): void => {
  setFlagsFromString('--expose-gc')
  // Safe: the flag makes it
  const gc = runInNewContext('gc') as () => void
  gc()
}

/** The bytes of the heap that something still reaches. */
export const heapKept = (): number => {
  collect()
  return process.memoryUsage().heapUsed
}

/** Collects garbage, and lets what hears of it run. */
export const collected = async (): Promise<void> => {
  collect()
  for (let at = 0; at < 2; at++) await new Promise((resolve) => setImmediate(resolve))
}
