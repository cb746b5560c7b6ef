/** Measures memory, in a process that was started with the flags which are here. */
import type { RequestListener } from 'node:http'
import { median } from './statistics.js'
import { ask, type Headers } from './stub.js'

export const collecting = ['--expose-gc']

const collect = (): void => {
  if (globalThis.gc === undefined) throw new Error('start it with --expose-gc')
  globalThis.gc()
}

/** Bytes of the heap that are in use. */
export const heap = async (): Promise<number> => {
  for (let at = 0; at < 3; at++) {
    collect()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return process.memoryUsage().heapUsed
}

/** Bytes that the heap grows by while something is made and kept. */
export const heapOf = async (make: () => unknown): Promise<number> => {
  const before = await heap()
  const kept = await make()
  const after = await heap()
  if (Object(kept) !== kept) throw new Error('nothing is kept')
  return after - before
}

/**
 * For processes that measure what a request allocates. The young generation has a fixed size that holds a whole sample,
 * so nothing is collected during one.
 */
export const sampling = [...collecting, '--min-semi-space-size=64', '--max-semi-space-size=64', '--single-threaded-gc']

const WARM_UP = 20_000

/**
 * Bytes that a request allocates: the median of many short samples, each of so many requests. The heap is collected
 * before each. A response is kept meanwhile: V8 throws away what it has compiled for objects of which none is left.
 * Early samples are too large, because the optimizer is still compiling, so the median counts.
 */
export const allocatedBy = async (
  listener: RequestListener,
  url: string,
  headers: Headers,
  { samples, requests }: { readonly samples: number; readonly requests: number },
): Promise<number> => {
  const bytes: number[] = []
  for (let at = 0; at < WARM_UP; at++) await ask(listener, url, headers)
  for (let sample = 0; sample < samples; sample++) {
    const kept = await ask(listener, url, headers)
    collect()
    if (!kept.headersSent) throw new Error('no answer')
    const before = process.memoryUsage().heapUsed
    for (let at = 0; at < requests; at++) await ask(listener, url, headers)
    bytes.push((process.memoryUsage().heapUsed - before) / requests)
  }
  return median(bytes)
}
